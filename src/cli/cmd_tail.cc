// stageline tail: a line for each training step of a recording that is still being made, once the step is over.
//
//   every second (or ten times what a look took, whichever is longer):
//     the newest two files of each recording and its memory ──▶ open_trace ──▶ steps that are over and were not said
//
// It ends when every recording is closed, or none was written to for a minute: their processes are gone.
// Numbers are those of a report on the same steps. A step is over when every rank that still records has begun a later
// one, or has closed its recording. What a look costs is bounded by the two files (STAGELINE_ROTATE_MB each).
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "model/pipeline_sums.h"
#include "model/stage_costs.h"
#include "readers/reader.h"

namespace stageline {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSilentNs = 60 * kSecond;  // a recorder writes its clocks every few seconds
constexpr size_t kNewestFiles = 2;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * kSecond + t.tv_nsec;
}

// Of "…/host.r00003.p4711.1700000000.002.slrec" all but the last two of each recording. Hot files stay.
std::vector<std::string> newest_files(const Source& source) {
  std::map<std::string, std::vector<std::string>> by_recording;
  std::vector<std::string> out;
  for (const SourceFile& file : source.files) {
    const size_t end = file.path.rfind(".slrec");
    const size_t dot = end == std::string::npos ? end : file.path.rfind('.', end - 1);
    if (dot != std::string::npos)
      by_recording[file.path.substr(0, dot)].push_back(file.path);
    else if (file.path.ends_with(".slhot"))
      out.push_back(file.path);
  }
  for (auto& [stem, files] : by_recording) {
    std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;  // part 1000 is after 999
    });
    const size_t first = files.size() > kNewestFiles ? files.size() - kNewestFiles : 0;
    out.insert(out.end(), files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
  }
  return out;
}

struct StepLine {
  int32_t step = 0;
  int64_t dur_ns = 0;
  double bubble = -1;    // share of the pipeline's span, mean of the ranks; −1: nothing computed
  int32_t stage = -1;    // that was busy longest; −1: fewer than two stages
  double to_median = 0;  // its busy time by that of the middle one
  size_t ranks = 0;
};

StepLine line_of(const Trace& trace, const StepSums& step, const std::vector<RankSums>& ranks) {
  StepLine line;
  line.step = step.step;
  line.dur_ns = step.span_ns();
  std::map<int32_t, std::pair<int64_t, int64_t>> busy;  // stage → time, ranks
  int64_t bubble_ns = 0;
  for (const RankSums& rank : ranks) {
    if (rank.step != step.step) continue;
    ++line.ranks;
    bubble_ns += rank.span_bubble_ns;
    const int32_t stage = trace.parts[static_cast<size_t>(rank.part)].stage;
    if (stage == kUnknown) continue;
    busy[stage].first += rank.busy_ns;
    ++busy[stage].second;
  }
  if (line.ranks > 0 && step.pipeline_span_ns() > 0)
    line.bubble =
        static_cast<double>(bubble_ns) / static_cast<double>(line.ranks) / static_cast<double>(step.pipeline_span_ns());
  std::vector<double> means;
  double most = 0;
  for (const auto& [stage, sum] : busy) {
    means.push_back(static_cast<double>(sum.first) / static_cast<double>(sum.second));
    if (means.back() <= most) continue;
    most = means.back();
    line.stage = stage;
  }
  if (means.size() < 2) return line.stage = -1, line;
  const double median = median_of(std::move(means));
  line.to_median = median > 0 ? most / median : 0;
  return line;
}

class Tail {
 public:
  Tail(const Terminal& terminal, bool json, size_t rows) : terminal_(terminal), json_(json), rows_(rows) {}

  // Says what is over now. True: every recording is closed.
  bool look(const std::vector<std::string>& paths, OpenOptions options) {
    Result<Source> source = scan_source(paths);
    if (!source) return wait_for(source.error());
    const std::vector<std::string> files = newest_files(*source);
    if (files.empty()) return wait_for({ErrorCode::kBadInput, "no recording there yet", {paths[0]}, ""});
    options.reader = "recording";
    Result<Trace> trace = open_trace(files, options);
    if (!trace) return wait_for(trace.error());  // no range yet, or a file went while we looked
    const bool closed =
        trace->diagnostics.count("recording.not_closed") == 0 && trace->diagnostics.count("recording.cut") == 0;
    const bool silent = !closed && is_silent(files);
    if (!say(*trace, closed || silent)) return false;
    if (silent)
      note(terminal_, "nothing was written for a minute: the recorded processes were killed, or their machine is gone");
    return closed || silent;
  }

 private:
  static bool is_silent(const std::vector<std::string>& files) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return std::none_of(files.begin(), files.end(), [&](const std::string& path) {
      struct stat facts;
      return stat(path.c_str(), &facts) == 0 && (now.tv_sec - facts.st_mtim.tv_sec) * kSecond < kSilentNs;
    });
  }

  // Said once: it may be a moment's matter, or a name mistyped.
  bool wait_for(const Error& error) {
    if (!waited_) note(terminal_, "waiting: " + error.text());
    waited_ = true;
    return false;
  }

  // False: ranks came since the last look, and others may be about to: nothing is said yet, of which some would be
  // missing. Only where we were there first; of a recording that was there before us all ranks are.
  bool say(const Trace& trace, bool closed) {
    std::set<int32_t> ranks;
    for (size_t i = 0; i < trace.cells.size(); ++i)
      ranks.insert(trace.parts[static_cast<size_t>(trace.cells.part[i])].rank);
    const bool settled = !waited_ || ranks == ranks_;
    ranks_ = std::move(ranks);
    if (!settled) return false;
    std::map<int32_t, int32_t> last;  // part → its last step
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      const auto [at, is_new] = last.try_emplace(trace.cells.part[i], trace.cells.step[i]);
      if (!is_new) at->second = std::max(at->second, trace.cells.step[i]);
    }
    int32_t under_way = INT32_MAX;
    for (const auto& [part, step] : last) under_way = std::min(under_way, step);
    const PipelineSums sums = pipeline_sums(trace);
    std::vector<const StepSums*> over;
    for (const StepSums& step : sums.steps)
      if (step.step > said_ && (closed || step.step < under_way)) over.push_back(&step);
    // Of what was before we came, the last few.
    // Where we waited for it to begin, nothing was before us, however many steps were over at the first look.
    const size_t first = said_any_ || waited_ || over.size() <= rows_ ? 0 : over.size() - rows_;
    for (size_t i = first; i < over.size(); ++i) print(line_of(trace, *over[i], sums.ranks));
    if (!over.empty()) said_ = over.back()->step;
    said_any_ |= !over.empty();
    std::fflush(stdout);
    return true;
  }

  void print(const StepLine& line) {
    std::string text;
    if (json_) {
      JsonWriter json;
      json.begin_object().field("step", int64_t{line.step}).field("dur_ns", line.dur_ns);
      json.field("ranks", static_cast<int64_t>(line.ranks)).key("bubble_share");
      line.bubble >= 0 ? json.value(line.bubble) : json.null();
      json.key("slowest_stage");
      line.stage >= 0 ? json.value(int64_t{line.stage}) : json.null();
      json.key("ratio_to_median");
      line.stage >= 0 ? json.value(line.to_median) : json.null();
      text = json.end_object().take();
    } else {
      if (!said_header_) std::fputs("    step        time   bubble  slowest stage\n", stdout);
      said_header_ = true;
      char bubble[32] = "–", stage[64] = "–", row[160];
      if (line.bubble >= 0) std::snprintf(bubble, sizeof bubble, "%.1f %%", line.bubble * 100);
      if (line.stage >= 0)
        std::snprintf(stage, sizeof stage, "%d, %.2f times the middle one", line.stage, line.to_median);
      const std::string time = human_duration(static_cast<double>(line.dur_ns));
      const auto bytes = [](std::string_view word, int columns) {  // printf counts bytes
        return columns + static_cast<int>(word.size()) - display_width(word);
      };
      std::snprintf(row, sizeof row, "%8d  %*s  %*s  %s", line.step, bytes(time, 10), time.c_str(), bytes(bubble, 7),
                    bubble, stage);
      text = row;
    }
    std::fputs((text + "\n").c_str(), stdout);
  }

  const Terminal& terminal_;
  bool json_;
  size_t rows_;
  int32_t said_ = INT32_MIN;
  std::set<int32_t> ranks_;  // that had work at the last look
  bool said_any_ = false, said_header_ = false, waited_ = false;
};

}  // namespace

int run_tail(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return fail({ErrorCode::kUsage, "tail comes as text or json, not \"" + format + "\"", {}, ""});
  const auto rows = arguments.integer("rows", 10, 0, INT32_MAX);
  if (!rows) return fail(rows.error());
  const Result<OpenOptions> options = open_options(arguments, "", Clocks::kCompared);
  if (!options) return fail(options.error());
  Tail tail(*terminal, format == "json", *rows == 0 ? SIZE_MAX : static_cast<size_t>(*rows));
  for (;;) {
    const int64_t before = now_ns();
    if (tail.look(arguments.operands, *options)) return kExitGood;
    if (std::ferror(stdout)) return kExitGood;  // nobody reads on
    const int64_t nap_ns = std::max(kSecond, 10 * (now_ns() - before));
    const timespec nap = {static_cast<time_t>(nap_ns / kSecond), static_cast<long>(nap_ns % kSecond)};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace stageline
