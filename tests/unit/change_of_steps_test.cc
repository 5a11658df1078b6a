// A change between the steps of two runs, with one long step that hides it.
#include "diagnosis/profile/change_of_steps.h"

#include <doctest/doctest.h>

using namespace stageline;

namespace {

using Values = std::vector<double>;

double mean(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / values.size();
}

double certain(const Values& a, const Values& b, double min_ns = 1) {
  return ChangeOfSteps(a, b, min_ns).certain_ns(mean(b) - mean(a), a, b);
}

const Values kBefore = {100, 101, 99, 100, 101, 99, 100, 100}, kAfter = {110, 111, 109, 110, 111, 109, 110, 110};

}  // namespace

TEST_CASE("a change that all steps show is certain in full") {
  CHECK(certain(kBefore, kAfter) == doctest::Approx(10));
  CHECK(certain(kAfter, kBefore) == doctest::Approx(-10));
  CHECK(ChangeOfSteps(kBefore, kAfter, 1).is_sure(10, kBefore, kAfter));
}

TEST_CASE("a change below the minimum, or within the scatter, is none") {
  CHECK(certain(kBefore, kAfter, 11) == 0);
  CHECK(certain({100, 140, 60, 100}, {104, 64, 144, 104}) == 0);
  CHECK(certain({100}, {150}) == 50);  // of one step no scatter is known: the change counts
}

TEST_CASE("one long step does not hide what the usual steps show") {
  Values after = kAfter;
  after[3] = 400;
  CHECK(certain(kBefore, after) == doctest::Approx(10).epsilon(0.02));
}

TEST_CASE("one long step alone is no change of the others") {
  Values after = kBefore;
  after[3] = 400;
  CHECK(certain(kBefore, after) == 0);
}

TEST_CASE("without long steps the usual ones are all") {
  const ChangeOfSteps change(kBefore, kAfter, 1);
  CHECK(change.steps() == 8);
  CHECK(change.min_ns() == 1);
}
