// Steps of worker logs: which jobs belong to one run of the executor, and which runs of different
// ranks are the same step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "readers/paddle_log/scan.h"

namespace stageline {

inline constexpr int32_t kOutsideSteps = -1;

// One burst: the jobs one executor run printed.
struct PaddleBurst {
  size_t begin = 0, end = 0;         // jobs [begin, end)
  int64_t start_ns = 0, end_ns = 0;  // over its usable jobs; 0,0 when it has none
};

// Marks jobs that stand in the log twice (kJobRepeated), with the same times to the last digit: a line that was printed
// twice right after each other, and a step that is there again as a whole (a log appended to itself). O(jobs).
struct PaddleRepeats {
  int64_t lines = 0, steps = 0;
};
PaddleRepeats mark_repeated_jobs(PaddleLog& log);

// Cuts a log into bursts; repeated jobs are in none. Within one run of the executor every (type, micro-batch) occurs
// once, so the first repetition starts the next burst; this holds for every schedule, for bursts that were cut short,
// and for logs that a second run was appended to. Jobs of type `default` are runs of programs without a pipeline: in a
// log that has nothing else each is a burst, else they stand outside and get no burst. O(jobs).
std::vector<PaddleBurst> cut_bursts(const PaddleLog& log, std::vector<int32_t>& burst_of_job);

// Gives every burst of every rank its step ordinal (0, 1, …; unique and increasing within a rank).
// Ranks with as many bursts as the longest are matched by position; a rank that lost bursts is
// matched by time against the longest one, and counted. `bursts[rank]`, result has its shape; `paths[rank]`: its log.
std::vector<std::vector<int32_t>> match_steps(const std::vector<std::vector<PaddleBurst>>& bursts,
                                              const std::vector<std::string>& paths, Diagnostics& diagnostics);

}  // namespace stageline
