// Reads Chrome-trace JSON whose events have pipeline arguments: see docs/formats/op-json.md.
#include "base/json_events.h"
#include "readers/common/op_names.h"
#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/op_json/problems.h"
#include "readers/op_json/threads.h"

namespace stageline::op_json {
namespace {

constexpr size_t kSniffedEvents = 500;
constexpr size_t kSniffedFiles = 64;
constexpr std::string_view kFormat = "op_json";

Match match_of(const Event& event) {
  const EventArgs& args = event.args;
  if (event.phase == 'M') return event.args.name.starts_with("PP rank ") ? Match::kCertain : Match::kNo;
  if (event.phase != 'X' && event.phase != 'E' && event.phase != 'B') return Match::kNo;
  if (is_straggler_analysis(args) || is_ndtimeline(args)) return Match::kCertain;
  if (args.has(kArgMicroBatch | kArgChunk) && args.has_any(kArgStage | kArgStep | kArgRank)) return Match::kCertain;
  if (args.has(kArgKind)) {
    const bool placed = args.has_any(kArgStep | kArgMicroBatch | kArgRank | kArgStage);
    return placed && kind_of_op(args.kind) ? Match::kCertain : Match::kNo;
  }
  if (!args.has_any(kArgStep | kArgStage | kArgChunk | kArgMicroBatch | kArgRank | kArgDp)) return Match::kNo;
  const bool known = kind_of_op(event.name) || parse_cell_label(event.name);
  return known ? Match::kMaybe : Match::kNo;
}

// Returns true for files of the same form that other tools write.
bool is_foreign(std::string_view head) {
  for (const std::string_view mark : {"\"schemaVersion\"", "\"deviceProperties\"", "\"External id\"", "\"Ev Idx\"",
                                      "\"baseTimeNanoseconds\"", "pipeline timeline\""})
    if (head.find(mark) != std::string_view::npos) return true;
  return false;
}

Match sniff_head(std::string_view head) {
  size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos || (head[at] != '[' && head[at] != '{') || is_foreign(head)) return Match::kNo;
  if (head[at] == '{') {
    at = head.find("\"traceEvents\"", at);
    if (at != std::string_view::npos) at = head.find('[', at);
    if (at == std::string_view::npos) return Match::kNo;
  }
  std::string text(head);
  text.append(kJsonPaddingBytes, ' ');
  EventParser parser;
  Match best = Match::kNo;
  size_t events = 0, metadata = 0;
  for (; events < kSniffedEvents; ++events) {
    const size_t open = head.find_first_not_of(" \t\r\n,[", at);
    if (open == std::string_view::npos || head[open] != '{') break;
    at = after_closing_brace(head, open);
    if (at == std::string_view::npos) break;
    Event event;
    if (parser.parse(std::string_view(text).substr(open, at - open), at - open + kJsonPaddingBytes, event) !=
        EventFault::kNone)
      continue;
    metadata += event.phase == 'M';
    best = std::max(best, match_of(event));
    if (best == Match::kCertain) return best;
  }
  // The file of a job with many ranks may begin with more names than the head can hold.
  if (best == Match::kNo && events == kSniffedEvents && metadata == events) return Match::kMaybe;
  return best;
}

bool could_be_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return at != std::string_view::npos && (head[at] == '[' || head[at] == '{');
}

// Returns the number after the last "rank" in the name: "trace_rank3.json", "rank-12.json.gz".
int32_t rank_in_name(const std::string& path) {
  const std::string name = file_name(path);
  size_t at = name.rfind("rank");
  if (at == std::string::npos) return kUnknown;
  at = name.find_first_not_of("_-", at + 4);
  if (at == std::string::npos) return kUnknown;
  int32_t rank = 0;
  const auto [end, ec] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
  return ec == std::errc() && rank >= 0 && rank <= kMaxRankNumber ? rank : kUnknown;
}

std::vector<size_t> files_to_read(const Source& source) {
  std::vector<size_t> ours, possible;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string_view head = source.head(i);
    if (sniff_head(head) != Match::kNo) ours.push_back(i);
    if (could_be_json(head)) possible.push_back(i);
  }
  return ours.empty() ? possible : ours;  // with --reader: everything that may hold events
}

// Numbers the lanes; threads come in the order of their numbers, and lanes with the same name are one lane.
class Lanes {
 public:
  void add(FileOps& file, const std::vector<std::string>& thread_names) {
    std::vector<size_t> order(thread_names.size());
    for (size_t t = 0; t < order.size(); ++t) order[t] = t;
    sort_stably(order, {}, [&](size_t a) { return std::pair(file.threads[a].pid_number, file.threads[a].tid_number); });
    std::vector<uint32_t> lane(thread_names.size());
    for (const size_t t : order) {
      const auto [it, added] = ids_.try_emplace(thread_names[t], static_cast<uint32_t>(names.size()));
      if (added) names.push_back(thread_names[t]);
      lane[t] = it->second;
    }
    for (Op& op : file.ops) op.lane = lane[op.lane];
  }
  std::vector<std::string> names;

 private:
  std::map<std::string, uint32_t> ids_;
};

std::string describe(const Trace& trace, size_t files) {
  const auto counted = [](size_t n, const std::string& word) {
    return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
  };
  return counted(files, "file") + " of pipeline events, " + counted(trace.parts.size(), "rank");
}

}  // namespace

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < std::min(source.files.size(), kSniffedFiles) && best != Match::kCertain; ++i)
    best = std::max(best, sniff_head(source.head(i)));
  return best;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const std::vector<size_t> chosen = files_to_read(source);
  expect_bytes(source, chosen, options.progress);
  Trace trace;
  trace.format = "op-json";
  trace.clock = ClockState::kUnaligned;
  std::vector<Op> ops;
  std::vector<std::string> paths;
  Lanes lanes;
  size_t used = 0;
  for (const size_t i : chosen) paths.push_back(source.files[i].path);
  const auto unusable = [&](const std::string& path) { trace.diagnostics.add(problem::op_json_unusable_file, {path}); };
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_timeline(paths[k], static_cast<uint32_t>(k), options.progress); },
      [&](size_t k, FileOps file) {
        if (file.pipeline_events == 0) return unusable(paths[k]);
        ++used;
        lanes.add(file, identify_threads(file, paths.size() > 1 ? rank_in_name(paths[k]) : kUnknown));
        append_ops(std::move(file.ops), file.names, trace, ops);
        trace.diagnostics.merge(file.diagnostics);
        trace.lossy_steps.insert(trace.lossy_steps.end(), file.lossy_steps.begin(), file.lossy_steps.end());
      },
      [&](size_t k, const Error&) { unusable(paths[k]); });
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && std::ranges::find(chosen, i) == chosen.end()) unusable(source.files[i].path);
  if (ops.size() > kMaxOps)
    return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxOps) + " events",
                      "read fewer ranks or steps at once", {paths.front()});
  if (ops.empty()) return nothing_read(std::move(first_error), source, "op_json.nothing");

  resolve_ranks(ops, kFormat, trace.diagnostics);
  if (ops.empty()) return input_error("op_json.no_rank", {paths.front()});
  settle_steps(ops, kFormat, "event", trace);
  build_parts(ops, lanes.names, paths, trace);
  count_duplicates(trace, kFormat, trace.diagnostics);
  trace.description = describe(trace, used);
  return trace;
}

}  // namespace stageline::op_json
