#include "readers/recording/clocks.h"

namespace stageline::recording {
namespace {

constexpr int64_t kStepNs = 1'000'000;
constexpr double kMaxDistanceNs = kMaxTimeNs;

// Takes the difference of arbitrary numbers as a double: exact where it matters (below 2^53), and never undefined.
double difference(int64_t a, int64_t b) { return a - static_cast<double>(b); }

int64_t shifted(int64_t base, double distance) {
  const double far = std::clamp(distance, -kMaxDistanceNs, kMaxDistanceNs);
  const int64_t rounded = std::llround(far);
  if (rounded > 0 ? base > INT64_MAX - rounded : base < INT64_MIN - rounded) return rounded > 0 ? INT64_MAX : INT64_MIN;
  return base + rounded;
}

double exact_difference(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_sub_overflow(a, b, &out) ? difference(a, b) : out;
}

}  // namespace

Line::Line(std::vector<Point> points, double slope) : slope_(slope) {
  sort_stably(points, {}, [](const Point& a) { return std::tie(a.x, a.y); });
  for (const Point& p : points) {
    if (!points_.empty() && p.x == points_.back().x && p.y == points_.back().y)
      continue;  // written twice, as tables are
    if (!points_.empty() && (p.x <= points_.back().x || p.y < points_.back().y)) ++left_out_;
    else points_.push_back(p);
  }
}

int64_t Line::at(int64_t x) const {
  if (points_.empty()) return shifted(0, x * slope_);
  if (points_.size() == 1) return shifted(points_[0].y, exact_difference(x, points_[0].x) * slope_);
  auto after = std::ranges::upper_bound(points_, x, {}, &Point::x);
  after = std::clamp(after, points_.begin() + 1, points_.end() - 1);
  const Point a = *(after - 1), b = *after;
  const Point from = std::abs(exact_difference(x, a.x)) <= std::abs(exact_difference(x, b.x)) ? a : b;
  return shifted(from.y, exact_difference(x, from.x) * (exact_difference(b.y, a.y) / exact_difference(b.x, a.x)));
}

Clocks::Clocks(const std::vector<HostSnapshot>& snapshots, const std::vector<DeviceAnchor>& anchors,
               uint64_t ticks_per_second, uint64_t start_realtime_ns) {
  std::vector<HostSnapshot> sane;
  for (const HostSnapshot& s : snapshots)
    if (s.monotonic_ns >= 0 && s.monotonic_ns < kMaxTimeNs / 4 && s.realtime_ns >= 0 && s.realtime_ns < kMaxTimeNs)
      sane.push_back(s);
    else ++bad_readings;
  sort_stably(sane, [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  std::vector<Line::Point> points;
  const int64_t epoch = sane.empty() ? static_cast<int64_t>(std::min<uint64_t>(start_realtime_ns, kMaxTimeNs))
                                     : sane[0].realtime_ns - sane[0].monotonic_ns;
  for (size_t i = 0; i < sane.size(); ++i) {
    points.push_back({sane[i].ticks, sane[i].monotonic_ns + epoch});
    if (i > 0 && std::abs(exact_difference(sane[i].realtime_ns - sane[i].monotonic_ns,
                                           sane[i - 1].realtime_ns - sane[i - 1].monotonic_ns)) > kStepNs)
      ++clock_steps;
  }
  const double tick_ns = ticks_per_second > 0 ? 1e9 / ticks_per_second : 1;
  host_ = Line(std::move(points), tick_ns);
  bad_readings += static_cast<int64_t>(host_.left_out());

  std::map<uint8_t, std::vector<Line::Point>> of_clock;
  for (const DeviceAnchor& a : anchors) {
    if (a.after_ticks < a.before_ticks || a.before_ticks < 0) {
      ++bad_readings;
      continue;
    }
    of_clock[a.clock].push_back({a.device_ns, a.before_ticks + (a.after_ticks - a.before_ticks) / 2});
    const double half = exact_difference(a.after_ticks, a.before_ticks) / 2 * tick_ns;
    worst_bracket_ns = std::max(worst_bracket_ns, static_cast<int64_t>(std::min(half, kMaxDistanceNs)));
  }
  for (auto& [clock, line] : of_clock) {
    const auto made = devices_.try_emplace(clock, Line(std::move(line), 1 / tick_ns)).first;
    bad_readings += static_cast<int64_t>(made->second.left_out());
  }
}

}  // namespace stageline::recording
