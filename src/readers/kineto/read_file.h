// Reads one file of Chrome-trace JSON into rows and top-level members.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "readers/common/rows/file_rows.h"

namespace stageline::kineto {

// Returns the recordings of a file: merged files have several, one after another. Files whose processes have labels
// ("[TP00] 4711") are one.
//
// Reads `path` in windows, and `workers` stretches of a window at once. Memory: the rows, and a few MiB for each
// worker. `so_far` (may be empty) is shown the rows after each window. Errors: kNotFound, kIo; kBadInput when the file
// holds no events.
using SeeRows = std::function<void(const rows::FileRows&)>;
Result<std::vector<rows::FileRows>> read_file(const std::string& path, size_t workers, Progress* progress,
                                              const SeeRows& so_far = {});

}  // namespace stageline::kineto
