// The steps of a recording while it is being made; `stageline tail` prints them, and `view --follow` draws them.
//
//   newest two files of each recording, its memory ──▶ open_trace ──▶ the steps that are over
//
// The cost of a look is bounded by the steps that are asked for, and does not grow with the run. Only the end of each
// file is read, as much as those steps take. That amount is doubled until the steps are whole, made smaller where far
// more than those steps was read, and remembered for the next look. Between two looks only the sizes of files are asked
// for: no further step can be over before every rank that was in the step under way has written.
#pragma once

#include <chrono>

#include "engine/engine.h"

namespace stageline {

// The first and the last step of each part.
using StepsOfParts = std::map<int32_t, std::pair<int32_t, int32_t>>;

// One finished step, in numbers that are measured and not judged.
struct RunningStep {
  int32_t step = 0;
  int64_t start_ns = 0;  // on the run's axis
  int64_t dur_ns = 0;
  double bubble = -1;  // share of the pipeline's span, mean over ranks; −1 when nothing was computed
  size_t ranks = 0;    // number of ranks that computed
  // The stage that computed longest (mean of its ranks), and its time ÷ that of the middle stage; −1 with fewer than
  // two stages.
  int32_t stage = -1;
  double stage_ratio = 0;
  // The rank that computed longest compared with the median of its stage's ranks; −1 where no stage has three ranks.
  int32_t rank = -1;
  double rank_ratio = 0;
};

struct Look {
  enum class State : uint8_t {
    kWaiting,    // there is nothing to report yet; `why` gives the reason
    kGathering,  // ranks were added since the last look, so others may follow
    kRecording,  // the job is running
    // The recording was not closed and nothing was written for a minute: the job was killed, or its machine is gone.
    kSilent,
    kClosed,
  };
  State state = State::kWaiting;
  std::string why;
  Trace trace;  // the finished steps that are whole in what was read; without cells when there are none
  std::vector<RunningStep> steps;  // the same steps, in ascending order
  // The last of them is not over by the rule, since not every rank has begun the next step. Every rank has recorded as
  // much work of each kind in it as in each of the steps before. More may still be added to it.
  bool last_may_grow = false;
  int32_t under_way = -1;       // the step that the slowest rank is in; −1 when no rank has begun one
  std::vector<int32_t> behind;  // the ranks that are in that step while others are further
  size_t ranks = 0;             // number of ranks that have recorded work
  int64_t lost_records = 0;     // records that the recorder dropped, as it reports itself
  int64_t without_device = 0;   // records with the host's times in place of the device's
};

// Keeps only the steps from `first` on in a look's trace.
void keep_steps_from(Trace& trace, int32_t first);

class NewestSteps {
 public:
  // The paths need not exist yet.
  NewestSteps(std::vector<std::string> paths, OpenOptions options);

  // Returns all finished steps after step `after`, and at least the last `count` finished ones, if the recording
  // contains them. INT32_MIN for `after`: earlier steps are not asked for. With `early`, the step under way is among
  // them as soon as it seems whole (Look::last_may_grow). The time is linear in the size of these steps in the files.
  Look look(int32_t after, size_t count, bool early = false);

  // Sleeps until a further step may be over since the last look, and no longer than a second. Records that a recorder
  // still has in memory change no file's size; if such recordings are waited for, it sleeps a quarter of a second.
  void wait_for_more() const;

  bool waited() const { return waited_; }  // the recording did not exist at the first look, so all its steps are new

 private:
  struct Awaited {
    std::string path;
    int64_t size;
  };
  void await(const Trace& trace, const StepsOfParts& parts, const std::set<int32_t>& done,
             const std::vector<Awaited>& files);
  Result<Trace> read(const std::vector<std::string>& files, int32_t after, size_t count, int32_t& first_whole);

  std::vector<std::string> paths_;
  OpenOptions options_;
  int64_t newest_bytes_;
  int64_t too_few_bytes_ = 0;     // this number did not contain the steps of the last look
  size_t count_ = 0;              // the number of steps that was asked for then
  bool whole_ = false;            // steps are numbered by what repeats, so the beginning of the files is needed
  std::set<int32_t> ranks_;       // the ranks that had work at the last look
  std::vector<Awaited> awaited_;  // the files that must grow before a further step can be over, with their sizes
  bool in_memory_ = true;         // something may also be added where no file grows
  bool waited_ = false;
};

// Computes the pause after a look, so that all looks together use at most a share of one core. It counts the
// processor's time and not the wall's: on a busy machine a look waits long, which must not make looks less frequent. A
// few looks may follow each other at once, as long as they use at most a second beyond their share.
class LookPace {
 public:
  explicit LookPace(double share);
  std::chrono::nanoseconds pause();  // called after each look

 private:
  const double share_;
  int64_t used_ns_, then_ns_;
  double debt_ns_ = 0;
};

}  // namespace stageline
