// A parsed request: the path and parameters of an HTTP target, with parameters read as numbers, lists and windows.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct Query {
  std::string path;  // decoded; never holds a control character
  std::vector<std::pair<std::string, std::string>> parameters;

  // The last value given; nullptr where there is none.
  const std::string* find(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view fallback = "") const;
};

inline constexpr size_t kMaxParameters = 64;
// Parses "/api/tiles?lanes=3%2C4&n=10". In values "+" is a space. Errors: kUsage for a target that is not in origin
// form, for broken escapes, control characters, and more than kMaxParameters parameters.
Result<Query> parse_target(std::string_view target);

// Returns a parameter as a number. Errors: kUsage, naming the parameter, for a value that is not a number or is outside
// [least, most].
Result<int64_t> integer_parameter(const Query& query, std::string_view name, std::optional<int64_t> fallback,
                                  int64_t min, int64_t max);
Result<double> number_parameter(const Query& query, std::string_view name, std::optional<double> fallback);
// A list such as "3,4,10-20": numbers below `end`, ascending, without repeats. A missing one means all numbers below
// `end`.
Result<std::vector<uint32_t>> list_parameter(const Query& query, std::string_view name, uint32_t end);

struct TimeWindow {
  double t0_ns = 0, t1_ns = 0;
  // The least window of whole nanoseconds that contains this one.
  int64_t from_ns() const;
  int64_t to_ns() const;
};
// The window from t0 to t1; by default the whole run. Errors: kUsage when t1 is not after t0.
Result<TimeWindow> window_parameters(const Query& query, int64_t span_ns);

// Returns true when a Host header names "localhost", "127.0.0.1" or "[::1]", with any port (tunnels change it).
bool is_loopback_host(std::string_view host_header);

}  // namespace stageline
