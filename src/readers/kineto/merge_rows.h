// Several files of one rank (a profiler's schedule writes one per cycle) as one table of rows.
#pragma once

#include <cstdint>

#include "readers/kineto/file_rows.h"

namespace stageline::kineto {

// baseTimeNanoseconds added to every time. False, and nothing done, when a time would leave what the model holds.
bool shift_times(FileRows& rows, int64_t base_ns);

// Whether two files hold the same events: one is a copy of the other (trace.json beside trace.json.gz).
bool same_rows(const FileRows& a, const FileRows& b);

// Appends the rows of a later file. Offsets, event numbers, correlations, external ids, Python ids and flows of
// `from` move past those of `to`, so that nothing links across files by the accident of equal numbers. Returns
// the position of from's first byte on the joint axis.
int64_t append_rows(FileRows& to, FileRows from);

}  // namespace stageline::kineto
