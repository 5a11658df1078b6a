// Which rank the others wait for in collectives.
//
// Clocks of ranks are not compared: the rank with the shortest operation came last (communication_ops.h).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "profile/communication_ops.h"

namespace stageline {

struct RankWaits {
  int64_t collectives = 0, last = 0, wait_ns = 0, caused_ns = 0;
  int64_t transfer_ns = 0;  // what the fastest rank of each of its collectives took
};
struct KindWaits {
  int64_t count = 0, ranks = 0, wait_ns = 0, longest_ns = 0;
  std::vector<double> end_spread_ns;
  std::map<int32_t, int64_t> caused_ns;  // for each rank
};
struct CollectiveSums {
  std::vector<RankWaits> ranks;                                         // for each part of the run
  std::map<std::tuple<StringId, StringId, StringId>, KindWaits> kinds;  // group, its ranks, name
};

// Finds each collective on its ranks and sums who waited for whom. O(n log n) in all operations.
CollectiveSums collective_sums(const TorchRun& run, const Matched& matched);

}  // namespace stageline
