// ClockMap: how the timestamps of one rank become times that all ranks share.
//
//   local(t) = t + offset + drift · (t − t0)      t: time of the reference rank's clock; t0 = origin − offset
//
// Example: a clock that is 2 ms ahead (offset = 2 000 000 ns) shows 12:00:00.002 when the reference shows 12:00:00.000.
//
// The columns of a Trace stay in each rank's own clock; whatever draws several ranks on one axis goes through the map.
// A map is monotone within a segment (|drift| < 1), so the order of timestamps and the nesting of slices survive it. A
// clock that was set in mid-run has one segment before and one after.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// The evidence that a rank's offset was measured by, the best first.
enum class ClockEvidence : uint8_t {
  kReference,    // the rank whose clock the others are put on
  kSharedClock,  // stamped by the reference's own clock (same machine)
  kMessages,     // messages of the pipeline connect the rank to the reference
  kMixed,        // messages connect it to a neighbour, and collectives connect that one to the reference
  kCollectives,
  // There were no messages; used were the smallest gaps between a forward (backward) and the one that waits for it.
  kGaps,
  kOperator,  // the user named an operator that is taken to start at the same instant on both ranks
  kTrusted,   // nothing connects the rank to the others; its timestamps are taken as they are
};
// Returns true where timestamps were compared, false where the clock is only stated to agree.
bool is_measured(ClockEvidence evidence);
std::string_view evidence_name(ClockEvidence evidence);  // "reference", "shared clock", "messages", …

struct ClockSegment {
  int64_t from_ns = INT64_MIN;  // the segment holds for timestamps from here up to the next segment's from_ns
  int64_t origin_ns = 0;        // the timestamp of this clock at which offset_ns holds
  int64_t offset_ns = 0;        // this clock's time minus the reference's time
  // The true offset at origin_ns lies within ± this of offset_ns; −1 when no bound is known.
  int64_t offset_half_ns = -1;
  double offset_error_ns = -1;  // one standard error of offset_ns, which is an estimate and no bound; −1 when unknown
  double drift = 0;           // seconds gained per second against the reference: 1e-6 runs fast by one part per million
  double drift_half = -1;     // the true drift lies within ± this of drift; −1 when no bound is known
  double drift_error = -1;    // one standard error of the drift; −1 when unknown
  int64_t message_count = 0;  // how many matched messages, collectives or gaps the segment was fitted to
  ClockEvidence evidence = ClockEvidence::kTrusted;  // the kind of evidence for this segment
  // The rank whose clock is the reference; ranks that nothing connects to the first have one among themselves.
  int32_t reference_rank = -1;
};

struct ClockMap {
  std::vector<ClockSegment> segments;                // ordered by from_ns; when empty, timestamps are left as they are
  ClockEvidence evidence = ClockEvidence::kTrusted;  // the worst evidence of all segments

  // Returns the stamp as nanoseconds on the reference's clock. A stamp so far away that the result would overflow comes
  // back unchanged. O(log segments).
  int64_t common_ns(int64_t stamp_ns) const;
  const ClockSegment& segment_at(int64_t stamp_ns) const;
  // Returns the widest offset_half_ns of all segments; −1 when one of them is unknown.
  int64_t offset_half_ns() const;
};

}  // namespace stageline
