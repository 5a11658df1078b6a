// Finds which files are Chrome traces, and which of those are PyTorch profiler traces by their own words.
#pragma once

#include <string_view>

#include "readers/reader.h"

namespace stageline::kineto {

// `head` is the first bytes of the file. kCertain: it has Kineto's own words; kMaybe: it is any other Chrome trace.
Match sniff_head(std::string_view head);
// Does the same for a file. It looks further when the head ends before the first event (after long lists of devices,
// settings or log lines), at most kMaxPreambleBytes bytes.
inline constexpr size_t kMaxPreambleBytes = size_t{16} << 20;
Match sniff_file(const Source& source, size_t file);

}  // namespace stageline::kineto
