// Joins several files of one rank (a profiler's schedule writes one per cycle) into one table of rows.
#pragma once

#include <cstdint>

#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

// Returns true when every time plus `base_ns` stays within the limits of the model.
bool times_fit(const FileRows& rows, int64_t base_ns);

// Sets the longest durations to 0 where all durations together exceed what the model's sums hold.
void fit_durations(FileRows& rows);

// True when two files hold the same events, because one is a copy of the other (trace.json and trace.json.gz).
bool same_rows(const FileRows& a, const FileRows& b);

// Appends the rows of a later file, whose times count from `base_shift_ns` after those of `to`. Offsets, event numbers,
// correlations, external ids, Python ids and flows of `from` are shifted past those of `to`, so that equal numbers in
// both files link nothing. Returns the position of from's first byte on the joint axis.
int64_t append_rows(FileRows& to, FileRows from, int64_t base_shift_ns);

// Appends later rows of the same recording: equal numbers link them.
void continue_rows(FileRows& to, FileRows from, int64_t base_shift_ns = 0);

}  // namespace stageline::rows
