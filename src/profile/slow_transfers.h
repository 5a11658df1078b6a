// Finds links that are slower than others of their kind. The cause may be a single link, a rank that sends slowly to
// all, or a rank that all reach slowly.
//
//              to 0   1   2   3
//   from 0      ·    ▪   ▫   ▫      a slow row: the source;   a slow column: the destination;
//        1      ▫    ·   ▫   ▫      a slow cell: the link
#pragma once

#include "profile/transfers.h"

namespace stageline {

inline constexpr double kSlowRatio = 1.5;  // relative to the usual time of this kind of link for such sizes

struct RankLink {
  int32_t src = 0, dst = 0;
  int64_t count = 0, bytes = 0, time_ns = 0;
  double expected_ns = 0;
  std::vector<double> ratios;  // one for each of its transfers
  bool lasting = false;        // at least nine tenths of its transfers are slow
  // The slow end: "source" if most links from that rank are slow, "destination" if most links to it are, both with
  // "and". It is "link" if only this one is slow, and "" if it is not slow.
  const char* reading = "";
  double ratio() const { return expected_ns > 0 ? time_ns / expected_ns : 0; }
  int64_t lost_ns() const { return time_ns - std::llround(expected_ns); }
};

struct SlowestTransfer {
  Transfer transfer;
  double expected_ns = 0;
  int64_t lost_ns() const { return transfer.time_ns - std::llround(expected_ns); }
};

struct TransferClass {
  std::pair<std::string_view, std::string_view> name;  // transport, link type
  int64_t transfers = 0, bytes = 0, time_ns = 0;
  double median_gbps = NAN, threshold = 0;
  std::vector<RankLink> links;
  std::vector<SlowestTransfer> worst;
};

struct SlowTransfers {
  std::vector<TransferClass> classes;
  int64_t messages_alone = 0;  // ranks of which only messages are known
};

// Each class keeps its `most` slowest transfers. Messages are left out: their times include waiting, so a slow message
// proves nothing. O(n log n).
SlowTransfers slow_transfers(std::vector<RankTransfers> ranks, double threshold, size_t max);

// The links that are slow, who costs most first.
struct SlowRankLink {
  const TransferClass* of;
  const RankLink* link;
};
std::vector<SlowRankLink> slow_links(const std::vector<TransferClass>& classes);

}  // namespace stageline
