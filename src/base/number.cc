#include "base/number.h"

#include <cstdio>

#include "base/ranges.h"
#include "base/text.h"

namespace stageline {
namespace {

// from_chars accepts no leading plus, so it is dropped. But "+-5" would then count as a number.
bool plus_before_number(std::string_view text) { return text.size() > 1 && text[0] == '+' && text[1] != '-'; }

// Returns three significant digits, never in exponent form.
std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  return fixed(value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
}

}  // namespace

std::optional<int64_t> parse_decimal_ns(std::string_view text, int unit_ns_log10) {
  size_t i = 0;
  bool negative = false;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  // The value is `digits` x 10^`scale`. Leading zeros are not counted, and digits past the 37th (more than any clock
  // has) only change the scale.
  unsigned __int128 digits = 0;
  int kept = 0, scale = 0;
  bool any = false, point = false, dropped_nonzero = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (kept < 37) {
      digits = digits * 10 + static_cast<unsigned>(c - '0');
      if (digits != 0) ++kept;
      if (point) --scale;
    } else {
      dropped_nonzero |= c != '0';
      if (!point) ++scale;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    int exponent = 0;
    size_t from = i + 1;
    if (plus_before_number(text.substr(from))) ++from;
    const auto [end, ec] = std::from_chars(text.data() + from, text.data() + text.size(), exponent);
    if (ec != std::errc() || end == text.data() + from || std::abs(exponent) > 400) return std::nullopt;
    scale += exponent;
    i = end - text.data();
  }
  if (i != text.size()) return std::nullopt;
  scale += unit_ns_log10;
  constexpr auto kLimit = static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max());
  for (; scale > 0 && digits != 0; --scale) {
    digits *= 10;
    if (digits > kLimit) return std::nullopt;
  }
  if (scale < 0) {
    unsigned last = 0;
    bool rest = dropped_nonzero;
    for (; scale < 0 && (digits != 0 || last != 0); ++scale) {
      rest |= last != 0;
      last = static_cast<unsigned>(digits % 10);
      digits /= 10;
    }
    if (scale < 0) last = 0;  // the loop ended early because everything left is below half a nanosecond
    if (last > 5 || (last == 5 && (rest || (digits & 1)))) ++digits;
  }
  if (digits > kLimit) return std::nullopt;
  const auto value = static_cast<int64_t>(digits);
  return negative ? -value : value;
}

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  if (plus_before_number(text)) text.remove_prefix(1);
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  if (plus_before_number(text)) text.remove_prefix(1);
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || text.empty() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

double decimal_of(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double exact = value;
  std::from_chars(text.data(), end, exact);
  return exact;
}

std::optional<int64_t> parse_duration(std::string_view text) {
  text = trim(text);
  int log10 = 6;
  for (const auto& [unit, power] : {std::pair{"ns", 0}, {"us", 3}, {"µs", 3}, {"ms", 6}, {"s", 9}}) {
    if (!text.ends_with(unit)) continue;
    text = trim(text.substr(0, text.size() - std::string_view(unit).size()));
    log10 = power;
    break;
  }
  return parse_decimal_ns(text, log10);
}

std::string repr_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const double magnitude = std::fabs(value);
  // Python uses scientific notation from 1e16 on and below 1e-4.
  if (magnitude != 0 && (magnitude >= 1e16 || magnitude < 1e-4)) {
    const auto r = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    return {buffer, r.ptr};
  }
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, r.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string fixed(double value, int decimals) {
  char buffer[400];
  const int n = snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  const std::string_view text(buffer, n);
  // A value that is rounded to zero is shown without a minus sign.
  const bool nothing = text.starts_with('-') && text.find_first_not_of("-0.") == std::string_view::npos;
  return std::string(nothing ? text.substr(1) : text);
}

std::string ns_as_decimal(int64_t ns, int unit_ns_log10) {
  uint64_t power = 1;
  for (int i = 0; i < unit_ns_log10; ++i) power *= 10;
  const bool negative = ns < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::string out = (negative ? "-" : "") + std::to_string(magnitude / power);
  if (const uint64_t rest = magnitude % power; rest != 0) {
    std::string digits = std::to_string(rest);
    digits.insert(0, unit_ns_log10 - digits.size(), '0');
    while (digits.back() == '0') digits.pop_back();
    out += "." + digits;
  }
  return out;
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t sign = value < 0 ? 1 : 0;
  if (digits.size() - sign < 5) return digits;
  for (size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, "\u202f");
  }
  return digits;
}

std::string human_duration(double ns) {
  const double magnitude = std::fabs(ns);
  constexpr double kDay = 86'400e9;
  if (magnitude >= kDay) {
    const double days = ns / kDay;
    constexpr double kMaxDays = 1e18;  // no measurement's: what a text or a damaged number says may be more
    return (magnitude >= 9999.5 * kDay ? grouped(static_cast<int64_t>(std::clamp(days, -kMaxDays, kMaxDays)))
                                       : fixed(days, magnitude >= 99.95 * kDay ? 0 : 1)) +
           "\u202fdays";
  }
  if (magnitude >= 999.5e6) return three_digits(ns / 1e9) + "\u202fs";
  if (magnitude >= 999.5e3) return three_digits(ns / 1e6) + "\u202fms";
  if (magnitude >= 999.5) return three_digits(ns / 1e3) + "\u202fµs";
  return fixed(ns, 0) + "\u202fns";
}

std::string human_bytes(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return (unit == 0 ? fixed(bytes, 0) : three_digits(bytes)) + "\u202f" + units[unit];
}

std::string percent(double share) {
  const std::string size = fixed(std::abs(share) * 100, 1);
  return (share < 0 && size != "0.0" ? "−" : "") + size + "\u202f%";
}

Result<std::vector<int32_t>> parse_number_list(std::string_view text) {
  constexpr int64_t kMaxNumbers = 1'000'000;
  const auto bad = [&](std::string_view item) {
    return make_error(ErrorCode::kUsage,
                      "\"" + std::string(item) + "\" is not a number from 0 to 2147483647, or a range of them",
                      "write numbers and ranges such as 0-3,8");
  };
  std::vector<int32_t> numbers;
  for (std::string_view item : split(text, ',')) {
    item = trim(item);
    const size_t dash = item.find('-', 1);
    const auto first = parse_int(trim(item.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : parse_int(trim(item.substr(dash + 1)));
    if (!first || !last || *first < 0 || *last < *first || *last > INT32_MAX) return bad(item);
    if (*last - *first + std::ssize(numbers) >= kMaxNumbers)
      return make_error(ErrorCode::kLimit, "the list names more than 1 000 000 numbers");
    for (int64_t n = *first; n <= *last; ++n) numbers.push_back(static_cast<int32_t>(n));
  }
  sort_unique(numbers);
  return numbers;
}

std::string number_list(const std::vector<int32_t>& numbers, size_t max_count) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < max_count; ++i) text += (i > 0 ? "," : "") + std::to_string(numbers[i]);
  return text + (numbers.size() > max_count ? ",…" : "");
}

std::vector<std::string> percents(const std::vector<double>& shares) {
  constexpr double kTenths = 1000;  // of a percent in the whole
  constexpr double kNearWhole = 0.0005;
  std::vector<std::string> out;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  auto tenths = mapped<double>(shares, [&](const double share) { return share * kTenths; });
  if (shares.size() < 2 || !(std::abs(sum - 1) < kNearWhole)) {
    for (const double share : shares) out.push_back(percent(share));
    return out;
  }
  std::vector<double> whole(tenths.size());
  // As printed: what lies half-way between two tenths is not half-way in a double.
  whole[0] = std::round(parse_double(fixed(shares[0] * 100, 1)).value_or(0) * 10);
  double open = kTenths - whole[0];
  for (size_t i = 1; i < tenths.size(); ++i) open -= whole[i] = std::floor(tenths[i]);
  auto order = indexes<size_t>(tenths.size() - 1, 1);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return tenths[a] - whole[a] > tenths[b] - whole[b]; });
  for (size_t i = 0; i < order.size() && open >= 1; ++i, --open) ++whole[order[i]];
  for (const double tenth : whole) out.push_back(percent(tenth / kTenths));
  return out;
}

}  // namespace stageline
