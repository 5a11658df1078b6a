// Finds out the kind of a file without reading all of it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// CRC32C of the file's first, middle and last 64 KiB: what changes although size and time stay the same is rewritten
// whole. With `whole`, it covers all bytes. It is 0 for a file that cannot be opened. The file does not become an input
// by it.
uint32_t file_sample(const std::string& path, int64_t size_bytes, bool whole = false);

}  // namespace stageline
