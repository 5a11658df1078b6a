// Base64 writes bytes as text of 64 letters (RFC 4648), padded.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

std::string base64(std::string_view bytes);

}  // namespace stageline
