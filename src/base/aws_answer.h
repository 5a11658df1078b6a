// Reads the answers of S3 and of the services that give credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stageline {

// Returns the text of the first <name>…</name> with entities replaced, or "" when there is none.
std::string xml_text(std::string_view xml, std::string_view name);

// Converts "2026-11-24T18:24:51.000Z" to seconds since 1970. Returns 0 for a text that is not such a time.
int64_t iso_seconds(std::string_view text);

}  // namespace stageline
