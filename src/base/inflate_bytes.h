// Decompresses bytes in memory, which some formats embed in their own messages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stageline {

// The first reads zlib or gzip data, the second zstd frames. nullopt: the data is damaged, or longer than `limit`
// bytes.
std::optional<std::string> inflate_bytes(std::string_view bytes, size_t limit);
std::optional<std::string> unzstd_bytes(std::string_view bytes, size_t limit);

}  // namespace stageline
