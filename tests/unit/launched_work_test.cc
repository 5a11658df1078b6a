// Ranges of host threads on devices, asked about in any order.
#include "readers/common/launched_work.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stageline {

TEST_CASE("work that was launched within a time is found, in whatever order times are asked for") {
  struct Launch {
    int64_t thread, start;
    uint32_t number;
  };
  std::mt19937 random(5);
  std::vector<Launch> launches;
  LaunchedWork work;
  for (uint32_t number = 1; number <= 3000; ++number) {
    const Launch launch{static_cast<int64_t>(random() % 3), static_cast<int64_t>(random() % 5000), number};
    work.add_launch(launch.thread, launch.start, number);
    if (number % 7 == 0) continue;  // it launched nothing
    launches.push_back(launch);
    work.add_work({0, number, launch.start + 10, launch.start + 20, number});
  }
  work.settle();
  const auto check = [&](int64_t thread, int64_t from, int64_t to) {
    std::vector<uint32_t> found, wanted;
    work.for_launched(thread, from, to, [&](const LaunchedWork::Work& one) { found.push_back(one.row); });
    for (const Launch& launch : launches)
      if (launch.thread == thread && launch.start >= from && launch.start < to) wanted.push_back(launch.number);
    std::sort(found.begin(), found.end());
    std::sort(wanted.begin(), wanted.end());
    CHECK(found == wanted);
  };
  for (int64_t thread = 0; thread < 4; ++thread)  // forward, as ranges come; the last thread has no launches
    for (int64_t from = -10; from < 5100; from += 37) check(thread, from, from + 90);
  for (int k = 0; k < 500; ++k) {
    const auto from = static_cast<int64_t>(random() % 5200) - 100;
    check(static_cast<int64_t>(random() % 4), from, from + static_cast<int64_t>(random() % 300));
  }
}

}  // namespace stageline
