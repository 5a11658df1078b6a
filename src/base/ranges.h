// What a loop over values makes of them: a sum, the largest, a vector. `of` is a member or a function.
#pragma once

#include "base/std.h"

namespace stageline {

// Adds up what `of` makes of each value, in their order, so that doubles always come out the same. T is the type of the
// sum: sum_over<int64_t>(lines, &Line::ns).
template <class T, class Range, class Of = std::identity> T sum_over(const Range& values, Of of = {}) {
  T sum = 0;
  for (const auto& value : values) sum += std::invoke(of, value);
  return sum;
}

// Returns the largest of `max` and what `of` makes of the values.
template <class T, class Range, class Of = std::identity> T max_over(const Range& values, Of of = {}, T max = 0) {
  for (const auto& value : values) max = std::max<T>(max, std::invoke(of, value));
  return max;
}

// Returns the smallest of `min` and what `of` makes of the values.
template <class T, class Range, class Of = std::identity>
T min_over(const Range& values, Of of = {}, T min = std::numeric_limits<T>::max()) {
  for (const auto& value : values) min = std::min<T>(min, std::invoke(of, value));
  return min;
}

// Returns what `of` makes of each value, in their order, as a vector of T: mapped<double>(runs, &Run::step_ns).
template <class T, class Range, class Of> std::vector<T> mapped(Range&& values, Of of) {
  std::vector<T> out;
  out.reserve(static_cast<size_t>(std::distance(std::begin(values), std::end(values))));
  for (auto&& value : values) out.emplace_back(std::invoke(of, value));
  return out;
}

// The same, in another container or as what `of` returns: mapped<std::set>(parts, &Part::rank), mapped(parts, rank_of).
template <template <class...> class To = std::vector, class Range, class Of> auto mapped(Range&& values, Of of) {
  To<std::remove_cvref_t<std::invoke_result_t<Of&, decltype(*std::begin(values))>>> out;
  for (auto&& value : values) out.insert(out.end(), std::invoke(of, value));
  return out;
}

// Returns `count` numbers that follow each other: first, first + 1, …
template <class T = size_t> std::vector<T> indexes(size_t count, T first = 0) {
  std::vector<T> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace stageline
