// Derives from the points of one tie, for y(t) = clock b − clock a, bounds that certainly hold and the best estimate.
//
//   forward messages   ends differ by   y + τ          τ, τ': what a message takes after its sender is done
//   backward           ends differ by   y − τ'         half the sum is y, if τ = τ'
//
// No method can distinguish a path that is slower one way than the other from an offset; only the bounds limit it.
#pragma once

#include "pipeline/clocks/tie_points.h"

namespace stageline::align {

// Two quartz clocks differ by some 100 ppm at most. If no line within kMaxDrift keeps the bounds of a tie but a steeper
// one does, the clocks of that run are worse than quartz. They may be clocks of virtual machines, or slewed ones;
// drifts up to kWildDrift are allowed.
inline constexpr double kMaxDrift = 5e-4;
inline constexpr double kWildDrift = 2.5e-3;

struct TieFit {
  bool two_way = false;                      // there are messages in both directions, which an estimate needs
  bool possible = false;                     // some line keeps all bounds
  bool rendezvous = false;                   // senders waited for their receivers, so those bounds count too
  double offset = 0, slope = 0;              // the best line: y = offset + slope · t
  double middle_t = 0;                       // the middle of its samples' times, where the line is known best
  double offset_sigma = 0, slope_sigma = 0;  // standard errors of the line by its scatter
  double asymmetry = 0;                      // mean over both ways of a message's time after its sender is done
  double slope_low = 0, slope_high = 0;      // the slopes of lines that keep all bounds
  int64_t match_count = 0;
};

// `drift_limit` is kMaxDrift, or 0 where the time is too short to see a drift. `bounds` receives the bounds that count;
// rendezvous bounds are among them when they hold.
TieFit fit_tie(const TiePoints& points, TieKind kind, double drift_limit, Bounds& bounds);

// Fits a robust line through the samples of y, without regard to the bounds; nullopt when samples come from one side
// only.
struct Line {
  double offset = 0, slope = 0, scatter = 0;
  double at(double t) const { return offset + slope * t; }
};
std::optional<Line> robust_line(const TiePoints& points, TieKind kind, double drift_limit);

// Tries a few likely slopes, including that of `start`, and returns the line that the fewest causal bounds contradict,
// in the middle of its range. A few wrong matches among many cannot move it. O(samples log samples).
Line min_contradicted(const TiePoints& points, const Line& start, double drift_limit);

// A jump of y, where one of the clocks was set.
struct ClockJump {
  double from_t = 0, to_t = 0;  // the jump happened between these times
  double jump = 0;              // y after it minus y before
  Line before, after;
};
// Returns every jump that is plain, in order of time. More may show once the tie is cut there. O(samples + blocks²),
// with 64 blocks.
std::vector<ClockJump> find_jumps(const TiePoints& points, TieKind kind, double drift_limit);
// Returns the time within [from_t, to_t] that separates the samples best.
double refine_jump(const TiePoints& window, const ClockJump& jump);

}  // namespace stageline::align
