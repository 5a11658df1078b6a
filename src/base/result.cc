#include "base/result.h"

namespace stageline {

std::string Where::text() const {
  if (file.empty()) return {};
  if (line > 0) return file + ":" + std::to_string(line);
  const bool packed = file.ends_with(".gz") || file.ends_with(".zst");
  if (byte >= 0) return file + ", byte " + std::to_string(byte) + (packed ? " of the uncompressed text" : "");
  return file;
}

std::string Error::text() const {
  std::string out = where.text();
  if (!out.empty()) out += ": ";
  out += what;
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

}  // namespace stageline
