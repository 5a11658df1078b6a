// Compresses bytes to gzip, for data that is embedded or sent. Equal input gives equal bytes, whatever the number of
// threads: the header contains no time, and the places where a long input is divided depend only on its length.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Longer input is compressed in pieces of this size, several at a time, each with the 32 KiB before it as dictionary.
// That makes the result some 0.1 % longer. Shorter input gives exactly the bytes of zlib's own gzip stream.
inline constexpr size_t kGzipPiece = size_t{4} << 20;

std::string gzip_bytes(std::string_view bytes);

// Decompresses bytes in memory, which some formats embed in their own messages. The first reads zlib or gzip data, the
// second zstd frames. nullopt: the data is damaged, or longer than `limit` bytes.
std::optional<std::string> inflate_bytes(std::string_view bytes, size_t limit);
std::optional<std::string> unzstd_bytes(std::string_view bytes, size_t limit);

}  // namespace stageline
