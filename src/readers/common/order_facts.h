// Puts facts of slices into the order of their slices.
#pragma once

#include "model/slice_facts.h"

namespace stageline {

// Facts of one slice keep their order. If many slices have a fact, and none has two, each fact finds its place without
// comparisons. The place is the number of earlier slices with a fact, which a bit per slice records. O(n) then.
//
//   slices with a fact   1 0 1 1 0 …      the fact of slice 3 stands at place 2
template <class Fact> void order_facts(std::vector<Fact>& facts, size_t slice_count) {
  const auto before = [](const Fact& a, const Fact& b) { return a.slice < b.slice; };
  if (std::ranges::is_sorted(facts, before)) return;
  constexpr size_t kBits = 64;
  bool places_are_known = facts.size() >= slice_count / kBits;  // where fewer slices have one, sorting costs less
  if (places_are_known) {
    std::vector<uint64_t> has_fact(slice_count / kBits + 1, 0);
    for (const Fact& fact : facts) {
      uint64_t& word = has_fact[fact.slice / kBits];
      const uint64_t bit = uint64_t{1} << fact.slice % kBits;
      places_are_known = places_are_known && (word & bit) == 0;
      word |= bit;
    }
    if (places_are_known) {
      std::vector<uint32_t> first(has_fact.size(), 0);  // the place of the first fact of 64 slices
      for (size_t w = 1; w < first.size(); ++w) first[w] = first[w - 1] + std::popcount(has_fact[w - 1]);
      const auto place_of = [&](const Fact& fact) {
        const uint64_t below = has_fact[fact.slice / kBits] & ((uint64_t{1} << fact.slice % kBits) - 1);
        return first[fact.slice / kBits] + static_cast<size_t>(std::popcount(below));
      };
      std::vector<Fact> ordered(facts.size());
      for (const Fact& fact : facts) ordered[place_of(fact)] = fact;
      facts.swap(ordered);
    }
  }
  if (!places_are_known) sort_stably(facts, before);
}

// Moves facts of rows to a part. `slice` has the slice of each row; facts of rows without one are left out.
inline void place_facts(SliceFacts& of_rows, const std::vector<uint32_t>& slice, SliceFacts& part) {
  each_fact_list([&](auto list) {
    auto& facts = part.*list = std::move(of_rows.*list);
    for (auto& fact : facts) fact.slice = slice[fact.slice];
    std::erase_if(facts, [](const auto& fact) { return fact.slice == kNoSliceIndex; });
    order_facts(facts, slice.size());
  });
}

}  // namespace stageline
