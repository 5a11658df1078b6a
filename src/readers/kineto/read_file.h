// One file of Chrome-trace JSON into rows and top-level members.
#pragma once

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "readers/kineto/file_rows.h"

namespace stageline::kineto {

// Errors: kNotFound, kIo; kBadInput when the file holds no array of events.
Result<FileRows> read_file(const std::string& path, Progress* progress);

}  // namespace stageline::kineto
