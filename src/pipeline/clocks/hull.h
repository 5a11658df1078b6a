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
#pragma once

#include <cstdint>
#include <vector>

namespace stageline::align {

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

}  // namespace stageline::align
