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

// Returns the map's value at `key`, or `otherwise` where it has none.
template <class Map, class Key = typename Map::key_type>
typename Map::mapped_type value_at(const Map& map, const Key& key, typename Map::mapped_type otherwise = {}) {
  const auto at = map.find(key);
  return at == map.end() ? std::move(otherwise) : at->second;
}

// Returns the first element whose `of` equals `value`; null where there is none.
template <class Range, class Value, class Of> auto first_with(Range& range, const Value& value, Of of) {
  const auto at = std::ranges::find(range, value, of);
  return at == std::end(range) ? nullptr : &*at;
}

// Sorts values and leaves one of each.
template <class Range> void sort_unique(Range& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace stageline
