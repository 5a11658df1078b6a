// Several files of one rank (a profiler's schedule writes one per cycle) as one table of rows.
#pragma once

#include <cstdint>

#include "readers/common/rows/file_rows.h"

namespace stageline::kineto {

// Whether every time plus `base_ns` stays within what the model holds.
bool times_fit(const FileRows& rows, int64_t base_ns);

// Takes the longest durations as 0 where all of them add up to more than the model's sums hold.
void fit_durations(FileRows& rows);

// Whether two files hold the same events: one is a copy of the other (trace.json beside trace.json.gz).
bool same_rows(const FileRows& a, const FileRows& b);

// Appends the rows of a later file, whose times count from `base_shift_ns` after those of `to`. Offsets, event
// numbers, correlations, external ids, Python ids and flows of `from` move past those of `to`, so that nothing
// links across files by the accident of equal numbers. Returns the position of from's first byte on the joint axis.
int64_t append_rows(FileRows& to, FileRows from, int64_t base_shift_ns);

}  // namespace stageline::kineto
