// base/ranges.h: what loops make of values.
#include "base/ranges.h"

#include <doctest/doctest.h>

using namespace stageline;

namespace {

struct Rank {
  int32_t number = 0;
  double ns = 0;
};
const std::vector<Rank> kRanks = {{3, 1.5}, {1, 4}, {3, 2.25}};

}  // namespace

TEST_CASE("ranges: sums and limits") {
  CHECK(sum_over<double>(kRanks, &Rank::ns) == 7.75);
  CHECK(sum_over<int64_t>(std::vector<int64_t>{}) == 0);
  CHECK(max_over<double>(kRanks, &Rank::ns) == 4);
  CHECK(max_over<int32_t>(kRanks, [](const Rank& rank) { return -rank.number; }) == 0);
  CHECK(max_over<int32_t>(kRanks, [](const Rank& rank) { return -rank.number; }, INT32_MIN) == -1);
  CHECK(min_over<int32_t>(kRanks, &Rank::number) == 1);
  CHECK(min_over<int64_t>(std::vector<int64_t>{}) == INT64_MAX);
  CHECK(min_over<double>(kRanks, &Rank::ns, 1.0) == 1.0);
}

TEST_CASE("ranges: mapped keeps the order, sets do not") {
  CHECK(mapped<double>(kRanks, &Rank::number) == std::vector<double>{3, 1, 3});
  CHECK(mapped(kRanks, &Rank::ns) == std::vector<double>{1.5, 4, 2.25});
  CHECK(mapped<std::set>(kRanks, &Rank::number) == std::set<int32_t>{1, 3});
  std::map<int, std::string> names = {{2, "b"}, {1, "a"}};
  CHECK(mapped<std::string>(names, [](auto& entry) { return std::move(entry.second); }) ==
        std::vector<std::string>{"a", "b"});
}

TEST_CASE("ranges: indexes, lookups, one of each") {
  CHECK(indexes(3) == std::vector<size_t>{0, 1, 2});
  CHECK(indexes<uint32_t>(2, 7) == std::vector<uint32_t>{7, 8});
  CHECK(indexes(0).empty());
  const std::map<std::pair<int, int>, double> by_place = {{{1, 2}, 5}};
  CHECK(value_at(by_place, {1, 2}) == 5);
  CHECK(value_at(by_place, {2, 1}) == 0);
  CHECK(value_at(by_place, {2, 1}, -1) == -1);
  CHECK(first_with(kRanks, 3, &Rank::number) == &kRanks[0]);
  CHECK(first_with(kRanks, 2, &Rank::number) == nullptr);
  std::vector<int> values = {3, 1, 3, 2, 1};
  sort_unique(values);
  CHECK(values == std::vector<int>{1, 2, 3});
}
