#include "model/source_limits.h"

#include "model/cells.h"

namespace stageline {

std::optional<int32_t> parse_index(std::string_view text, int64_t max) {
  text = trim(text);
  std::optional<int64_t> value = parse_int(text);
  if (!value) {
    if (text.empty() || text == "null" || text == "nan" || text == "NaN" || text == "None") return kUnknown;
    const size_t point = text.find('.');
    if (point == std::string_view::npos || text.find_first_not_of('0', point + 1) != std::string_view::npos)
      return std::nullopt;
    value = parse_int(text.substr(0, point));
  }
  if (!value || *value < -1 || *value > max) return std::nullopt;
  return static_cast<int32_t>(*value);
}

bool sane_interval(int64_t start_ns, int64_t end_ns) {
  return start_ns >= -kMaxTimeNs && end_ns <= kMaxTimeNs && start_ns <= end_ns;
}

std::optional<int64_t> end_of(int64_t start_ns, int64_t dur_ns, bool* shrunk) {
  int64_t end_ns = 0;
  *shrunk = dur_ns < 0 && dur_ns >= -kMaxShrinkNs;
  if (*shrunk) dur_ns = 0;
  if (dur_ns < 0 || __builtin_add_overflow(start_ns, dur_ns, &end_ns) || !sane_interval(start_ns, end_ns))
    return std::nullopt;
  return end_ns;
}

}  // namespace stageline
