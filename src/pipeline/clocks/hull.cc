#include "pipeline/clocks/tie_points.h"

namespace stageline::align {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Bisections of a range of slopes of at most 2·10⁻³, far finer than any drift a clock can show.
constexpr int kBisections = 80;

}  // namespace

void Hull::push(const Point& c) {
  if (!points_.empty() && c.t == points_.back().t) {
    if (c.y >= points_.back().y) return;
    points_.pop_back();
  }
  while (points_.size() >= 2) {
    const Point &a = points_[points_.size() - 2], &b = points_.back();
    if ((b.y - a.y) * (c.t - a.t) < (c.y - a.y) * (b.t - a.t)) break;
    points_.pop_back();
  }
  points_.push_back(c);
}

void Hull::add(const Point& point) {
  if (!points_.empty() && point.t < points_.back().t) late_.push_back(point);
  else push(point);
}

void Hull::finish() {
  if (late_.empty()) return;
  std::vector<Point> all;
  all.swap(points_);
  all.insert(all.end(), late_.begin(), late_.end());
  late_.clear();
  sort_stably(all, [](const Point& a, const Point& b) {
    return a.t != b.t ? a.t < b.t : a.y != b.y ? a.y < b.y : a.tag < b.tag;
  });
  for (const Point& point : all) push(point);
}

void Hull::shift(double dt) {
  for (Point& point : points_) point.t += dt;
  for (Point& point : late_) point.t += dt;
}

void Hull::merge(const Hull& other) {
  for (const Point& point : other.points_) add(point);
  for (const Point& point : other.late_) add(point);
}

double Hull::support(double b, Point* where) const {
  if (points_.empty()) return kInfinity;
  // The slopes between neighbours grow, and the point looked for is where they pass b.
  size_t low = 0, high = points_.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const Point &p = points_[middle], &q = points_[middle + 1];
    if (q.y - p.y < b * (q.t - p.t)) low = middle + 1;
    else high = middle;
  }
  if (where) *where = points_[low];
  return points_[low].y - b * points_[low].t;
}

void Bounds::finish() {
  upper.finish();
  negated_lower.finish();
}

void Bounds::merge(const Bounds& other) {
  upper.merge(other.upper);
  negated_lower.merge(other.negated_lower);
}

void Bounds::shift(double dt) {
  upper.shift(dt);
  negated_lower.shift(dt);
}

Slopes admissible_slopes(const Bounds& bounds, double limit) {
  Slopes slopes{true, -limit, limit, 0};
  if (!bounds.two_sided()) return slopes;
  // The roomiest slope is the one at which the two binding points are at the same time.
  double low = -limit, high = limit;
  for (int i = 0; i < kBisections && low < high; ++i) {
    const double b = low + (high - low) / 2;
    Point u, l;
    bounds.upper.support(b, &u);
    bounds.negated_lower.support(-b, &l);
    if (l.t > u.t) low = b;  // d room / d b = l.t − u.t
    else high = b;
  }
  slopes.roomiest = low + (high - low) / 2;
  if (bounds.room(slopes.roomiest) < 0) {
    slopes.possible = false;
    return slopes;
  }
  const auto edge = [&](double outside) {
    if (bounds.room(outside) >= 0) return outside;
    double inside = slopes.roomiest;
    for (int i = 0; i < kBisections; ++i) {
      const double b = inside + (outside - inside) / 2;
      (bounds.room(b) >= 0 ? inside : outside) = b;
    }
    return outside;  // rather a hair too wide than too narrow
  };
  slopes.low = edge(-limit);
  slopes.high = edge(limit);
  return slopes;
}

double highest_at(const Hull& upper, double t, double low, double high) {
  if (upper.empty()) return kInfinity;
  // B ↦ support(b) + b·t is concave, and grows until its binding point is beyond t.
  for (int i = 0; i < kBisections && low < high; ++i) {
    const double b = low + (high - low) / 2;
    Point at;
    upper.support(b, &at);
    if (t > at.t) low = b;
    else high = b;
  }
  const double b = low + (high - low) / 2;
  return upper.support(b) + b * t;
}

}  // namespace stageline::align
