// Limits for the numbers and times of a source, because tables downstream are sized by them.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Limits on the numbers a source may claim. A row beyond a limit is left out and counted.
inline constexpr int64_t kMaxRankNumber = int64_t{1} << 24;
inline constexpr int64_t kMaxStageNumber = int64_t{1} << 16;
inline constexpr int64_t kMaxChunkNumber = int64_t{1} << 10;
inline constexpr int64_t kMaxMicroBatchNumber = int64_t{1} << 20;
inline constexpr int64_t kMaxStepNumber = INT32_MAX - 1;
inline constexpr size_t kMaxOps = size_t{1} << 28;
// Starts and ends lie within ±126 years, so that any difference of two fits an int64.
inline constexpr int64_t kMaxTimeNs = 4'000'000'000'000'000'000;

// Parses a number field of a source. Returns nullopt unless `text` is a whole number within [-1, max]; "", "null",
// "nan", "None" and -1 are kUnknown. "3.0" is 3, since pandas writes whole numbers so.
std::optional<int32_t> parse_index(std::string_view text, int64_t max);

// True when start and end lie within ±kMaxTimeNs and the end is not before the start.
bool sane_interval(int64_t start_ns, int64_t end_ns);
// Returns start + duration, or nullopt when that is not sane. Some tools reduce a message or collective to its transfer
// by subtracting clocks of two ranks. The duration may then be slightly negative. Down to −kMaxShrinkNs such an
// operation is kept with length zero, and *shrunk is set.
inline constexpr int64_t kMaxShrinkNs = 1'000'000;
std::optional<int64_t> end_of(int64_t start_ns, int64_t dur_ns, bool* shrunk);

}  // namespace stageline
