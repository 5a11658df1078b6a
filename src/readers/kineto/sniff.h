// Which files are Chrome traces, and which of those say themselves that they are PyTorch profiler traces.
#pragma once

#include <string>
#include <string_view>

#include "readers/reader.h"

namespace stageline::kineto {

// `head`: the first bytes of the file. kCertain: Kineto's own words; kMaybe: any other Chrome trace.
Match sniff_head(std::string_view head);
// The same, looking further into the file when its head ends before the first event (long lists of devices,
// settings or log lines): at most kLongestPreamble bytes.
inline constexpr size_t kLongestPreamble = size_t{16} << 20;
Match sniff_file(const Source& source, size_t file);

}  // namespace stageline::kineto
