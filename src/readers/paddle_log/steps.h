// Finds steps in worker logs: which jobs belong to one run of the executor, and which runs of different ranks are the
// same step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "readers/paddle_log/scan.h"

namespace stageline {

inline constexpr int32_t kOutsideSteps = -1;

// One burst: the jobs that one run of the executor printed.
struct PaddleBurst {
  size_t begin = 0, end = 0;         // jobs [begin, end)
  int64_t start_ns = 0, end_ns = 0;  // over its usable jobs; 0 and 0 when it has none
};

// Marks jobs that are in the log twice with exactly the same times (kJobRepeated). Such a job is a line that was
// printed twice in a row, or part of a whole step that is repeated because a log was appended to itself. O(jobs).
struct PaddleRepeats {
  int64_t lines = 0, steps = 0;
};
PaddleRepeats mark_repeated_jobs(PaddleLog& log);

// Cuts a log into bursts; repeated jobs belong to none. Within one run of the executor every (type, micro-batch) occurs
// once, so the first repetition starts the next burst. This holds for every schedule, for bursts that were cut short,
// and for logs to which a second run was appended. Jobs of type `default` are runs of programs without a pipeline:
// where a log has nothing else, each is a burst; otherwise they belong to no burst. O(jobs).
std::vector<PaddleBurst> cut_bursts(const PaddleLog& log, std::vector<int32_t>& burst_of_job);

// Gives every burst of every rank the number of its step (0, 1, …; unique and increasing within a rank). Ranks with as
// many bursts as the longest rank are matched by position. A rank that lost bursts is matched with the longest one by
// time, and counted. `bursts` and the result are indexed by rank; `paths[rank]` is the rank's log.
std::vector<std::vector<int32_t>> match_steps(const std::vector<std::vector<PaddleBurst>>& bursts,
                                              const std::vector<std::string>& paths, Diagnostics& diagnostics);

}  // namespace stageline
