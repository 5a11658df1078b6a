// Lines under points and over points: which constant rates and offsets a pair of clocks can have.
//
// Each upper bound says y(t_k) ≤ u_k, each lower bound y(t_k) ≥ l_k, for y(t) = a + b·t. Only the lower convex hull of
// the upper bounds and the upper convex hull of the lower ones matter (Duda, Harrus, Haddad, Bernard 1987; applied to
// tracing by Clément & Dagenais 2009, Poirier, Roy, Dagenais 2010 and Jabbarifar 2013/14):
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
  uint32_t tag = 0;  // which match it came from, for messages to people
};

// Lower convex hull of a stream of points, mostly in order of time. Memory: the hull, and points out of order.
// O(1) amortised a point in order; out of order O(log n) when finished.
class Hull {
 public:
  void add(const Point& point);
  // To be called before anything is asked; more points may follow.
  void finish();
  // Moves every point in time.
  void shift(double dt);
  void merge(const Hull& other);
  bool empty() const { return points_.empty() && late_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // min over points of y − b·t, and the point where it is. O(log points). +∞ without points.
  double support(double b, Point* where = nullptr) const;

 private:
  void push(const Point& point);
  std::vector<Point> points_, late_;
};

// Upper bounds and lower bounds of y. Lower bounds are kept negated: the hull of −l.
struct Bounds {
  Hull upper, negated_lower;
  void finish();
  void merge(const Bounds& other);
  void shift(double dt);
  bool two_sided() const { return !upper.empty() && !negated_lower.empty(); }
  // Room between the bounds for a line of slope b: negative when there is none. Concave in b.
  double room(double b) const { return upper.support(b) + negated_lower.support(-b); }
};

struct Slopes {
  bool possible = false;
  double low = 0, high = 0;  // of the admissible lines
  double roomiest = 0;       // where the bounds leave the most room, also when no line is possible
};
// Admissible slopes within ± limit. Bounds of one side allow every slope.
Slopes admissible_slopes(const Bounds& bounds, double limit);

// Highest value at time t of an admissible line with a slope within [low, high]: +∞ without upper bounds.
double highest_at(const Hull& upper, double t, double low, double high);

}  // namespace stageline::align
