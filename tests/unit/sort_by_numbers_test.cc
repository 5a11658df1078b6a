#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "base/sorting.h"

using namespace stageline;

TEST_CASE("sort_by_numbers: rows stand by their numbers and, where these are the same, as they stood") {
  std::mt19937 random(7);
  for (const int32_t spread : {1, 20, 1'000'000}) {  // those far apart are compared, not counted
    for (const uint32_t count : {0U, 1U, 3000U}) {
      std::vector<std::array<int32_t, 2>> numbers(count);
      for (auto& own : numbers)
        own = {static_cast<int32_t>(random() % 5) - 2, static_cast<int32_t>(random() % 7) * spread - spread};
      std::vector<uint32_t> rows, expected;
      for (uint32_t i = count; i-- > 0;) rows.push_back(i);
      expected = rows;
      const auto key = [&](uint32_t row) { return numbers[row]; };
      std::stable_sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
      sort_by_numbers(rows, key);
      CHECK(rows == expected);
    }
  }
}

TEST_CASE("sort_by_numbers: the widest numbers there are") {
  const std::vector<std::array<int32_t, 2>> numbers = {
      {INT32_MAX, INT32_MIN}, {INT32_MIN, INT32_MAX}, {INT32_MAX, INT32_MAX}, {INT32_MIN, INT32_MIN}};
  std::vector<uint32_t> rows = {0, 1, 2, 3};
  sort_by_numbers(rows, [&](uint32_t row) { return numbers[row]; });
  CHECK(rows == std::vector<uint32_t>{3, 1, 0, 2});
}
