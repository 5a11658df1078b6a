// What a request asks for: the path and the parameters of an HTTP target, and their values as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stageline {

struct Query {
  std::string path;  // decoded; never holds a control character
  std::vector<std::pair<std::string, std::string>> parameters;

  // The last value given; nullptr: none.
  const std::string* find(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view fallback = "") const;
};

// "/api/tiles?lanes=3%2C4&n=10". "+" is a space in values. Errors: kUsage for what is no origin-form target, broken
// escapes, control characters, more than kMaxParameters.
inline constexpr size_t kMaxParameters = 64;
Result<Query> parse_target(std::string_view target);

// Parameters as numbers. Errors: kUsage naming the parameter, for what is no number or outside [least, most].
Result<int64_t> integer_parameter(const Query& query, std::string_view name, std::optional<int64_t> fallback,
                                  int64_t least, int64_t most);
Result<double> number_parameter(const Query& query, std::string_view name, std::optional<double> fallback);
// "3,4,10-20": each below `end`, ascending, without repeats; missing: all below `end`.
Result<std::vector<uint32_t>> list_parameter(const Query& query, std::string_view name, uint32_t end);

struct TimeWindow {
  double t0_ns = 0, t1_ns = 0;
  // Whole nanoseconds that hold the window.
  int64_t from_ns() const;
  int64_t to_ns() const;
};
// t0 and t1; default the whole run. Errors: kUsage when t1 is not behind t0.
Result<TimeWindow> window_parameters(const Query& query, int64_t span_ns);

}  // namespace stageline
