// Reads profiles of Ascend NPUs: one database per rank, written by torch_npu, MindSpore, msprof or msMonitor. Tables,
// names and what becomes of them: docs/formats/ascend.md.
#include "base/json_members.h"
#include "base/parallel.h"
#include "model/torch_facts.h"
#include "readers/ascend/problems.h"
#include "readers/ascend/text_trace.h"
#include "readers/common/ranks.h"

namespace stageline::ascend {
namespace {

bool is_sqlite(std::string_view head) { return head.starts_with(std::string_view("SQLite format 3\0", 16)); }

// Reports ranks that are missing in the input, according to the number of ranks that the files give.
void check_world(Trace& trace) {
  int64_t world = 0;
  for (const Part& part : trace.parts)
    world = std::max(world, json_integer(json_member(meta_json(part, "distributed_args"), "world_size")).value_or(0));
  const int64_t here = std::ranges::count_if(trace.parts, [&](const Part& part) { return part.rank < world; });
  if (here >= world || world > 1'000'000) return;
  int32_t missing = 0;
  for (const Part& part : trace.parts) missing += part.rank == missing;
  trace.diagnostics.add(problem::ascend_missing_ranks, Args()
                                                           .set("present", std::to_string(here))
                                                           .set("world", std::to_string(world))
                                                           .set("missing", std::to_string(missing)));
}

std::string describe(const Trace& trace) {
  int64_t events = 0;
  std::map<std::string, int> devices;
  for (const Part& part : trace.parts) {
    events += part.event_count;
    if (const std::string device = device_name(part); !device.empty()) ++devices[device];
  }
  const size_t ranks = trace.parts.size();
  std::string out = std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ") + grouped(events) + " rows";
  for (const auto& [device, count] : devices) out += ", " + device + (count > 1 ? " ×" + std::to_string(count) : "");
  return out;
}

// Reads a rank from its database; if there is none, or it cannot be read, from the text exports next to it.
RankPart read_rank(const RankFiles& files, const ReadOptions& options) {
  const bool text = !files.kernel_details.empty() || !files.trace_view.empty();
  if (files.profiler_db.empty()) return read_rank_text(files, options);
  RankPart from_db = read_rank_db(files, options);
  if (!from_db.error || !text) return from_db;
  RankPart from_text = read_rank_text(files, options);
  if (from_text.error) return from_db;
  from_text.notes.add(problem::ascend_text_instead, Args().set("why", error_text(*from_db.error)),
                      from_db.error->where);
  return from_text;
}

// A table that other ranks have and one lacks was dropped there or never exported, so that rank's work of this kind
// cannot be seen. A table that no rank has was not recorded.
void say_missing_tables(const std::vector<RankPart>& parts, Diagnostics& diagnostics) {
  std::set<std::string> all;
  for (const RankPart& part : parts) all.insert(part.tables.begin(), part.tables.end());
  for (const RankPart& part : parts) {
    if (part.error || part.tables.empty()) continue;
    std::string missing;
    for (const std::string& table : all)
      if (!std::ranges::binary_search(part.tables, table)) append_item(missing, table);
    if (!missing.empty())
      diagnostics.add(problem::ascend_missing_table, Args().set("missing", missing), {part.part.source});
  }
}

}  // namespace

Match sniff(const Source& source) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (is_profiler_db(file_name(file.path)) || is_text_export(source, i)) return Match::kCertain;
    if (!file.given || file_extension(file.path) != "db") continue;
    const std::string_view head = source.head(i);
    if (is_sqlite(head) && head.find("STRING_IDS") != std::string_view::npos &&
        head.find("RANK_DEVICE_MAP") != std::string_view::npos)
      return Match::kCertain;
  }
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "ascend";
  trace.device_family = DeviceFamily::kNpu;
  trace.numbers_messages_per_rank = true;  // as HCCL does
  trace.categories.push_back({"", Category::kOther});
  TRY(found, find_ranks(source, trace.diagnostics));
  const std::vector<RankFiles>& ranks = *found;
  std::vector<RankPart> parts(ranks.size());
  parallel_for(ranks.size(), [&](size_t r) { parts[r] = read_rank(ranks[r], options); });
  std::vector<NameMap> maps(parts.size());
  std::optional<Error> first_error;
  for (size_t r = 0; r < parts.size(); ++r) {
    RankPart& part = parts[r];
    trace.diagnostics.merge(part.notes);
    if (part.error) {
      if (!first_error) first_error = part.error;
      trace.diagnostics.add(problem::ascend_unusable_rank, Args().set("why", error_text(*part.error)),
                            part.error->where);
      continue;
    }
    maps[r] = adopt_names(part.names, trace);
    part.names = {};
  }
  say_missing_tables(parts, trace.diagnostics);
  parallel_for(parts.size(), [&](size_t r) {
    if (!parts[r].error) rename_part(maps[r], parts[r].part);
  });
  for (RankPart& part : parts)
    if (!part.error) trace.parts.push_back(std::move(part.part));
  if (trace.parts.empty()) return *first_error;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && !is_ascend_file(file_name(source.files[i].path)) && !is_sqlite(source.head(i)) &&
        !is_text_export(source, i))
      trace.diagnostics.add(problem::ascend_unusable_file, {source.files[i].path});
  number_machines(trace);
  if (trace.parts.size() == 1) trace.clock = ClockState::kShared;
  check_world(trace);
  trace.description = describe(trace);
  return trace;
}

}  // namespace stageline::ascend
