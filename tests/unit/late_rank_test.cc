// Some rank is always last: the waiting of a late one comes apart from that of the others.
#include "diagnosis/profile/late_rank.h"

#include <doctest/doctest.h>

#include "diagnosis/profile/other_ranks.h"

using namespace stageline;

namespace {

using Waits = std::map<int32_t, double>;

ProfileFacts facts_of(const std::vector<double>& compute_ns) {
  ProfileFacts facts;
  for (const double ns : compute_ns) {
    RankFacts& rank = facts.ranks.emplace_back();
    rank.rank = static_cast<int32_t>(facts.ranks.size()) - 1;
    rank.compute_ns = ns;
  }
  return facts;
}

}  // namespace

TEST_CASE("of fewer than three ranks, or of a rank that waits nowhere, nothing is known: it may be late") {
  CHECK(comes_apart({}, 0, 1));
  CHECK(comes_apart({{0, 5}, {1, 5}}, 0, 1));
  CHECK(comes_apart({{0, 5}, {1, 5}, {2, 5}}, 7, 1));
}

TEST_CASE("a late rank waits less than the others by more than these differ") {
  CHECK(comes_apart({{0, 10}, {1, 100}, {2, 110}}, 0, 20));
  CHECK_FALSE(comes_apart({{0, 10}, {1, 100}, {2, 110}}, 1, 20));
  CHECK_FALSE(comes_apart({{0, 90}, {1, 100}, {2, 110}}, 0, 20));   // less than the minimum
  CHECK_FALSE(comes_apart({{0, 10}, {1, 50}, {2, 110}}, 0, 20));    // the others differ by more
  CHECK_FALSE(comes_apart({{0, 100}, {1, 100}, {2, 100}}, 0, 20));  // ties
}

TEST_CASE("late ranks are a minority: two of four are a half, two of five are not") {
  const Waits four = {{0, 10}, {1, 11}, {2, 100}, {3, 101}}, five = {{0, 10}, {1, 11}, {2, 100}, {3, 101}, {4, 102}};
  CHECK_FALSE(comes_apart(four, 0, 20));
  CHECK(comes_apart(five, 0, 20));
  CHECK(comes_apart(five, 1, 20));
  CHECK_FALSE(comes_apart(five, 2, 20));
}

TEST_CASE("a rank is compared with the median of the others that recorded compute") {
  const ProfileFacts two = facts_of({110, 100}), four = facts_of({130, 100, 104, 90});
  CHECK(longer_computing(two, two.ranks[0]) == 10);
  CHECK(longer_computing(two, two.ranks[1]) == -10);
  CHECK(longer_computing(four, four.ranks[0]) == 30);
  const ProfileFacts idle = facts_of({130, 0, 100, 0}), alone = facts_of({130, 0});
  CHECK(longer_computing(idle, idle.ranks[0]) == 30);
  CHECK(longer_computing(alone, alone.ranks[0]) == 0);
}

TEST_CASE("lateness has a reason if one explains half of what the others wait") {
  ProfileFacts facts = facts_of({150, 100, 100});
  CHECK(why_late(facts, facts.ranks[0], 100) == Why::kComputing);
  CHECK(why_late(facts, facts.ranks[0], 101) == Why::kUnknown);
  facts.ranks[0].host_wait_ns = 80;
  CHECK(why_late(facts, facts.ranks[0], 160) == Why::kHost);
  facts.ranks[0].stream_wait_ns = 90;
  CHECK(why_late(facts, facts.ranks[0], 160) == Why::kStream);
}
