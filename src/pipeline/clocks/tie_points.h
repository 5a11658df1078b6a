// Gathers the matches of a tie as bounds and samples of y(t) = clock b − clock a, in one walk and without storing the
// matches. Of bounds the hull is kept; samples are thinned evenly to a fixed number, always the same ones.
#pragma once

#include "pipeline/clocks/match.h"

namespace stageline::align {

// Lines between upper and lower bounds: which drifts (slopes) and offsets two clocks can have.
//
// For y(t) = a + b·t each upper bound means y(t_k) ≤ u_k, each lower bound y(t_k) ≥ l_k. Only the lower convex hull of
// the upper bounds and the upper convex hull of the lower ones matter. Sources: Duda, Harrus, Haddad, Bernard 1987;
// applied to tracing by Clément & Dagenais 2009, Poirier, Roy, Dagenais 2010 and Jabbarifar 2013/14:
//
//      u     u
//    ──╲u──u╱──     no u beyond its hull can be binding;
//   ─────────────   the admissible lines run between the two hulls
//     ╱l╲___╱l
//    l        l
//
// Times and values are nanoseconds as doubles, relative to points near them: exact to far below a nanosecond.
struct Point {
  double t = 0, y = 0;
  uint32_t tag = 0;  // which match the point came from, for messages to people
};

// The lower convex hull of a stream of points that come mostly in order of time. It keeps the hull, and points that
// came out of order. A point in order costs O(1) amortised, one out of order O(log n) when finished.
class Hull {
 public:
  void add(const Point& point);
  // Must be called before anything is asked. More points may follow afterwards.
  void finish();
  // Moves all points by dt in time.
  void shift(double dt);
  void merge(const Hull& other);
  bool empty() const { return points_.empty() && late_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // Returns the least y − b·t over all points, and the point that has it; +∞ without points. O(log points).
  double support(double b, Point* where = nullptr) const;

 private:
  void push(const Point& point);
  std::vector<Point> points_, late_;
};

// Upper and lower bounds of y. Lower bounds are kept negated, so that the same Hull serves both.
struct Bounds {
  Hull upper, negated_lower;
  void finish();
  void merge(const Bounds& other);
  void shift(double dt);
  bool two_sided() const { return !upper.empty() && !negated_lower.empty(); }
  // Returns the room between the bounds for a line of slope b, negative when no such line fits. Concave in b.
  double room(double b) const { return upper.support(b) + negated_lower.support(-b); }
};

struct Slopes {
  bool possible = false;
  double low = 0, high = 0;  // slopes of the admissible lines
  double roomiest = 0;       // the slope with the most room between the bounds; set even when no line is possible
};
// Returns the admissible slopes within ± limit. Where bounds are on one side only, every slope is admissible.
Slopes admissible_slopes(const Bounds& bounds, double limit);

// Returns the highest value at time t of any admissible line with slope in [low, high]; +∞ without upper bounds.
double highest_at(const Hull& upper, double t, double low, double high);

// A clock: that of one machine or of one rank. A new segment begins at each of `breaks`, the timestamps at which the
// clock was set.
struct ClockDomain {
  std::vector<size_t> parts;
  int64_t coarse_ns = 0;  // timestamps minus this value are roughly timestamps of the first domain
  std::vector<int64_t> breaks;
  // Timestamps are whole multiples of this (stamp_grain_of), so no timestamp is known more exactly.
  int64_t grain_ns = 1;
  int32_t segment_of(int64_t stamp_ns) const;
};

// The apparent difference of the clocks at the end of a message: y, plus or minus the time that the message took after
// its sender was done.
struct Sample {
  double t = 0, y = 0;
  double causal = 0;      // the bound that always holds: from above on y where a sent, from below where b sent
  double rendezvous = 0;  // the bound that holds if senders wait: from below on y where a sent, from above where b sent
};

// Keeps at most kMost samples, every 2^k-th of those added.
class Samples {
 public:
  static constexpr size_t kMost = 4096;
  void add(const Sample& sample);
  const std::vector<Sample>& kept() const { return kept_; }
  int64_t count() const { return count_; }
  void merge(const Samples& other);
  void shift(double dt);
  void sort();  // sorted by time, because channels are added one after another

 private:
  std::vector<Sample> kept_;
  int64_t count_ = 0, stride_ = 1;
};

// The points between one segment of clock a and one of clock b, a before b.
struct TiePoints {
  int32_t segment_a = 0, segment_b = 0;
  Samples from_a, from_b;
  Bounds causal;      // bounds that always hold
  Bounds rendezvous;  // bounds that hold when senders wait for their receivers
  void merge(const TiePoints& other);
  // Moves times, which were taken from the receivers' clocks: points of messages from a by dt_a, those from b by dt_b.
  void shift(double dt_a, double dt_b);
};

// The clocks of a tie, and which of its matches to use.
struct Frame {
  const ClockDomain* a = nullptr;
  const ClockDomain* b = nullptr;
  bool swapped = false;   // clock a is that of Tie::part_b
  int64_t middle_ns = 0;  // t = 0, on the coarse axis
  double from_t = -1e300, to_t = 1e300;
  // With `trimmed`, leaves out matches whose bound the line y = intercept + slope · t breaks by more than `slack`; they
  // are known to be bad.
  bool trimmed = false;
  double intercept = 0, slope = 0, slack = 0;
  int32_t only_a = -1, only_b = -1;  // use only these segments; −1 stands for all
};

struct Gathered {
  std::vector<TiePoints> points;  // in the order of their first match
  Unmatched unmatched;
  int64_t trimmed_count = 0;
  uint32_t first_trimmed = UINT32_MAX;  // the match's tag
};
Gathered gather(const Matches& matches, const Tie& tie, const Frame& frame);

// Estimates clock b minus clock a from the first matches of the tie; false when it has none.
bool rough_difference(const Matches& matches, const Tie& tie, int64_t& difference_ns);

}  // namespace stageline::align
