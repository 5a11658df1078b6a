// A rank compared with the others of a profile: medians over these.
#pragma once

#include "diagnosis/profile/profile_facts.h"
#include "model/statistics.h"

namespace stageline {

// Expects that the rank is one of them.
inline const RankFacts& fact_of_rank(const ProfileFacts& facts, int32_t rank) {
  return *std::ranges::find(facts.ranks, rank, &RankFacts::rank);
}

// The median over the other ranks of what `get` returns for them, without those for which it is not a number.
template <class Get> double median_of_other_ranks(const ProfileFacts& facts, const RankFacts& rank, Get&& get) {
  std::vector<double> values;
  for (const RankFacts& other : facts.ranks)
    if (const double value = get(other); other.rank != rank.rank && !std::isnan(value)) values.push_back(value);
  return median_of(values);
}

inline double median_of_other_ranks(const ProfileFacts& facts, const RankFacts& rank, double RankFacts::* member) {
  return median_of_other_ranks(facts, rank, [&](const RankFacts& other) { return other.*member; });
}

// How much more of something a rank has than the median of the others.
inline double more_than_others(const ProfileFacts& facts, const RankFacts& rank, double RankFacts::* member) {
  return rank.*member - median_of_other_ranks(facts, rank, member);
}

// The compute time of the median of the others that recorded compute.
inline double others_computing(const ProfileFacts& facts, const RankFacts& rank) {
  return median_of_other_ranks(facts, rank,
                               [](const RankFacts& other) { return other.compute_ns > 0 ? other.compute_ns : kNaN; });
}

inline double longer_computing(const ProfileFacts& facts, const RankFacts& rank) {
  const double others = others_computing(facts, rank);
  return others > 0 ? rank.compute_ns - others : 0;
}

}  // namespace stageline
