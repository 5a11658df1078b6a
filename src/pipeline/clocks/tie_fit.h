// What the points of one tie say about y(t) = clock b − clock a: bounds that hold for certain, and the best guess.
//
//   forward messages   ends differ by   y + τ          τ, τ': what a message takes after its sender is done
//   backward           ends differ by   y − τ'         half the sum is y, if τ = τ'
//
// A path that is slower one way than the other cannot be told from an offset, by any method: only the bounds limit it.
#pragma once

#include <optional>

#include "pipeline/clocks/tie_points.h"

namespace stageline::align {

// Two quartz clocks differ by some 100 ppm at most. Where no such line keeps the bounds of a tie and a steeper one
// does, the clocks of that run are worse (those of virtual machines, or slewed): up to kWildDrift they are followed.
inline constexpr double kMaxDrift = 5e-4;
inline constexpr double kWildDrift = 2.5e-3;

struct TieFit {
  bool two_way = false;                      // messages in both directions: an estimate is possible
  bool possible = false;                     // some line keeps all bounds
  bool rendezvous = false;                   // senders waited for their receivers: those bounds count too
  double offset = 0, slope = 0;              // best line: y = offset + slope · t
  double middle_t = 0;                       // where its samples are: there it is known best
  double offset_sigma = 0, slope_sigma = 0;  // what its scatter says about it
  double asymmetry = 0;                      // what a message takes once its sender is done, on the mean of both ways
  double slope_low = 0, slope_high = 0;      // of the lines that keep all bounds
  int64_t match_count = 0;
};

// `drift_limit`: kMaxDrift, or 0 where time is too short for one. `bounds`: those that count, the rendezvous bounds
// among them when they hold.
TieFit fit_tie(const TiePoints& points, TieKind kind, double drift_limit, Bounds& bounds);

// A robust line through what the samples say of y, whatever the bounds; nullopt when they come from one side only.
struct Line {
  double offset = 0, slope = 0, scatter = 0;
  double at(double t) const { return offset + slope * t; }
};
std::optional<Line> robust_line(const TiePoints& points, TieKind kind, double drift_limit);

// Of lines with a few likely slopes (that of `start` among them) the one that the fewest causal bounds contradict, in
// the middle of where that is so: what a few wrong matches among many cannot move. O(samples log samples).
Line least_contradicted(const TiePoints& points, const Line& start, double drift_limit);

// Where one of the clocks was set: y jumps.
struct ClockJump {
  double from_t = 0, to_t = 0;  // it was in between
  double jump = 0;              // y after minus y before
  Line before, after;
};
// Every such place that is plain, by time; more may show once the tie is cut there. O(samples + blocks²), 64 blocks.
std::vector<ClockJump> find_jumps(const TiePoints& points, TieKind kind, double drift_limit);
// The moment within [from_t, to_t] that separates the samples best.
double refine_jump(const TiePoints& window, const ClockJump& jump);

}  // namespace stageline::align
