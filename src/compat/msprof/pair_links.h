// Which send of one rank is which receive of another, over all ranks: a link is one text that stands at both ends and
// nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compat/msprof/communication.h"

namespace stageline {

struct RankPeers {
  int32_t rank = 0;
  std::string pipeline;  // tells ranks of different pipelines apart whose groups have one name: "[0,2,4,6]"; "" unknown
  std::vector<PeerOp> ops;  // by start
};

struct PairedLinks {
  std::vector<std::vector<std::pair<int64_t, std::string>>> by_rank;  // row number → link
  std::vector<std::string> remarks;  // what could not be paired, a sentence each, at most kMostRemarks
  int64_t pairs = 0;
  static constexpr size_t kMostRemarks = 8;
};

// The k-th send from one rank of a group to another is the k-th receive there. Where one end recorded fewer (its window
// began later or ended earlier) the shift is chosen under which both ends of all pairs end together, up to one offset
// of clocks. Texts as msprof-analyze forms them, "<tag>_<source>_<destination>_<k>", of batches "…_b<k>".
// O(operations · shifts), shifts at most kMostShifts.
inline constexpr size_t kMostShifts = 256;
PairedLinks pair_links(const std::vector<RankPeers>& ranks);

}  // namespace stageline
