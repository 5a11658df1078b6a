#include "pipeline/measure/op_values.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace stageline;

namespace {

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

TEST_CASE("op_values: the value at any place is the one that sorting would put there") {
  std::mt19937_64 random(7);
  for (const size_t count : {1U, 2U, 1000U, 200'000U}) {  // the last one is counted, not sorted
    std::vector<double> alike(count), spread(count), few(count), same(count, 5);
    for (size_t i = 0; i < count; ++i) {
      alike[i] = 1e7 + static_cast<double>(random() % 300'000);
      spread[i] = static_cast<double>(static_cast<int64_t>(random())) / 3;
      few[i] = static_cast<double>(random() % 3) - 1;
    }
    for (const std::vector<double>& values : {alike, spread, few, same}) {
      const std::vector<double> all = sorted(values);
      const std::vector<size_t> places = {0, count / 4, (count - 1) / 2, count / 2, count - 1};
      const std::vector<double> found = nth_values(values, places);
      for (size_t i = 0; i < places.size(); ++i) CHECK(found[i] == all[places[i]]);
    }
  }
}

TEST_CASE("op_values: values stand by key, in the order of operations; stretches between are left out") {
  const std::vector<OpStretch> ops = {{10, 30'000}, {40'000, 100'000}};
  const auto key = [](uint32_t op) { return op % 5 == 4 ? OpValues::kNone : op % 5; };
  OpValues values(ops, 5, key, [](uint32_t op) { return static_cast<double>(op); });
  REQUIRE(values.keys() == 5);
  CHECK(values.of(4).empty());
  for (uint32_t k = 0; k < 4; ++k) {
    std::vector<double> expected;
    for (const OpStretch& stretch : ops)
      for (uint32_t op = stretch.begin; op < stretch.end; ++op)
        if (key(op) == k) expected.push_back(op);
    CHECK(std::equal(values.of(k).begin(), values.of(k).end(), expected.begin(), expected.end()));
  }
  const std::vector<double> medians = values.take_medians();
  CHECK(medians[4] != medians[4]);  // NaN: there is none
  CHECK(medians[0] == 55'002.5);    // of 5,998 and 12,000 values: the mean of 55,000 and 55,005
}

TEST_CASE("op_values: a block without operations has no values") {
  const OpBlocks blocks(std::vector<OpStretch>{}, 3);
  CHECK(blocks.size() == 1);
  blocks.each([](size_t, uint32_t) { CHECK(false); });
}
