// Times as Python's json.dumps writes them, fast where doubles are a quarter of a microsecond apart.
#include "compat/paddle_timeline/timeline_writer.h"

#include <doctest/doctest.h>

using namespace stageline;

namespace {

std::string written(double us) {
  char bytes[kMaxTimeBytes];
  return {bytes, put_time(bytes, {.us = us, .is_integer_zero = false})};
}

}  // namespace

TEST_CASE("a time is written as Python's repr writes it, at both ends of the fast way and beyond") {
  for (const double us : {0x1p50, 0x1p50 - 0.125, 0x1p50 + 0.25, 0x1p51 - 0.25, 0x1p51, 1.7e15 + 0.5, 1.7e15 + 0.75,
                          0.0, -1.5, 1e-7, 1e22})
    CHECK(written(us) == repr_double(us));
}

TEST_CASE("all quarters of a microsecond are written by their shortest decimals") {
  CHECK(written(1.7e15) == "1700000000000000.0");
  CHECK(written(1.7e15 + 0.25) == "1700000000000000.2");
  CHECK(written(1.7e15 + 0.5) == "1700000000000000.5");
  CHECK(written(1.7e15 + 0.75) == "1700000000000000.8");
}

TEST_CASE("an integer zero and infinity are JSON's") {
  char bytes[kMaxTimeBytes];
  CHECK(std::string(bytes, put_time(bytes, PyTime{})) == "0");
  CHECK(written(std::numeric_limits<double>::infinity()) == "Infinity");
}
