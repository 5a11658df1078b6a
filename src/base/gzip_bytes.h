// Bytes in a gzip wrapper, for what is embedded or sent. Equal input gives equal bytes, whatever the number of threads: the
// header carries no time, and where a long input is cut depends on its length alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stageline {

// Input beyond this is deflated in pieces of this size, several at a time, each with the 32 KiB before it as dictionary:
// some 0.1 % longer than as one. What is shorter is byte for byte what zlib's own gzip stream is.
inline constexpr size_t kGzipPiece = size_t{4} << 20;

std::string gzip_bytes(std::string_view bytes);

}  // namespace stageline
