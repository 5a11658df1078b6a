#include "readers/common/rows/arg_keys.h"

namespace stageline::rows {
namespace {

using E = Event;
constexpr ArgField number(int64_t E::* at, bool E::* mark = nullptr, int64_t otherwise = -1) {
  return {.number = at, .mark = mark, .otherwise = otherwise};
}
constexpr ArgField words(std::string_view E::* at, bool E::* mark = nullptr) { return {.text = at, .mark = mark}; }
constexpr ArgField array(std::string_view E::* at, bool E::* mark = nullptr) {
  return {.text = at, .mark = mark, .array = true};
}

#define ALSO(key, name)
#define ARG(key, name, field) field,
// In the order of ArgKey.
constexpr ArgField kFields[] = {
    {},
#include "readers/common/rows/arg_keys.def"
};

#define ARG(key, name, field) {name, ArgKey::k##key},
#define ALSO(key, name) {name, ArgKey::k##key},
constexpr auto kKeys = [] {
  auto keys = std::to_array<std::pair<std::string_view, ArgKey>>({
#include "readers/common/rows/arg_keys.def"
  });
  std::ranges::sort(keys);  // for the binary search
  return keys;
}();

int64_t whole(std::string_view text, int64_t fallback) {
  if (const auto value = parse_int(text)) return *value;
  const auto real = parse_double(text);
  return real && std::abs(*real) < 9e18 ? static_cast<int64_t>(*real) : fallback;
}

}  // namespace

ArgKey arg_key(std::string_view name) {
  const auto at = std::ranges::lower_bound(kKeys, name, {}, &std::pair<std::string_view, ArgKey>::first);
  return at != kKeys.end() && at->first == name ? at->second : ArgKey::kNone;
}

const ArgField& arg_field(ArgKey key) { return kFields[static_cast<size_t>(key)]; }

bool set_number(ArgKey key, int64_t value, Event& event) {
  const ArgField& field = arg_field(key);
  if (!field.number) return false;
  event.*field.number = value;
  if (field.mark) event.*field.mark = true;
  return true;
}

void set_arg(ArgKey key, std::string_view text, Event& event) {
  const ArgField& field = arg_field(key);
  if (key == ArgKey::kExactStart && text.ends_with(" us"))
    event.exact_start_ns = parse_decimal_ns(text.substr(0, text.size() - 3), 3).value_or(-1);
  if (key == ArgKey::kBandwidth) event.bandwidth_gbps = parse_double(text).value_or(0);
  if (field.number) event.*field.number = whole(text, field.otherwise);
  if (field.text) event.*field.text = text;
  if (field.mark) event.*field.mark |= !text.empty() || field.mark != &Event::has_stack;
}

}  // namespace stageline::rows
