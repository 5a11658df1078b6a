// Reads the timestamps of Paddle's dynamic-graph pipeline (pp_configs.profiling): see docs/formats/paddle-dynamic.md.
#include <simdjson.h>

#include "base/json_events.h"
#include "base/json_token.h"
#include "readers/common/op_names.h"
#include "readers/common/ops.h"
#include "readers/common/read_files.h"
#include "readers/paddle_dynamic/problems.h"

namespace stageline::paddle_dynamic {
namespace {

// Reads one file of timestamps into rows.
//
// A file has one timestamp per line and two per cell, with times in whole milliseconds (though Chrome takes ts as µs):
//
//   {"name": "F0", "cat": "pipeline timeline", "ph": "B", "pid": 0, "tid": 1, "ts": …, "cname": …}
//   {"name": "F0_VP1", "cat": "virtual pipeline timeline", …}           with several chunks
//
// tid is stage + 1. The numbers count micro-batches and start again at every step, which is the only sign of a new
// step. A cell that starts although the step already has it opens the next step.
struct RecordOps {
  std::vector<Op> ops;
  StringPool names;
  Diagnostics diagnostics;
  int32_t ranks = 0;  // a joined file has several; Op::rank counts them from 0 in order of appearance
};

namespace od = simdjson::ondemand;

constexpr int kMilliseconds = 6;
using CellName = std::tuple<CellKind, int32_t, int32_t>;  // (kind, micro-batch, chunk)

struct Stamp {
  char phase = 0;
  std::string_view name;
  std::string_view ts;
  int32_t tid = kUnknown;
};

struct OpenCell {
  int64_t start_ns;
  int64_t offset;
};

// The timestamps of one rank, in order.
struct RankState {
  int32_t rank = kUnknown, stage = kUnknown, step = 0;
  std::set<CellName> begun;  // in this step
  std::map<CellName, OpenCell> open;
  int64_t last_ns = INT64_MIN;
};

class RecordReader {
 public:
  RecordReader(const std::string& path, uint32_t file, int32_t rank) : path_(path), file_(file), named_rank_(rank) {}

  Result<RecordOps> read(Progress* progress) {
    TRY(input, Input::open(path_, progress));
    JsonEvents events(*input, JsonLayout::kSequence);
    for (;;) {
      Result<std::vector<JsonSpan>> spans = events.next();
      if (!spans) {
        lose(problem::paddle_dynamic_read_stopped, spans.error().where.byte,
             Args().set("why", error_text(spans.error())));
        break;
      }
      if (spans->empty()) break;
      for (const JsonSpan& span : *spans) take(span, true);
    }
    close_rank();
    out_.diagnostics.add(problem::paddle_dynamic_damaged_text, {path_, 0, events.first_damage()}, events.damaged());
    return std::move(out_);
  }

 private:
  void lose(const Problem& problem, int64_t offset, const Args& args = {}) {
    out_.diagnostics.add(problem, args, {path_, 0, offset});
  }

  void take(const JsonSpan& span, bool may_split) {
    Stamp stamp;
    if (parse(span.text, stamp)) return take(stamp, span.offset);
    std::vector<JsonSpan> pieces;
    if (may_split) split_json_objects(span.text, span.offset, pieces);
    if (pieces.size() <= 1) return lose(problem::paddle_dynamic_bad_record, span.offset);
    for (const JsonSpan& piece : pieces) take(piece, false);
  }

  bool parse(std::string_view text, Stamp& stamp) {
    od::document document;
    od::object object;
    if (parser_.iterate(text, text.size() + kJsonPaddingBytes).get(document) || document.get_object().get(object))
      return false;
    std::string_view category, phase;
    for (auto field : object) {
      std::string_view key;
      od::value value;
      if (field.unescaped_key().get(key) || field.value().get(value)) return false;
      const auto once = [](std::string_view view) { return view.data() == nullptr; };
      if (key == "name" && (!once(stamp.name) || value.get_string().get(stamp.name))) return false;
      if (key == "cat" && (!once(category) || value.get_string().get(category))) return false;
      if (key == "ph" && (!once(phase) || value.get_string().get(phase))) return false;
      if (key == "ts") {
        if (!once(stamp.ts)) return false;
        stamp.ts = raw_token(value, text);
      }
      if (key == "tid") {
        const auto tid = parse_index(raw_token(value, text), kMaxStageNumber);
        if (!tid || *tid < 0) return false;
        stamp.tid = *tid;
      }
    }
    if (!category.ends_with("pipeline timeline") || (phase != "B" && phase != "E")) return false;
    stamp.phase = phase[0];
    return stamp.tid >= 1;
  }

  void take(const Stamp& stamp, int64_t offset) {
    const auto label = parse_cell_label(stamp.name);
    if (!label || label->micro_batch > kMaxMicroBatchNumber || label->chunk > kMaxChunkNumber)
      return lose(problem::paddle_dynamic_bad_name, offset);
    const auto ns = parse_decimal_ns(stamp.ts, kMilliseconds);
    if (!ns || !sane_interval(*ns, *ns)) return lose(problem::paddle_dynamic_bad_time, offset);
    const CellName cell(label->kind, label->micro_batch, std::max(label->chunk, 0));
    const bool begin = stamp.phase == 'B';
    if (starts_rank(stamp, cell, *ns)) {
      close_rank();
      now_ = {};
      now_.rank = named_rank_ != kUnknown ? named_rank_ : out_.ranks;
      now_.stage = stamp.tid - 1;
      ++out_.ranks;
    }
    now_.last_ns = *ns;
    if (begin) {
      if (now_.begun.contains(cell)) next_step();
      now_.begun.insert(cell);
      now_.open[cell] = {*ns, offset};
      return;
    }
    const auto open = now_.open.find(cell);
    if (open == now_.open.end()) return lose(problem::paddle_dynamic_unmatched_end, offset);
    const int64_t start_ns = open->second.start_ns;
    now_.open.erase(open);
    if (!sane_interval(start_ns, *ns)) return lose(problem::paddle_dynamic_bad_time_reversed, offset);
    if (out_.ops.size() >= kMaxOps) return lose(problem::paddle_dynamic_too_many_records, offset);
    Op op{.start_ns = start_ns, .end_ns = *ns, .rank = now_.rank, .stage = now_.stage, .step = now_.step};
    std::tie(op.kind, op.micro_batch, op.chunk) = cell;
    op.name_id = out_.names.intern(stamp.name);
    op.lane = kind_lane(op.kind);
    op.file = file_;
    op.file_index = static_cast<uint32_t>(out_.ops.size());
    out_.ops.push_back(op);
  }

  // A joined file consists of one rank's file after another. The next rank begins where the stage changes, or where the
  // first forward has an earlier timestamp than what stands before it.
  bool starts_rank(const Stamp& stamp, const CellName& cell, int64_t ns) const {
    if (now_.stage == kUnknown) return true;
    if (named_rank_ != kUnknown) return false;
    if (now_.stage != stamp.tid - 1) return true;
    return stamp.phase == 'B' && cell == CellName(CellKind::kForward, 0, 0) && ns < now_.last_ns;
  }

  void next_step() {
    drop_open();
    now_.begun.clear();
    ++now_.step;
  }
  void close_rank() { drop_open(); }
  void drop_open() {
    for (const auto& [cell, open] : now_.open) lose(problem::paddle_dynamic_unmatched_begin, open.offset);
    now_.open.clear();
  }

  const std::string& path_;
  uint32_t file_;
  int32_t named_rank_;
  RecordOps out_;
  RankState now_;
  od::parser parser_;
};

// `rank` is the global rank in the file's name; kUnknown for a joined file, whose ranks are distinguished by stage and
// by times that go back. Errors: as Input::open.
Result<RecordOps> read_records(const std::string& path, uint32_t file, int32_t rank, Progress* progress) {
  return RecordReader(path, file, rank).read(progress);
}

constexpr std::string_view kLead = "profile_record_tmp_file_for_rank_";
constexpr std::string_view kFormat = "paddle_dynamic";

int32_t rank_of(const std::string& path) {
  std::string name = file_name(path);
  if (!name.starts_with(kLead)) return kUnknown;
  for (const std::string_view suffix : {".gz", ".zst"})
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  const auto rank = parse_int(std::string_view(name).substr(kLead.size()));
  return rank && *rank >= 0 && *rank <= kMaxRankNumber ? static_cast<int32_t>(*rank) : kUnknown;
}

// The category identifies these files; the static-graph tool's file of the same name does not have it.
bool looks_ours(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos || (head[at] != '[' && head[at] != '{')) return false;
  return holds(head, "\"pipeline timeline\"") || holds(head, "\"virtual pipeline timeline\"");
}

// Chooses the records of single ranks or, where there are none, files that were joined of them.
std::vector<size_t> choose_files(const Source& source, Diagnostics& diagnostics) {
  std::vector<size_t> records, joined;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (looks_ours(source.head(i))) (rank_of(file.path) == kUnknown ? joined : records).push_back(i);
    else if (file.given || rank_of(file.path) != kUnknown)
      diagnostics.add(problem::paddle_dynamic_unusable_file, {file.path});
  }
  // A joined file next to the files that it was made of contains nothing new.
  if (!records.empty() && !joined.empty())
    diagnostics.add(problem::paddle_dynamic_joined_file_ignored, {source.files[joined[0]].path}, joined.size());
  return records.empty() ? joined : records;
}

}  // namespace

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  for (size_t i = 0; i < std::min(source.files.size(), kSniffedFiles); ++i)
    if (looks_ours(source.head(i))) return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-dynamic";
  trace.clock = ClockState::kUnaligned;
  const std::vector<size_t> chosen = choose_files(source, trace.diagnostics);
  expect_bytes(source, chosen, options.progress);
  std::vector<Op> ops;
  auto paths = mapped<std::string>(chosen, [&](const size_t i) { return source.files[i].path; });
  int64_t next_rank = 0;
  auto first_error = read_files(
      paths.size(),
      [&](size_t k) { return read_records(paths[k], static_cast<uint32_t>(k), rank_of(paths[k]), options.progress); },
      [&](size_t k, RecordOps file) {
        if (rank_of(paths[k]) == kUnknown) {
          for (Op& op : file.ops)
            op.rank = static_cast<int32_t>(std::min<int64_t>(op.rank + next_rank, kMaxRankNumber));
          next_rank += file.ranks;
          trace.diagnostics.add(problem::paddle_dynamic_ranks_inferred, {paths[k]}, file.ranks);
        }
        append_ops(std::move(file.ops), file.names, trace, ops);
        trace.diagnostics.merge(file.diagnostics);
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::paddle_dynamic_unusable_file, {paths[k]}); });
  if (ops.empty())
    return nothing_read(std::move(first_error), source, "no complete forward or backward in these records",
                        "expected files profile_record_tmp_file_for_rank_N with lines such as {\"name\": \"F0\", "
                        "\"cat\": \"pipeline timeline\", \"ph\": \"B\", …}");
  resolve_ranks(ops, kFormat, trace.diagnostics);
  trace.diagnostics.add(problem::paddle_dynamic_steps_counted);
  build_parts(ops, kind_lane_names(), paths, trace);
  count_duplicates(trace, kFormat, trace.diagnostics);
  trace.description = std::to_string(trace.parts.size()) + (trace.parts.size() == 1 ? " rank" : " ranks") +
                      " of Paddle's dynamic-graph pipeline timestamps";
  return trace;
}

}  // namespace stageline::paddle_dynamic
