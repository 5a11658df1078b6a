// Apart from number.cc: the library's shortest real numbers are most of a small program (src/wasm/alone.cc has them
// without).
#include "base/vocabulary.h"

namespace stageline {

std::string json_double(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[64];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, r.ptr};
}

}  // namespace stageline
