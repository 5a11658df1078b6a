// Facts in the order of their slices, by places and by comparing.
#include "readers/common/order_facts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stageline {
namespace {

struct Fact {
  uint32_t slice = 0, number = 0;
  bool operator==(const Fact&) const = default;
};

std::vector<Fact> sorted(std::vector<Fact> facts) {
  std::stable_sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.slice < b.slice; });
  return facts;
}

}  // namespace

TEST_CASE("facts stand in the order of their slices, however many slices have one") {
  std::mt19937 random(7);
  for (const size_t slices : {1u, 63u, 64u, 65u, 1000u, 20000u})
    for (const size_t one_in : {1u, 3u, 64u, 500u}) {
      std::vector<Fact> facts;
      for (uint32_t slice = 0; slice < slices; ++slice)
        if (random() % one_in == 0) facts.push_back({slice, slice + 1});
      std::shuffle(facts.begin(), facts.end(), random);
      const std::vector<Fact> wanted = sorted(facts);
      order_facts(facts, slices);
      CHECK(facts == wanted);
    }
}

TEST_CASE("facts of one slice keep their order") {
  std::mt19937 random(11);
  std::vector<Fact> facts;
  for (uint32_t k = 0; k < 5000; ++k) facts.push_back({static_cast<uint32_t>(random() % 900), k});
  const std::vector<Fact> wanted = sorted(facts);
  order_facts(facts, 900);
  CHECK(facts == wanted);
  std::vector<Fact> none;
  order_facts(none, 0);
  CHECK(none.empty());
}

}  // namespace stageline
