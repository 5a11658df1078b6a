#include "server/pipeline/what_if_reply.h"

#include "diagnosis/what_if/what_if_fixes.h"
#include "engine/schedule_list.h"
#include "server/http/wire.h"

namespace stageline {
namespace {

constexpr int64_t kMaxAskedMicroBatches = 65'536, kLongestNs = 3'600'000'000'000;

Result<Changes> changes_of(const Query& query, const std::vector<Changes>& fixes) {
  Changes changes;
  if (query.find("fix")) {
    TRY(fix, integer_parameter(query, "fix", std::nullopt, 0, std::ssize(fixes) - 1));
    changes = fixes[*fix];
  }
  Changes own;
  for (const auto& [name, value] : query.parameters) {
    if (name != "scale") continue;
    TRY(scale, parse_scale(value));
    own.scales.push_back(*scale);
  }
  if (const std::string_view name = query.text("schedule"); !name.empty()) {
    own.schedule = dashed(name);
    if (!knows_schedule(own.schedule))
      return make_error(ErrorCode::kUsage, "no schedule \"" + valid_utf8(name) + "\"", "stageline help schedules");
  }
  for (const auto& [name, place] : {std::pair("chunks", &own.chunks), std::pair("group", &own.group),
                                    std::pair("micro_batches", &own.micro_batches)}) {
    TRY(value, integer_parameter(query, name, 0, 0, kMaxAskedMicroBatches));
    *place = static_cast<int32_t>(*value);
  }
  if (own.schedule.empty() && (own.chunks > 0 || own.group > 0))
    return make_error(ErrorCode::kUsage, "chunks and group go with schedule");
  if (query.find("latency_ns")) {
    TRY(latency, integer_parameter(query, "latency_ns", std::nullopt, 0, kLongestNs));
    own.latency_ns = static_cast<double>(*latency);
  }
  return combined(changes, own);
}

// Writes a world's cells of one step, on the same axis as /api/pipeline.
class StepWriter {
 public:
  StepWriter(const AskedModel& asked, const GraphStep& step) : zero_(asked.zero_ns), step_(step) {
    for (size_t p = asked.dp.size(); p-- > 0;)  // in reverse order, so that the first one stays
      part_of_[{asked.dp[p], asked.stage[p]}] = static_cast<int32_t>(p);
  }

  void add_to(WireColumns& columns, std::vector<WhatIf::WorldCell> cells) {
    for (WhatIf::WorldCell& cell : cells)
      if (cell.part == kUnknown)
        if (const auto at = part_of_.find({cell.dp, cell.stage}); at != part_of_.end()) cell.part = at->second;
    std::erase_if(cells, [](const WhatIf::WorldCell& cell) { return cell.part == kUnknown; });
    const auto before = [](const WhatIf::WorldCell& a, const WhatIf::WorldCell& b) {
      return std::tuple(a.part, a.start_ns) < std::tuple(b.part, b.start_ns);
    };
    if (!std::ranges::is_sorted(cells, before)) sort_stably(cells, before);
    std::vector<double> start, dur;
    std::vector<int32_t> part, chunk, micro_batch;
    std::vector<uint8_t> kind;
    start.reserve(cells.size());
    dur.reserve(cells.size());
    for (std::vector<int32_t>* column : {&part, &chunk, &micro_batch}) column->reserve(cells.size());
    kind.reserve(cells.size());
    const double begin = step_.start_ns - zero_;
    for (const WhatIf::WorldCell& cell : cells) {
      start.push_back(begin + std::round(cell.start_ns));
      dur.push_back(std::max(0.0, std::round(cell.end_ns) - std::round(cell.start_ns)));
      part.push_back(cell.part);
      chunk.push_back(cell.chunk);
      micro_batch.push_back(cell.micro_batch);
      kind.push_back(static_cast<uint8_t>(cell.kind));
    }
    columns.add("start", "f64", start);
    columns.add("dur", "f64", dur);
    columns.add("part", "i32", part);
    columns.add("chunk", "i32", chunk);
    columns.add("micro_batch", "i32", micro_batch);
    columns.add("kind", "u8", kind);
  }

 private:
  int64_t zero_;
  const GraphStep& step_;
  std::map<std::pair<int32_t, int32_t>, int32_t> part_of_;  // key: replica, stage
};

}  // namespace

void write_price(JsonWriter& json, const Price& price) {
  json.field_ns("recorded_ns", price.recorded_ns).field_ns("step_ns", price.step_ns);
  json.field_ns("saving_ns", price.saving_ns).field_ns("error_ns", price.error_ns);
  json.field("saving_share", price.share()).field("steps", price.steps);
  json.field("why_not", price.why_not.en).field("why_not_zh", price.why_not.in(true));
  json.field("held", price.held);
}

void write_bytes(JsonWriter& json, const Text& bytes) { json.field("bytes", bytes.en).field("bytes_zh", bytes.zh); }

Result<std::string> what_if_reply(const AskedModel& asked, const Query& query) {
  const WhatIf& model = *asked.model;
  TRY(changes, changes_of(query, asked.fixes));
  for (const CellScale& scale : changes->scales)
    if (model.touched(scale).all == 0)
      return make_error(ErrorCode::kUsage, "a scale fits no operation of this run", "/api/run lists stages and ranks");
  TRY(number, integer_parameter(query, "step", kUnknown, INT32_MIN, INT32_MAX));
  TRY(dp, integer_parameter(query, "dp", kUnknown, kUnknown, INT32_MAX));
  WireColumns columns;
  JsonWriter json;
  json.begin_object();
  const WhatIf::Priced priced = model.priced(*changes);
  write_price(json, priced.price);
  if (asked.bytes && !query.find("fix")) write_bytes(json, asked.bytes(*changes));
  const std::vector<GraphStep>& steps = model.graph().steps;
  const auto step = std::ranges::find_if(steps, [&](const GraphStep& s) { return s.step == *number; });
  if (step != steps.end()) {
    const auto at = static_cast<uint32_t>(step - steps.begin());
    StepWriter(asked, *step).add_to(columns, model.step_cells(*changes, at, static_cast<int32_t>(*dp)));
    json.field_ns("this_recorded_ns", step->span_ns).field_ns("this_step_ns", priced.step_ns[at]);
  }
  columns.describe(json);
  json.end_object();
  return std::move(columns).with_header(json.take());
}

}  // namespace stageline
