// Finds which send of one rank is which receive of another, over all ranks. A link is a text that occurs at both ends
// and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compat/msprof/communication.h"

namespace stageline {

struct RankPeers {
  int32_t rank = 0;
  // Distinguishes ranks of different pipelines whose groups have the same name: "[0,2,4,6]"; "" when unknown.
  std::string pipeline;
  std::vector<PeerOp> ops;  // ordered by start
};

struct PairedLinks {
  std::vector<std::vector<std::pair<int64_t, std::string>>> by_rank;  // row number → link
  std::vector<std::string> remarks;  // one sentence for each that could not be paired, at most kMaxRemarks
  int64_t pairs = 0;
  static constexpr size_t kMaxRemarks = 8;
};

// The k-th send from one rank of a group to another is the k-th receive there. One end may have recorded fewer, because
// its window started later or ended earlier. Then the shift is chosen under which both ends of all pairs end together,
// up to one offset of clocks. Texts have the form of msprof-analyze's, "<tag>_<source>_<destination>_<k>", for batches
// "…_b<k>". O(operations · shifts), with at most kMaxShifts shifts.
inline constexpr size_t kMaxShifts = 256;
PairedLinks pair_links(const std::vector<RankPeers>& ranks);

}  // namespace stageline
