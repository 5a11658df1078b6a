// Bytes in a gzip wrapper, for what is embedded or sent. Equal input gives equal bytes: the header carries no time.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

std::string gzip_bytes(std::string_view bytes);

}  // namespace stageline
