// The steps of a recording while it is being made: what `stageline tail` says and `view --follow` draws.
//
//   newest two files of each recording, its memory ──▶ open_trace ──▶ the steps that are over
//
// What a look costs is bounded by the steps that are asked for and not by the run's length: of each file only the end
// is read, as much of it as those steps take (doubled until they are whole, and remembered for the next look).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stageline {

// One step that is over, in numbers that are measured and not judged.
struct RunningStep {
  int32_t step = 0;
  int64_t start_ns = 0;  // on the run's axis
  int64_t dur_ns = 0;
  double bubble = -1;  // share of the pipeline's span, mean of the ranks; −1: nothing was computed
  size_t ranks = 0;    // that computed
  // The stage that computed longest, mean of its ranks, and that by the middle stage's; −1: fewer than two stages.
  int32_t stage = -1;
  double stage_ratio = 0;
  // The rank that computed longest by the median of its stage's ranks; −1: no stage has three ranks.
  int32_t rank = -1;
  double rank_ratio = 0;
};

struct Look {
  enum class State : uint8_t {
    kWaiting,    // there is nothing to say yet: `why`
    kGathering,  // ranks came since the last look, and others may be about to
    kRecording,  // the job runs
    kSilent,     // not closed, and nothing was written for a minute: killed, or its machine is gone
    kClosed,
  };
  State state = State::kWaiting;
  std::string why;
  Trace trace;                     // of the steps that are over and whole in what was read; no cells: none is
  std::vector<RunningStep> steps;  // these, ascending
  int32_t under_way = -1;          // the step that the last rank is in; −1: nobody has begun one
  std::vector<int32_t> behind;     // the ranks that are in it, where others are further
  size_t ranks = 0;                // that have recorded work
  int64_t lost_records = 0;        // dropped and said so by the recorder
  int64_t without_device = 0;      // kept with the host's times instead of the device's
};

// Keeps of a look's trace the steps from `first` on.
void keep_steps_from(Trace& trace, int32_t first);

class NewestSteps {
 public:
  // `paths` may not be there yet.
  NewestSteps(std::vector<std::string> paths, OpenOptions options);

  // All steps that are over after `after`, and at least the last `count` that are over, as far as the recording has
  // them. INT32_MIN: whatever was before does not matter. O(what these steps take in the files).
  Look look(int32_t after, size_t count);

  bool waited() const { return waited_; }  // the recording was not there at the first look: all its steps are new

 private:
  Result<Trace> read(const std::vector<std::string>& files, int32_t after, size_t count, int32_t& first_whole);

  std::vector<std::string> paths_;
  OpenOptions options_;
  int64_t newest_bytes_;
  bool whole_ = false;       // steps are numbered by what repeats: they need the beginning
  std::set<int32_t> ranks_;  // that had work at the last look
  bool waited_ = false;
};

}  // namespace stageline
