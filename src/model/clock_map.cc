#include "model/clock_map.h"

namespace stageline {

std::string_view evidence_name(ClockEvidence evidence) {
  static constexpr auto kTexts =
      texts_by<ClockEvidence::kTrusted>({"reference", "shared clock", "messages", "messages and collectives",
                                         "collectives", "compute gaps", "operator", "trusted"});
  return kTexts[evidence];
}

bool is_measured(ClockEvidence evidence) {
  return evidence != ClockEvidence::kReference && evidence != ClockEvidence::kSharedClock &&
         evidence != ClockEvidence::kTrusted;
}

const ClockSegment& ClockMap::segment_at(int64_t stamp_ns) const {
  auto next = std::ranges::upper_bound(segments, stamp_ns, {}, &ClockSegment::from_ns);
  return next == segments.begin() ? segments.front() : *(next - 1);
}

int64_t ClockMap::common_ns(int64_t stamp_ns) const {
  if (segments.empty()) return stamp_ns;
  const ClockSegment& s = segments.size() == 1 ? segments.front() : segment_at(stamp_ns);
  int64_t since = 0, common = 0;
  if (__builtin_sub_overflow(stamp_ns, s.origin_ns, &since)) return stamp_ns;
  // The header's formula, timestamp = t + offset + drift·(t − t0) with t0 = origin − offset, is solved for t. The exact
  // factor drift / (1 + drift) is used, for over days drift² counts.
  const double gained = since * (s.drift / (1 + s.drift));
  if (!(std::abs(gained) < 4e18)) return stamp_ns;
  auto rounded = static_cast<int64_t>(gained);  // as std::llround() does, but without a call for every timestamp
  const double rest = gained - rounded;
  rounded += (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
  int64_t shift = 0;
  if (__builtin_add_overflow(s.offset_ns, rounded, &shift)) return stamp_ns;
  return __builtin_sub_overflow(stamp_ns, shift, &common) ? stamp_ns : common;
}

int64_t ClockMap::offset_half_ns() const {
  int64_t worst = 0;
  for (const ClockSegment& s : segments) {
    if (s.offset_half_ns < 0) return -1;
    worst = std::max(worst, s.offset_half_ns);
  }
  return segments.empty() ? -1 : worst;
}

}  // namespace stageline
