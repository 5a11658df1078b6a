// Reads torchtitan's structured logs (debug.enable_structured_logging): docs/formats/torchtitan.md.
//
// Each line is a JSON object. A span is a pair of events X_start and X_end (or X_error). The end's `value` is its exact
// length in milliseconds, by a clock of its own, and `time_us` is the wall clock. Instants may be called X_start too,
// so log_type decides. `seq_id` numbers the lines of a process.
#include "base/json_tree.h"
#include "readers/common/host_spans.h"
#include "readers/common/json_lines.h"
#include "readers/common/read_files.h"
#include "readers/common/row_kinds.h"
#include "readers/torchtitan/problems.h"

namespace stageline::torchtitan {
namespace {

// Ranks count within one source, so that two sources have a rank 0 each.
struct ProcessKey {
  std::string source;  // "training", "trainer", "generator"
  int64_t rank = kUnknown;
  auto operator<=>(const ProcessKey&) const = default;
};

struct Line {
  ProcessKey key;
  std::string host;
  int64_t pid = 0, sequence = 0, offset = 0;
  uint32_t file = 0;
  int64_t time_ns = 0, step = kUnknown;
  std::string type, type_name, event_name, task;
  std::optional<double> value;
  std::vector<std::string> tags;
};
struct LogFile {
  std::vector<Line> lines;
  Diagnostics diagnostics;
};

// Returns the time in microseconds; nullopt where the line is not a log's.
std::optional<int64_t> parse(std::string_view text, Line& line) {
  const Result<JsonTree> json = parse_json_tree(text, "");
  if (!json || json->broken_at >= 0) return std::nullopt;
  const Value of = json->tree.root(), tags = of["step_tags"];
  const auto index = [&](const char* key, int64_t most) {
    const auto number = of[key].integer();
    return number && *number >= 0 && *number <= most ? *number : kUnknown;
  };
  line.key = {std::string(of["source"].text()), index("global_rank", kMaxRankNumber)};
  line.host = of["host_name"].text();
  line.pid = of["pid"].integer().value_or(0);
  line.sequence = of["seq_id"].integer().value_or(0);
  line.step = index("step", kMaxStepNumber);
  line.type = of["log_type"].text();
  line.type_name = of["log_type_name"].text();
  line.event_name = of["event_name"].text();
  line.task = of["task_name"].text();
  line.value = of["value"].real();
  for (size_t i = 0; i < tags.size(); ++i) line.tags.emplace_back(tags.item(i).text());
  return of["time_us"].integer();
}

Result<LogFile> read_log(const std::string& path, uint32_t number, Progress* progress) {
  LogFile out;
  TRY_OK(
      each_json_line(path, progress,
                     {problem::torchtitan_bad_line, problem::torchtitan_damaged_text, problem::torchtitan_read_stopped},
                     out.diagnostics, [&](const JsonSpan& span) {
                       Line line;
                       const auto us = parse(span.text, line);
                       constexpr int64_t kMaxUs = kMaxTimeNs / 1000;
                       if (!us || line.type_name.empty() || *us <= 0 || *us > kMaxUs || out.lines.size() >= kMaxOps)
                         return false;
                       line.time_ns = *us * 1000;
                       line.offset = span.offset;
                       line.file = number;
                       out.lines.push_back(std::move(line));
                       return true;
                     }));
  return out;
}

bool drop_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

// Makes the part of one process, and of those that took its place after a restart.
class PartMaker {
 public:
  PartMaker(const std::vector<std::string>& paths, Trace& trace) : paths_(paths), trace_(trace) {}

  // Returns false, and makes no part, where there is no whole span.
  bool make(int64_t rank, std::vector<Line>& lines) {
    // A process numbers its lines, and one that was started again begins at 0.
    sort_stably(lines, {}, [](const Line& line) {
      return std::tuple(line.pid, line.sequence, line.time_ns, std::string_view(line.type_name));
    });
    PartBuilder builder(paths_[lines.front().file], gpu_rows::kKinds, "torchtitan");
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0 && lines[i].pid != lines[i - 1].pid) close_all();
      place(lines[i]);
    }
    close_all();
    if (spans_.empty()) return false;
    add_host_spans(lines.front().pid, std::move(spans_), builder);
    add_instants(builder);
    finish_host_part(builder, rank, lines.front().host, trace_);
    return true;
  }

 private:
  struct Open {  // a span that has begun
    const Line* start = nullptr;
    std::string name;
    int64_t error_ns = 0;  // when it failed, or 0
  };

  void lose(const Problem& problem, const Line& line) {
    trace_.diagnostics.add(problem, {paths_[line.file], 0, line.offset});
  }

  void place(const Line& line) {
    if (line.type == "instant") instants_.push_back(&line);
    if (line.type != "event") return;
    std::vector<Open>& open = open_[line.task];
    std::string name = line.type_name;
    if (drop_suffix(name, "_start")) {
      open.push_back({&line, name});
      return;
    }
    const bool failed = drop_suffix(name, "_error");
    if (!failed && !drop_suffix(name, "_end")) return lose(problem::torchtitan_bad_line, line);
    const auto last = std::ranges::find(open.rbegin(), open.rend(), name, &Open::name);
    if (last == open.rend()) return lose(problem::torchtitan_unmatched_end, line);
    if (failed) {  // an end may follow
      last->error_ns = line.time_ns;
      instants_.push_back(&line);
      return;
    }
    constexpr double kMaxMs = 1e12;
    const bool exact = line.value && *line.value >= 0 && *line.value < kMaxMs;
    const int64_t dur_ns = exact ? std::llround(*line.value * 1e6) : line.time_ns - last->start->time_ns;
    add(*last, line.time_ns - dur_ns, line.time_ns);
    open.erase(std::next(last).base());
  }

  void add(const Open& open, int64_t start_ns, int64_t end_ns) {
    const Line& line = *open.start;
    if (start_ns <= 0 || !sane_interval(start_ns, end_ns)) return lose(problem::torchtitan_bad_line, line);
    const std::string_view name = std::string_view(line.type_name).substr(0, open.name.size());
    const uint64_t task = tasks_.try_emplace(line.task, tasks_.size() + 1).first->second;
    spans_.push_back({start_ns, end_ns, task, name, name == "step" || name == "train_step" ? line.step : -1});
  }

  void close_all() {
    for (const auto& [task, open] : open_)
      for (const Open& one : open)
        if (one.error_ns != 0) add(one, one.start->time_ns, one.error_ns);
        else lose(problem::torchtitan_unmatched_start, *one.start);
    open_.clear();
  }

  void add_instants(PartBuilder& builder) {
    sort_stably(instants_, {}, &Line::time_ns);
    std::map<std::string_view, CounterSeries> series;
    for (const Line* const instant : instants_)
      if (instant->value && !instant->event_name.empty()) {
        CounterSeries& of = series[instant->event_name];
        of.name = instant->event_name;
        of.time_ns.push_back(instant->time_ns);
        of.value.push_back(*instant->value);
      } else {
        builder.part.marks.push_back({instant->time_ns, builder.text(instant->type_name), builder.main_thread(), 0});
      }
    for (auto& [name, of] : series) builder.part.counters.push_back(std::move(of));
  }

  const std::vector<std::string>& paths_;
  Trace& trace_;
  std::vector<HostSpan> spans_;
  std::vector<const Line*> instants_;
  std::map<std::string, std::vector<Open>> open_;  // by task
  std::map<std::string_view, uint64_t> tasks_;
};

// The first line has "log_type_name" and "global_rank".
bool looks_like_log(std::string_view head) {
  const std::string_view line = first_json_line(head);
  return holds(line, "\"log_type_name\"") && holds(line, "\"global_rank\"");
}

}  // namespace

Match sniff(const Source& source) {
  bool logs = false, profiles = false;
  for (size_t i = 0; i < source.files.size(); ++i) {
    logs |= looks_like_log(source.head(i));
    profiles |= holds(source.head(i), "\"traceEvents\"");
  }
  // A profile of the same run may lie next to the logs. It says more, so its reader takes the source.
  return !logs ? Match::kNo : profiles ? Match::kMaybe : Match::kCertain;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "torchtitan";
  const std::vector<std::string> paths =
      files_that(looks_like_log, source, options, problem::torchtitan_unusable_file, trace.diagnostics);
  std::map<ProcessKey, std::vector<Line>> processes;
  std::map<std::string, std::set<int64_t>> sources;  // and their ranks
  std::set<std::pair<int64_t, std::string>> tags;    // of steps
  bool ranked = true;
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_log(paths[k], static_cast<uint32_t>(k), options.progress); },
      [&](size_t, LogFile file) {
        trace.diagnostics.merge(file.diagnostics);
        for (Line& line : file.lines) {
          sources[line.key.source].insert(line.key.rank);
          ranked &= line.key.rank != kUnknown;
          for (const std::string& tag : line.tags) tags.emplace(line.step, tag);
          processes[line.key].push_back(std::move(line));
        }
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::torchtitan_unusable_file, {paths[k]}); });
  for (auto& [key, lines] : processes) {
    const bool own = ranked && sources.size() == 1;
    const int64_t rank = own ? key.rank : std::ssize(trace.parts);
    if (PartMaker(paths, trace).make(rank, lines) && !own)
      trace.diagnostics.add(
          problem::torchtitan_ranks_of_sources,
          Args().set("source", key.source).set("of", std::to_string(key.rank)).set("rank", std::to_string(rank)),
          {paths[lines.front().file]});
  }
  if (trace.parts.empty()) return nothing_read(std::move(first_error), source, "torchtitan.nothing");
  for (const auto& [name, ranks] : sources)
    if (const std::string missing = missing_ranks(ranks, *ranks.rbegin()); !missing.empty())
      trace.diagnostics.add(problem::torchtitan_missing_ranks, Args().set("source", name).set("missing", missing),
                            {paths.front()});
  for (const auto& [step, tag] : tags)
    if (step >= 0)
      trace.diagnostics.add(problem::torchtitan_tagged_step, Args().set("step", std::to_string(step)).set("tag", tag));
  settle_hosts(trace);
  trace.diagnostics.add(problem::torchtitan_host_times);
  trace.description = counted(std::ssize(trace.parts), "process", "processes") + " of torchtitan's structured logs";
  return trace;
}

}  // namespace stageline::torchtitan
