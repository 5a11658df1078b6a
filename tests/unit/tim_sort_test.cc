#include "base/tim_sort.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace stageline;

namespace {

struct Item {
  int group, sign;
  uint32_t place;
};

uint64_t next(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// The result of Python 3.11's list.sort for the same items with the same comparator: a hash of the order, and how often
// it compared. Within a group the signs beat each other in a circle, so the order is not transitive.
struct Expected {
  uint32_t count, span;
  uint64_t seed, hash;
  int64_t comparisons;
};
const Expected kPython[] = {
    {1, 3, 1, 4953163356653287321uLL, 0},
    {2, 3, 2, 11125488673309971922uLL, 1},
    {5, 2, 3, 8870636984765020453uLL, 8},
    {63, 4, 4, 17781158308988068208uLL, 289},
    {64, 4, 5, 5516440167286515321uLL, 295},
    {65, 5, 6, 13125973238313205503uLL, 308},
    {200, 7, 7, 15023329703357360835uLL, 1230},
    {1000, 3, 8, 3900730939073825243uLL, 6735},
    {5000, 50, 9, 10964814958285916773uLL, 52618},
    {20000, 20000, 10, 13764334589576146373uLL, 259689},
    {30000, 2, 11, 14991980046641030303uLL, 198024},
    {4097, 1, 12, 1180294233954701741uLL, 20473},
};

}  // namespace

TEST_CASE("tim_sort makes Python's comparisons, in orders that contradict themselves too") {
  for (const Expected& expected : kPython) {
    CAPTURE(expected.count);
    uint64_t state = expected.seed;
    std::vector<Item> items;
    for (uint32_t i = 0; i < expected.count; ++i) {
      const auto group = static_cast<int>(next(state) % expected.span);
      items.push_back({group, static_cast<int>(next(state) % 3), i});
    }
    int64_t comparisons = 0;
    tim_sort(items, [&](const Item& a, const Item& b) {
      ++comparisons;
      if (a.group != b.group) return a.group < b.group;
      return (a.sign - b.sign + 3) % 3 == 1;
    });
    uint64_t hash = 1469598103934665603u;
    for (const Item& item : items) hash = (hash ^ item.place) * 1099511628211u;
    CHECK(hash == expected.hash);
    CHECK(comparisons == expected.comparisons);
  }
}

TEST_CASE("tim_sort leaves lists of no or one element as they are, and sorts runs of both directions stably") {
  std::vector<int> none, one = {4}, runs;
  const auto less = [](int a, int b) { return a / 10 < b / 10; };
  tim_sort(none, less);
  tim_sort(one, less);
  CHECK(one == std::vector<int>{4});
  for (int i = 0; i < 700; ++i) runs.push_back(i % 100 < 50 ? i : 2000 - i);
  std::vector<int> sorted = runs;
  std::stable_sort(sorted.begin(), sorted.end(), less);
  tim_sort(runs, less);
  CHECK(runs == sorted);
}
