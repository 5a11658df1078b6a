// Numbers to and from text, exactly.
#pragma once

#include "base/result.h"

namespace stageline {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Converts decimal text to int64 nanoseconds without passing through a double. `unit_ns_log10` is 9 for seconds, 6 for
// milliseconds, 3 for microseconds, 0 for nanoseconds. The text may have a sign, digits, one point and an exponent
// ("8.4e5"). Digits below a nanosecond are rounded half to even. Returns nullopt when the text is not a number or does
// not fit.
std::optional<int64_t> parse_decimal_ns(std::string_view text, int unit_ns_log10);

// Returns a + b, or the nearest limit of the type when the sum does not fit. For numbers from files, which may be
// damaged.
constexpr int64_t sum_or_limit(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

// Returns to − from, or the nearest limit of the type when that does not fit: a damaged file may hold any times.
constexpr int64_t between_ns(int64_t from, int64_t to) {
  int64_t ns = 0;
  return __builtin_sub_overflow(to, from, &ns) ? (to < from ? INT64_MIN : INT64_MAX) : ns;
}

// Reads the whole text as an integer; nullopt when it is none.
std::optional<int64_t> parse_int(std::string_view text);
// Reads the whole text as a finite double; nullopt when it is none.
std::optional<double> parse_double(std::string_view text);

// Returns as a double the decimal from which a float was written: 0.025f → 0.025. O(1), for decimals of up to seven
// digits.
double decimal_of(float value);
// Converts "8.05", "8.05ms", "200us", "1.5s" to nanoseconds. Without a unit the number is in milliseconds.
std::optional<int64_t> parse_duration(std::string_view text);

// Returns the shortest text that reads back as the same double, as Python's repr(float) prints it:
// "1697793307213761.0", "0.1", "1e+16", "inf", "nan".
std::string repr_double(double value);
// Returns the shortest text for JSON that reads back as the same double. Whole values have no ".0"; not-a-number is
// "null".
std::string json_double(double value);
// Returns fixed notation with `decimals` digits: "66.84".
std::string fixed(double value, int decimals);
// Returns nanoseconds in a larger unit as an exact decimal without trailing zeros: ns_as_decimal(1500, 3) = "1.5".
std::string ns_as_decimal(int64_t ns, int unit_ns_log10);

// For prose: groups digits by narrow spaces (U+202F) in numbers of five or more digits: "112 320".
std::string grouped(int64_t value);
// Returns a duration for prose, in a suitable unit: "2.21 s", "66.8 ms", "19 µs", "420 ns".
std::string human_duration(double ns);
// Returns a size for prose: "1.2 GB", "340 KB".
std::string human_bytes(double bytes);
// For prose: a share of 1 as a percentage with one decimal and a thin space: "36.4 %".
std::string percent(double share);

// Counts with their noun: "1 stage", "4 stages".
inline std::string counted(int64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

// Converts "0-3,8" to {0,1,2,3,8}, sorted and without repeats. At most 1 000 000 numbers.
Result<std::vector<int32_t>> parse_number_list(std::string_view text);
// Returns "3,0,8", in the given order; ",…" stands for what follows the first `max_count`.
std::string number_list(const std::vector<int32_t>& numbers, size_t max_count = SIZE_MAX);

// Returns each share as percent() prints it, but so that the printed numbers add up to 100.0 where the shares add up
// to 1. The first one is rounded as usual, so that it agrees with sentences that print it, or the remainder, alone. The
// others with the largest remainders are rounded up. Each is off by less than 0.1 %. O(n log n). Example: 0.3333,
// 0.3333, 0.3334 → 33.3, 33.3, 33.4.
std::vector<std::string> percents(const std::vector<double>& shares);

}  // namespace stageline
