#include "pipeline/clocks/tie_points.h"

namespace stageline::align {
namespace {

__extension__ typedef __int128 Wide;  // holds timestamps of ± 126 years and differences, with room for twice as much

}  // namespace

int32_t ClockDomain::segment_of(int64_t stamp_ns) const {
  if (breaks.empty()) return 0;
  return static_cast<int32_t>(std::ranges::upper_bound(breaks, stamp_ns) - breaks.begin());
}

void Samples::add(const Sample& sample) {
  if ((count_++ & (stride_ - 1)) != 0) return;
  if (kept_.size() == kMost) {
    for (size_t i = 0; i < kMost / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(kMost / 2);
    stride_ *= 2;
    if (((count_ - 1) & (stride_ - 1)) != 0) return;
  }
  kept_.push_back(sample);
}

void Samples::sort() {
  const auto earlier = [](const Sample& x, const Sample& y) { return x.t < y.t; };
  if (!std::ranges::is_sorted(kept_, earlier)) sort_stably(kept_, earlier);
}

void Samples::merge(const Samples& other) {
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  sort();
  count_ += other.count_;
  while (kept_.size() > kMost) {
    for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
  }
}

void Samples::shift(double dt) {
  for (Sample& sample : kept_) sample.t += dt;
}

void TiePoints::merge(const TiePoints& other) {
  from_a.merge(other.from_a);
  from_b.merge(other.from_b);
  causal.merge(other.causal);
  rendezvous.merge(other.rendezvous);
}

void TiePoints::shift(double dt_a, double dt_b) {
  from_a.shift(dt_b);
  causal.upper.shift(dt_b);
  rendezvous.negated_lower.shift(dt_b);
  from_b.shift(dt_a);
  causal.negated_lower.shift(dt_a);
  rendezvous.upper.shift(dt_a);
}

Gathered gather(const Matches& matches, const Tie& tie, const Frame& frame) {
  Gathered out;
  // That an operator starts on both ranks at once is an assumption, which bounds nothing.
  const bool hard = tie.kind != TieKind::kOperator;
  // Timestamps and coarse offsets over 73 years from the epoch are not times; within that, no difference overflows.
  constexpr int64_t kSane = int64_t{1} << 60;
  const auto sane = [](int64_t ns) { return ns > -2 * kSane && ns < 2 * kSane; };
  for (const int64_t ns : {frame.a->coarse_ns, frame.b->coarse_ns, frame.middle_ns})
    if (!sane(ns)) return out;
  const int64_t a_minus_b = frame.a->coarse_ns - frame.b->coarse_ns;
  // Timestamps are rounded, so a bound that is exact (a message without latency) may come out too tight by a grain of
  // each clock.
  const double rounding = frame.a->grain_ns + frame.b->grain_ns;
  size_t current = SIZE_MAX;
  std::map<std::pair<int32_t, int32_t>, size_t> index;  // segments → index of out.points
  for_each_match(
      matches, tie,
      [&](const Match& m) {
        if (!(sane(m.send_start_ns) && sane(m.send_end_ns) && sane(m.recv_start_ns) && sane(m.recv_end_ns))) return;
        const bool from_a = m.from_a != frame.swapped;
        const ClockDomain &sender = from_a ? *frame.a : *frame.b, &receiver = from_a ? *frame.b : *frame.a;
        const int64_t across = from_a ? a_minus_b : -a_minus_b;
        const double t = m.recv_end_ns - receiver.coarse_ns - frame.middle_ns;
        if (t < frame.from_t || t >= frame.to_t) return;
        const int32_t segment_s = sender.segment_of(m.send_end_ns), segment_r = receiver.segment_of(m.recv_end_ns);
        const int32_t segment_a = from_a ? segment_s : segment_r, segment_b = from_a ? segment_r : segment_s;
        if ((frame.only_a >= 0 && segment_a != frame.only_a) || (frame.only_b >= 0 && segment_b != frame.only_b))
          return;
        if (current == SIZE_MAX || out.points[current].segment_a != segment_a ||
            out.points[current].segment_b != segment_b) {
          const auto [known, fresh] = index.try_emplace(std::pair(segment_a, segment_b), out.points.size());
          current = known->second;
          if (fresh) {
            out.points.emplace_back();
            out.points.back().segment_a = segment_a;
            out.points.back().segment_b = segment_b;
          }
        }
        TiePoints& points = out.points[current];
        const double sign = from_a ? 1 : -1;
        const double latest = (m.recv_end_ns - m.send_start_ns + across) + rounding;
        const double ends = m.recv_end_ns - m.send_end_ns + across;
        const double waited = (m.send_end_ns - m.recv_start_ns - across) + rounding;
        if (frame.trimmed && latest < sign * (frame.intercept + frame.slope * t) - frame.slack) {
          ++out.trimmed_count;
          out.first_trimmed = std::min(out.first_trimmed, m.tag);
          return;
        }
        (from_a ? points.from_a : points.from_b).add({t, sign * ends, sign * latest, -sign * waited});
        if (!hard) return;
        (from_a ? points.causal.upper : points.causal.negated_lower).add({t, latest, m.tag});
        (from_a ? points.rendezvous.negated_lower : points.rendezvous.upper).add({t, waited, m.tag});
      },
      &out.unmatched);
  for (TiePoints& points : out.points) {
    points.from_a.sort();
    points.from_b.sort();
    points.causal.finish();
    points.rendezvous.finish();
  }
  return out;
}

bool rough_difference(const Matches& matches, const Tie& tie, int64_t& difference_ns) {
  // Uses half the sum of one match each way where both exist. The walk is short, since nothing after the first two
  // counts.
  bool down = false, up = false;
  int64_t from_a = 0, from_b = 0;
  const auto take = [&](const Match& m) {
    if (m.from_a ? down : up) return;
    (m.from_a ? down : up) = true;
    const int64_t y = sum_or_limit(m.recv_end_ns, m.send_end_ns == INT64_MIN ? INT64_MAX : -m.send_end_ns);
    (m.from_a ? from_a : from_b) = m.from_a ? y : (y == INT64_MIN ? INT64_MAX : -y);
  };
  if (!tie.listed.empty()) {
    for (const Match& m : tie.listed) {
      take(m);
      if (down && up) break;
    }
  } else {
    Matches head;  // holds only the first steps of both ranks, which are enough
    head.trace = matches.trace;
    head.messages_numbered = matches.messages_numbered;
    constexpr size_t kSteps = 4;
    for (size_t steps = kSteps; !down && !up; steps *= 8) {
      head.steps_of_part.assign(std::max(tie.part_a, tie.part_b) + 1, {});
      bool all = true;
      for (const size_t p : {tie.part_a, tie.part_b}) {
        const auto& whole = matches.steps_of_part[p];
        const size_t kept = std::min(steps, whole.size());
        all = all && kept == whole.size();
        head.steps_of_part[p].assign(whole.begin(), whole.begin() + kept);
      }
      for_each_match(head, tie, take);
      if (all) break;
    }
  }
  if (!down && !up) return false;
  difference_ns = down && up ? static_cast<int64_t>((static_cast<Wide>(from_a) + from_b) / 2) : down ? from_a : from_b;
  return true;
}

}  // namespace stageline::align
