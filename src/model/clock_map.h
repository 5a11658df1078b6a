// ClockMap: how the stamps of one rank become times that all ranks share.
//
//   local(t) = t + offset + drift · (t − origin)      t: time of the reference rank's clock
//
// The columns of a Trace stay in each rank's own clock; whatever draws several ranks on one axis goes through the map.
// A map is monotone within a segment (|drift| < 1), so the order of stamps and the nesting of slices survive it. A
// clock that was set in mid-run has one segment before and one after.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stageline {

// What the offset of a rank stands on, the best first.
enum class ClockEvidence : uint8_t {
  kReference,    // the rank whose clock the others are put on
  kSharedClock,  // stamped by the reference's own clock (same machine)
  kMessages,     // pipeline messages lead to the reference
  kMixed,        // messages to its neighbours, collectives from there to the reference
  kCollectives,
  kGaps,      // no messages: the smallest gaps between a forward (backward) and the one that waits for it
  kOperator,  // chosen by hand: an operator that is taken to start on both ranks at once
  kTrusted,   // nothing ties it: its stamps are taken as they are
};
bool is_measured(ClockEvidence evidence);                // stands on a comparison of stamps, not on what somebody says
std::string_view evidence_name(ClockEvidence evidence);  // "reference", "shared clock", "messages", …

struct ClockSegment {
  int64_t from_ns = INT64_MIN;  // holds for stamps from here to the next segment's
  int64_t origin_ns = 0;        // the stamp at which offset_ns holds
  int64_t offset_ns = 0;        // this clock minus the reference's
  int64_t offset_half_ns = -1;  // the true offset at origin_ns lies within ± this of offset_ns; −1: nobody knows
  double offset_error_ns = -1;  // how far offset_ns is likely off (one standard error): an estimate; −1: unknown
  double drift = 0;             // seconds gained per second against the reference: 1e-6 is a ppm fast
  double drift_half = -1;       // the same for the drift; −1: unknown
  double drift_error = -1;      // likely error of the drift; −1: unknown
  int64_t message_count = 0;    // matched messages, collectives or gaps it stands on
  ClockEvidence evidence = ClockEvidence::kTrusted;  // of this segment
  int32_t reference_rank = -1;  // whose clock it is put on; of ranks that nothing ties to the first: one of their own
};

struct ClockMap {
  std::vector<ClockSegment> segments;                // by from_ns; empty: stamps are left as they are
  ClockEvidence evidence = ClockEvidence::kTrusted;  // the worst of the segments'

  // Nanoseconds on the reference's clock. O(log segments). Stamps too far out to map come back as they are.
  int64_t common_ns(int64_t stamp_ns) const;
  const ClockSegment& segment_at(int64_t stamp_ns) const;
  // The largest half-interval over the segments; −1 when one is unknown.
  int64_t offset_half_ns() const;
};

}  // namespace stageline
