// Finds the calls of one collective on its ranks, from calls that are equal in what all ranks have in common. It is the
// one matcher of the ledger, of communication_ops.h and of tb_run.h, which differ in these keys alone.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// For each rank that has calls with one key: these, in their order.
template <class Call> using SameCalls = std::vector<std::span<Call>>;

template <class Call> size_t max_calls(const SameCalls<Call>& ranks) {
  return std::ranges::max(ranks, {}, [](const auto& rank) { return rank.size(); }).size();
}
template <class Call> bool equally_many(const SameCalls<Call>& ranks) {
  return std::ranges::all_of(ranks, [&](const auto& rank) { return rank.size() == ranks[0].size(); });
}

// Calls found(SameCalls) for each key, in the order of the keys. Calls of one rank and key keep their order; those of
// the first rank in `calls` come first. O(n log n).
template <class Call, class Key, class Rank, class Found>
void each_same(std::vector<Call>& calls, Key key, Rank rank, Found found) {
  sort_stably(calls, {}, key);
  SameCalls<Call> ranks;
  for (size_t i = 0; i < calls.size();) {
    size_t end = i;
    ranks.clear();
    for (size_t begin = i; end < calls.size() && key(calls[end]) == key(calls[i]); begin = end) {
      while (end < calls.size() && key(calls[end]) == key(calls[i]) && rank(calls[end]) == rank(calls[begin])) ++end;
      ranks.emplace_back(&calls[begin], end - begin);
    }
    found(std::as_const(ranks));
    i = end;
  }
}

// Calls found(calls) for the first call of each rank, then for the second of those that have one, and so on.
template <class Call, class Found> void each_instance(const SameCalls<Call>& ranks, Found found) {
  std::vector<Call> one;
  for (size_t k = 0; k < max_calls(ranks); ++k) {
    one.clear();
    for (const auto& rank : ranks)
      if (k < rank.size()) one.push_back(rank[k]);
    found(std::as_const(one));
  }
}

}  // namespace stageline
