// The one merge sort (src/base/sort.h) against the library's, for every length around its runs.
#include "base/sort.h"

#include <doctest/doctest.h>

#include "base/text.h"

using namespace stageline;

namespace {

struct Row {
  int key = 0;
  std::string name;
  bool operator==(const Row&) const = default;
};

struct Place {
  int key = 0;
  size_t at = 0;
  bool operator==(const Place&) const = default;
};

std::vector<Row> drawn_rows(size_t count, uint32_t seed, uint32_t keys) {
  std::vector<Row> rows;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    rows.push_back({static_cast<int>((seed >> 8) % keys), "row " + std::to_string(i)});
  }
  return rows;
}

}  // namespace

TEST_CASE("sort_stably does what std::ranges::stable_sort does") {
  for (const uint32_t keys : {1u, 3u, 1000u})
    for (size_t count = 0; count < 70; ++count) {
      std::vector<Row> ours = drawn_rows(count, static_cast<uint32_t>(count) + keys, keys), theirs = ours;
      sort_stably(ours, {}, &Row::key);
      std::ranges::stable_sort(theirs, {}, &Row::key);
      CHECK(ours == theirs);
      sort_stably(ours, std::greater(), [](const Row& row) { return std::pair(row.key, row.name.size()); });
      std::ranges::stable_sort(theirs, std::greater(),
                               [](const Row& row) { return std::pair(row.key, row.name.size()); });
      CHECK(ours == theirs);
      // Rows that are copied byte by byte go another way.
      std::vector<Place> places(count), ordered;
      for (size_t i = 0; i < count; ++i) places[i] = {ours[i].key * 7 % 5, i};
      ordered = places;
      sort_stably(places, {}, &Place::key);
      std::ranges::stable_sort(ordered, {}, &Place::key);
      CHECK(places == ordered);
    }
}

TEST_CASE("sort_stably compares rows that are in order once each") {
  std::vector<int> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  size_t compared = 0;
  sort_stably(rows, [&](int a, int b) {
    ++compared;
    return a < b;
  });
  CHECK(compared == 999);
  std::ranges::reverse(rows);
  sort_stably(rows);
  CHECK(std::ranges::is_sorted(rows));
}
