
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "base/number.h"

using stageline::percent;
using stageline::percents;

namespace {

double sum_of(const std::vector<std::string>& printed) {
  double sum = 0;
  for (const std::string& text : printed) {
    const bool below = text.starts_with("−");
    const double value = std::strtod(text.c_str() + (below ? std::string("−").size() : 0), nullptr);
    sum += below ? -value : value;
  }
  return sum;
}

}  // namespace

TEST_CASE("printed parts of a whole add up to 100.0") {
  for (const std::vector<double>& shares : {std::vector<double>{1 / 3.0, 1 / 3.0, 1 / 3.0},
                                            {0.55955, 0.1, 0.1, 0.1, 0.14045},
                                            {0.5, 0.25, 0.125, 0.125},
                                            {0.99960, 0.0002, 0.0002},
                                            {0.70049, 0.30049, -0.00098},
                                            {0.1605, 0.1605, 0.1605, 0.1605, 0.358}})
    CHECK(sum_of(percents(shares)) == doctest::Approx(100.0));
}

TEST_CASE("the first part keeps its own rounding") {
  CHECK(percents({0.5595, 0.2202, 0.2203})[0] == percent(0.5595));
  CHECK(percents({1 / 3.0, 1 / 3.0, 1 / 3.0})[0] == percent(1 / 3.0));
}

TEST_CASE("shares that are no whole are rounded singly") {
  CHECK(percents({0.25, 0.25})[0] == percent(0.25));
  CHECK(percents({}).empty());
}
