// stageline tail: prints a line for each training step of a recording that is still being made, once the step is over.
//
//   when every rank has written since the last look (all looks together use at most a quarter of a core):
//     the newest steps of each recording (engine/newest_steps.h) ──▶ those that are over and were not printed yet
//
// It ends when every recording is closed, or when none was written to for a minute, which means that their processes
// are gone. Numbers are those of a report on the same steps. A step is over when every rank that still records has
// begun a later step, or has closed its recording.
#include <sys/stat.h>

#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/open_run.h"
#include "engine/newest_steps.h"

namespace stageline {
namespace {

constexpr double kShare = 0.25;  // of a core, for all looks together

class Tail {
 public:
  Tail(const Terminal& terminal, bool json, size_t rows, std::vector<std::string> paths, const OpenOptions& options)
      : terminal_(terminal), json_(json), rows_(rows), steps_(std::move(paths), options) {}

  // Prints the steps that are over now. Returns true when every recording is closed.
  bool look() {
    // At the first look, only the last few of the earlier steps are printed; later, all new ones.
    const size_t wanted = stated_any_ ? 1 : rows_ == SIZE_MAX ? INT32_MAX : rows_;
    const Look now =
        steps_.look(stated_any_ ? printed_ : INT32_MIN, steps_.waited() && !stated_any_ ? INT32_MAX : wanted);
    if (now.state == Look::State::kWaiting) return wait_for(now.why);
    if (now.state == Look::State::kGathering) return false;
    std::vector<const RunningStep*> over;
    for (const RunningStep& step : now.steps)
      if (step.step > printed_) over.push_back(&step);
    // When we had to wait for the recording to begin, no step was before us, however many were over at the first look.
    const size_t first = stated_any_ || steps_.waited() || over.size() <= rows_ ? 0 : over.size() - rows_;
    for (size_t i = first; i < over.size(); ++i) print(*over[i]);
    if (!over.empty()) printed_ = over.back()->step;
    stated_any_ |= !over.empty();
    std::fflush(stdout);
    if (now.state == Look::State::kSilent) note(terminal_, say(words("tail.silent")));
    return now.state != Look::State::kRecording;
  }

  void wait_for_more() const { steps_.wait_for_more(); }

 private:
  std::string say(const Text& text) const { return terminal_.chinese() ? text.zh : text.en; }
  // Prints the reason only once: it may pass in a moment, or the name may be mistyped.
  bool wait_for(const std::string& why) {
    if (!waited_) note(terminal_, say(words("tail.waiting", Args().set("why", why))));
    waited_ = true;
    return false;
  }

  void print(const RunningStep& line) {
    std::string text;
    if (json_) {
      JsonWriter json;
      json.begin_object().field("step", int64_t{line.step}).field("dur_ns", line.dur_ns);
      json.field("ranks", line.ranks).maybe("bubble_share", line.bubble >= 0, line.bubble);
      json.maybe("slowest_stage", line.stage >= 0, line.stage);
      json.maybe("ratio_to_median", line.stage >= 0, line.stage_ratio);
      json.maybe("slowest_rank", line.rank >= 0, line.rank);
      json.maybe("rank_ratio_to_median", line.rank >= 0, line.rank_ratio);
      text = json.end_object().take();
    } else {
      const auto padded = [](const std::string& word, int columns) {
        const int missing = std::max(0, columns - display_width(word));
        return std::string(missing, ' ') + word;
      };
      const auto column = [&](const char* name, int columns) { return padded(say(words(name)), columns); };
      if (!stated_header_)
        std::fputs((column("tail.step", 8) + "  " + column("tail.time", 10) + "  " + column("tail.bubble", 7) + "  " +
                    column("tail.slowest", 0) + "\n")
                       .c_str(),
                   stdout);
      stated_header_ = true;
      std::string slowest = "–";
      if (line.stage >= 0)
        slowest = say(words("tail.stage_ratio",
                            Args().set("stage", int64_t{line.stage}).set("ratio", fixed(line.stage_ratio, 2))));
      // A rank that is less than one percent slower than its peers is not mentioned in the line.
      if (line.rank >= 0 && line.rank_ratio >= 1.01)
        slowest += say(
            words("tail.rank_ratio", Args().set("rank", int64_t{line.rank}).set("ratio", fixed(line.rank_ratio, 2))));
      text = padded(std::to_string(line.step), 8) + "  " + padded(human_duration(line.dur_ns), 10) + "  " +
             padded(line.bubble >= 0 ? fixed(line.bubble * 100, 1) + " %" : "–", 7) + "  " + slowest;
    }
    std::fputs((text + "\n").c_str(), stdout);
  }

  const Terminal& terminal_;
  bool json_;
  size_t rows_;
  NewestSteps steps_;
  int32_t printed_ = INT32_MIN;
  bool stated_any_ = false, stated_header_ = false, waited_ = false;
};

}  // namespace

Result<int> run_tail(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return make_error(ErrorCode::kUsage, "tail comes as text or json, not \"" + format + "\"");
  TRY(rows, arguments.integer("rows", 10, 0, INT32_MAX));
  TRY(options, open_options(arguments, "", Clocks::kCompared));
  // A folder may get a recording, and so may a name that is not there yet. A file that is something else stays it.
  for (const std::string& path : arguments.operands) {
    struct stat facts;
    if (path.ends_with(".slrec") || path.ends_with(".slhot") || stat(path.c_str(), &facts) != 0 ||
        S_ISDIR(facts.st_mode))
      continue;
    return make_error(ErrorCode::kUsage, "tail waits for recordings (*.slrec), and this file will never be one",
                      "name the folder that stageline record writes to", {path});
  }
  Tail tail(*terminal, format == "json", *rows == 0 ? SIZE_MAX : static_cast<size_t>(*rows), arguments.operands,
            *options);
  for (LookPace pace(kShare);;) {
    if (tail.look()) return kExitGood;
    if (std::ferror(stdout)) return kExitGood;  // the reader of the output is gone
    std::this_thread::sleep_for(pace.pause());
    tail.wait_for_more();
  }
}

}  // namespace stageline
