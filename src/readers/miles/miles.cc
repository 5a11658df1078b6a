// Reads what the dashboard of miles recorded, phases and trajectories: docs/formats/miles.md.
//
// A phase is {name, t0, t1, node, gpus, rank, role}, in seconds; a line with its end follows one with t1 −1.
// A trajectory is a pair of events, attempt_start and attempt_end of one sample_index.
#include <filesystem>

#include "base/json_members.h"
#include "readers/common/host_spans.h"
#include "readers/common/json_lines.h"
#include "readers/common/read_files.h"
#include "readers/common/row_kinds.h"
#include "readers/miles/problems.h"

namespace stageline::miles {
namespace {

struct Phase {
  std::string role, name, node;
  int64_t rank = kUnknown, start_ns = 0, end_ns = 0;  // end_ns: −1 where it is open
  std::vector<int64_t> gpus;
  auto key() const { return std::tie(role, rank, start_ns, name); }
};
struct Event {  // the start or the end of a trajectory
  int64_t sample = 0, time_ns = 0;
  bool ends = false;
  std::string name;  // "trajectory 17"
  auto key() const { return std::tie(sample, time_ns, ends); }
};
struct Log {
  std::vector<Phase> phases;
  std::vector<Event> events;
  Diagnostics diagnostics;
};

// Returns −1 for an open end, and for a text that is not a time.
int64_t seconds(std::string_view value) {
  const int64_t ns = parse_decimal_ns(value, 9).value_or(-1);
  return ns <= kMaxTimeNs ? std::max<int64_t>(ns, -1) : -1;
}

bool take_line(std::string_view text, Log& out) {
  Phase phase;
  Event event;
  std::string kind;
  for (const auto& [key, value, whole] : json_members(text)) {
    if (key == "t0") phase.start_ns = seconds(value);
    if (key == "t1") phase.end_ns = seconds(value);
    if (key == "ts") event.time_ns = seconds(value);
    if (key == "name") phase.name = valid_utf8(json_text(value));
    if (key == "role") phase.role = valid_utf8(json_text(value));
    if (key == "node") phase.node = valid_utf8(json_text(value));
    if (key == "rank") phase.rank = json_integer(value).value_or(kUnknown);
    if (key == "gpus")
      for (const JsonMember& gpu : json_members(value)) phase.gpus.push_back(json_integer(gpu.value).value_or(-1));
    if (key == "kind") kind = json_text(value);
    if (key == "sample_index") event.sample = json_integer(value).value_or(-1);
  }
  if (out.phases.size() + out.events.size() >= kMaxOps) return false;
  if (!kind.empty() && event.time_ns > 0 && event.sample >= 0) {
    event.ends = kind == "attempt_end";
    event.name = "trajectory " + std::to_string(event.sample);
    if (event.ends || kind == "attempt_start") out.events.push_back(std::move(event));
    return true;
  }
  const bool ranked = phase.role != "train" || (phase.rank >= 0 && phase.rank < kMaxRankNumber);
  if (phase.start_ns <= 0 || phase.end_ns == 0 || phase.name.empty() || !ranked) return false;
  if (phase.end_ns >= 0 && phase.end_ns < phase.start_ns) return false;
  out.phases.push_back(std::move(phase));
  return true;
}

// A phase that is known to have ended counts once. Derived ones repeat what others say.
void close_phases(std::vector<Phase>& phases, Diagnostics& diagnostics) {
  std::erase_if(phases, [](const Phase& phase) { return phase.role == "derived"; });
  sort_stably(phases, {}, [](const Phase& phase) { return std::tuple(phase.key(), -phase.end_ns); });
  const auto again = std::ranges::unique(phases, {}, &Phase::key);
  phases.erase(again.begin(), again.end());
  const size_t open = std::erase_if(phases, [](const Phase& phase) { return phase.end_ns < 0; });
  diagnostics.add(problem::miles_open_phase, {}, static_cast<int64_t>(open));
}

// The phases of each rank of training, and behind them those of the rollouts. One rank writes the phases that several
// have in common.
std::map<int64_t, std::vector<const Phase*>> phases_of_ranks(const std::vector<Phase>& phases) {
  std::map<std::pair<std::string, int64_t>, int64_t> rank_of_gpu;
  int64_t rollouts = 0;
  for (const Phase& phase : phases) {
    if (phase.role != "train") continue;
    rollouts = std::max(rollouts, phase.rank + 1);
    if (phase.gpus.size() == 1) rank_of_gpu[{phase.node, phase.gpus[0]}] = phase.rank;
  }
  std::map<int64_t, std::vector<const Phase*>> out = {{rollouts, {}}};
  for (const Phase& phase : phases) {
    const bool trains = phase.role == "train";
    std::set<int64_t> ranks = {trains ? phase.rank : rollouts};
    for (const int64_t gpu : phase.gpus)
      if (const auto at = rank_of_gpu.find({phase.node, gpu}); trains && at != rank_of_gpu.end())
        ranks.insert(at->second);
    for (const int64_t rank : ranks) out[rank].push_back(&phase);
  }
  return out;
}

void add_trajectories(const std::vector<Event>& events, std::vector<HostSpan>& spans, Diagnostics& diagnostics) {
  const Event* open = nullptr;
  int64_t lost = 0;
  for (const Event& event : events) {
    const bool pairs = open && open->sample == event.sample;
    if (event.ends && pairs)
      spans.push_back({open->time_ns, event.time_ns, static_cast<uint64_t>(event.sample) + 1, event.name});
    lost += event.ends ? !pairs : open != nullptr;
    open = event.ends ? nullptr : &event;
  }
  diagnostics.add(problem::miles_unmatched_event, {}, lost + (open != nullptr));
}

// Steps begin where training begins to wait for a batch.
void add_steps(const std::vector<const Phase*>& phases, PartBuilder& builder) {
  std::vector<int64_t> borders;
  int64_t end_ns = 0;
  for (const Phase* phase : phases) {
    if (phase->name == "train_wait") borders.push_back(phase->start_ns);
    end_ns = std::max(end_ns, phase->end_ns);
  }
  std::ranges::sort(borders);
  borders.push_back(end_ns);
  for (size_t k = 0; k + 1 < borders.size(); ++k) builder.step(static_cast<int64_t>(k), borders[k], borders[k + 1]);
}

void make_parts(Log& log, const std::string& path, Trace& trace) {
  close_phases(log.phases, trace.diagnostics);
  sort_stably(log.events, {}, &Event::key);
  const auto of_rank = phases_of_ranks(log.phases);
  for (const auto& [rank, phases] : of_rank) {
    PartBuilder builder(path, gpu_rows::kKinds, "miles");
    std::vector<HostSpan> spans;
    for (const Phase* phase : phases) spans.push_back({phase->start_ns, phase->end_ns, 0, phase->name});
    if (rank == of_rank.rbegin()->first) add_trajectories(log.events, spans, trace.diagnostics);
    if (spans.empty()) continue;
    if (rank == of_rank.rbegin()->first)
      trace.diagnostics.add(problem::miles_rank_of_rollouts, Args().set("rank", std::to_string(rank)));
    add_steps(phases, builder);
    add_host_spans(rank + 1, std::move(spans), builder);
    finish_host_part(builder, rank, phases.empty() ? "" : phases.front()->node, trace);
  }
}

bool looks_like_log(std::string_view head) {
  const std::string_view line = first_json_line(head);
  const auto has = [&](std::string_view key) { return holds(line, key); };
  return (has("\"t0\"") && has("\"t1\"") && has("\"gpus\"") && has("\"role\"")) ||
         (has("\"kind\"") && has("\"sample_index\"") && has("\"weight_version\""));
}

// A dashboard's other files have other names. One of these that does not look like a log was emptied, overwritten, or
// cut.
bool is_named_as_log(const std::filesystem::path& path) {
  return path.filename() == "trajectories.jsonl" || path.parent_path().filename() == "phases";
}

}  // namespace

Match sniff(const Source& source) { return sniff_heads(source, looks_like_log); }

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "miles";
  const std::vector<std::string> paths =
      files_that(looks_like_log, source, options, problem::miles_unusable_file, trace.diagnostics);
  for (const SourceFile& file : source.files)
    if (!file.given && is_named_as_log(file.path) && std::ranges::find(paths, file.path) == paths.end())
      trace.diagnostics.add(problem::miles_unusable_file, {file.path});
  Log all;
  auto first_error = read_files(
      paths.size(),
      [&](size_t k) -> Result<Log> {
        Log log;
        TRY_OK(each_json_line(paths[k], options.progress,
                              {problem::miles_bad_line, problem::miles_damaged_text, problem::miles_read_stopped},
                              log.diagnostics, [&](const JsonSpan& span) { return take_line(span.text, log); }));
        return log;
      },
      [&](size_t, Log log) {
        trace.diagnostics.merge(log.diagnostics);
        std::ranges::move(log.phases, std::back_inserter(all.phases));
        std::ranges::move(log.events, std::back_inserter(all.events));
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::miles_unusable_file, {paths[k]}); });
  if (!paths.empty()) make_parts(all, paths.front(), trace);
  if (trace.parts.empty()) return nothing_read(std::move(first_error), source, "miles.nothing");
  settle_hosts(trace);
  trace.diagnostics.add(problem::miles_host_times);
  trace.description = counted(std::ssize(trace.parts), "process", "processes") + " of miles' dashboard";
  return trace;
}

}  // namespace stageline::miles
