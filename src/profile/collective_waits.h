// Which rank the others wait for in collectives.
//
// Clocks of ranks are not compared. All ranks leave a synchronising collective together, so the rank with the shortest
// kernel came last, and each other rank waited by as much as its kernel is longer.
//
//   rank 0  ├── waits ───┼─ exchange ─┤
//   rank 1        ├ waits┼─ exchange ─┤
//   rank 2               ├─ exchange ─┤   came last: its kernel has the exchange alone
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "profile/torch_view.h"

namespace stageline {

struct MatchedCall {
  // These fields are equal on all ranks of one collective.
  StringId comms_id = 0, group = 0, group_ranks = 0, name = 0;
  int64_t number = -1;  // its own sequence number
  int32_t step = -1;    // without a number: the profiler step, and the position in it
  uint32_t position = 0;

  size_t part = 0;
  int64_t start_ns = 0, dur_ns = 0;

  auto key() const { return std::tuple(comms_id, group, group_ranks, name, number, step, position); }
  auto kind() const { return std::tuple(comms_id, group, group_ranks, name, number, step); }
};

struct RankCalls {
  std::vector<MatchedCall> list;
  int64_t left_out = 0;  // number of point-to-point and rooted operations
};

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
  int64_t alone = 0;  // number of collectives without a counterpart on another rank
};

// The collectives of one rank, sorted so that equal ones are numbered; `steps`: only these, ascending; empty: all.
class CollectiveCalls {
 public:
  explicit CollectiveCalls(const StringPool& names);
  RankCalls of(const TorchRank& rank, size_t part, const std::vector<int32_t>& steps) const;

 private:
  std::vector<bool> leaves_early_, send_receive_, all_to_all_;  // of each name
  bool inside_all_to_all(const Slices& s, uint32_t slice) const;
};

// Finds each collective on its ranks and sums who waited for whom. O(n log n) in all collectives.
CollectiveSums collective_sums(const TorchRun& run, const std::vector<RankCalls>& ranks);

}  // namespace stageline
