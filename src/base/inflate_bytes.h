// Compressed bytes in memory, made whole again: what a format embeds in its own messages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stageline {

// zlib's wrapper or gzip's; zstd's frames. nullopt: damaged, or more than `limit` bytes.
std::optional<std::string> inflate_bytes(std::string_view bytes, size_t limit);
std::optional<std::string> unzstd_bytes(std::string_view bytes, size_t limit);

}  // namespace stageline
