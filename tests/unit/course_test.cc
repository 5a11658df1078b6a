#include "pipeline/sums/course.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stageline {
namespace {

// Scatter of ± 0.01 without a pattern of few steps.
double scatter(size_t i) { return 0.01 * std::sin(2.7 * static_cast<double>(i * i + 1)); }

std::vector<double> values_of(size_t count, double (*shape)(size_t)) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(shape(i) + scatter(i));
  return values;
}

TEST_CASE("a course without a shape is constant") {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{5}, size_t{6}, size_t{12}, size_t{100}}) {
    const Course course = course_of(values_of(count, [](size_t) { return 1.0; }));
    CHECK(course.kind == CourseKind::kConstant);
    CHECK(course.level.size() == count);
  }
  CHECK(course_of(std::vector<double>(20, 1.0)).kind == CourseKind::kConstant);
}

TEST_CASE("an onset, a trend and a pattern are told apart, with their levels") {
  const Course onset = course_of(values_of(20, [](size_t i) { return i >= 10 ? 1.3 : 1.0; }));
  REQUIRE(onset.kind == CourseKind::kOnset);
  CHECK(onset.from == 10);
  CHECK(onset.low == doctest::Approx(1.0).epsilon(0.01));
  CHECK(onset.high == doctest::Approx(1.3).epsilon(0.01));
  CHECK(onset.noise < 0.012);

  const Course trend = course_of(values_of(20, [](size_t i) { return 1 + 0.015 * static_cast<double>(i); }));
  REQUIRE(trend.kind == CourseKind::kTrend);
  CHECK(trend.level[0] == doctest::Approx(1.0).epsilon(0.02));
  CHECK(trend.level[19] == doctest::Approx(1.285).epsilon(0.02));

  const Course third = course_of(values_of(12, [](size_t i) { return i % 3 == 1 ? 1.3 : 1.0; }));
  REQUIRE(third.kind == CourseKind::kEvery);
  CHECK(third.every == 3);
  CHECK(third.from == 1);
  CHECK(third.high_count == 4);

  const Course some =
      course_of(values_of(20, [](size_t i) { return i == 3 || i == 4 || i == 11 || i == 16 ? 1.4 : 1.0; }));
  REQUIRE(some.kind == CourseKind::kSome);
  CHECK(some.high_count == 4);
}

TEST_CASE("unknown steps are left out of the fit, and still have a level") {
  std::vector<double> values = values_of(20, [](size_t i) { return i >= 10 ? 1.3 : 1.0; });
  values[3] = values[12] = std::numeric_limits<double>::quiet_NaN();
  const Course course = course_of(values);
  REQUIRE(course.kind == CourseKind::kOnset);
  CHECK(course.from == 10);
  CHECK(course.level[12] == doctest::Approx(1.3).epsilon(0.01));
}

}  // namespace
}  // namespace stageline
