#include "pipeline/sums/course.h"

namespace stageline {
namespace {

constexpr size_t kMinValues = 6;
constexpr size_t kMaxValues = 2000;  // a longer run is judged by its first values
constexpr size_t kMaxEvery = 10;
constexpr double kMaxLeft = 0.5;  // share of the variance about the mean that a shape may leave
// Critical values of F at a significance of one in a thousand for one more parameter, by degrees of freedom left. They
// grow with the number of shapes that were tried (Bonferroni); a logarithm is near enough to how fast.
double min_f(size_t free, size_t tried) {
  constexpr double kF[] = {0,    405284, 998.5, 167.0, 74.1, 47.2, 35.5, 29.2, 25.4,
                           22.9, 21.0,   19.7,  18.6,  17.8, 17.1, 16.6, 16.1};
  const double f = free < std::size(kF) ? kF[free] : free < 30 ? 14.4 : 12.0;
  return f * (1 + 0.1 * std::log(std::max<size_t>(tried, 1)));
}

struct Fit {
  Course course;
  double left = 0;  // the sum of squares that the shape leaves
  size_t tried = 1;
};

// Fits two levels; `is_high` says which values belong to the second.
template <class IsHigh> Fit two_levels(CourseKind kind, std::span<const double> values, const IsHigh& is_high) {
  double sum[2] = {0, 0};
  size_t count[2] = {0, 0};
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i])) sum[is_high(i)] += values[i], ++count[is_high(i)];
  Fit fit;
  fit.course.kind = kind;
  fit.course.low = count[0] > 0 ? sum[0] / count[0] : kNaN;
  fit.course.high = count[1] > 0 ? sum[1] / count[1] : kNaN;
  fit.course.high_count = count[1];
  for (size_t i = 0; i < values.size(); ++i) {
    fit.course.level.push_back(is_high(i) ? fit.course.high : fit.course.low);
    if (!std::isnan(values[i])) fit.left += (values[i] - fit.course.level[i]) * (values[i] - fit.course.level[i]);
  }
  if (count[0] < 1 || count[1] < 1) fit.left = kNaN;
  return fit;
}

Fit line(std::span<const double> values) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    const double at = i;
    ++n, x += at, y += values[i], xx += at * at, xy += at * values[i];
  }
  Fit fit;
  fit.course.kind = CourseKind::kTrend;
  const double slope = (n * xy - x * y) / (n * xx - x * x), zero = (y - slope * x) / n;
  for (size_t i = 0; i < values.size(); ++i) {
    fit.course.level.push_back(zero + slope * i);
    if (!std::isnan(values[i])) fit.left += (values[i] - fit.course.level[i]) * (values[i] - fit.course.level[i]);
  }
  fit.course.low = fit.course.level.front(), fit.course.high = fit.course.level.back();
  return fit;
}

// The values without any shape: their mean, and what it leaves of the variance.
Fit constant_fit(std::span<const double> values) {
  Fit fit = two_levels(CourseKind::kConstant, values, [](size_t) { return size_t{0}; });
  fit.left = 0;
  for (const double v : values)
    if (!std::isnan(v)) fit.left += (v - fit.course.low) * (v - fit.course.low);
  fit.course.kind = CourseKind::kConstant;
  fit.course.high = fit.course.low;
  return fit;
}

// The best fit of each kind.
class BestFits {
 public:
  BestFits(std::span<const double> values, size_t known) : known_(known) {
    for (size_t from = 1; from < values.size(); ++from) {
      Fit fit = two_levels(CourseKind::kOnset, values, [&](size_t i) { return size_t{i >= from}; });
      fit.course.from = from;
      keep(std::move(fit), 2);
    }
    keep(line(values), 0);
    for (size_t every = 2; every <= std::min(kMaxEvery, values.size() / 2); ++every)
      for (size_t phase = 0; phase < every; ++phase) {
        Fit fit = two_levels(CourseKind::kEvery, values, [&](size_t i) { return size_t{i % every == phase}; });
        fit.course.every = every, fit.course.from = phase;
        if (fit.course.high > fit.course.low) keep(std::move(fit), 2);
      }
    // kSome: tries every cut between low and high values.
    std::vector<double> sorted;
    std::ranges::copy_if(values, std::back_inserter(sorted), [](double v) { return !std::isnan(v); });
    std::ranges::sort(sorted);
    for (size_t cut = 1; cut < sorted.size(); ++cut)
      keep(two_levels(CourseKind::kSome, values, [&](size_t i) { return size_t{values[i] >= sorted[cut]}; }), 1);
  }

  // Returns the fit that is better than a constant by more than chance, `constant_left` being what that leaves; null:
  // none is.
  const Fit* choose(double constant_left) const {
    const Fit* chosen = nullptr;
    for (const Fit& fit : best_) {
      const bool some = fit.course.kind == CourseKind::kSome;
      const size_t parameters = some ? 3 : 2;
      if (known_ <= parameters) continue;
      const size_t free = known_ - parameters;
      const double f = (constant_left - fit.left) / (std::max(fit.left, 1e-18 * constant_left) / free);
      // Any values can be split into high and low ones, so such a split counts only if it leaves almost no variance.
      if (fit.left > (some ? kMaxLeft / 5 : kMaxLeft) * constant_left || f < min_f(free, fit.tried)) continue;
      const bool simpler = chosen && chosen->course.kind != CourseKind::kSome && some;
      if (!chosen || fit.left < (simpler ? kMaxLeft / 5 : 1) * chosen->left) chosen = &fit;
    }
    return chosen;
  }

 private:
  void keep(Fit fit, size_t min_each) {
    if (std::isnan(fit.left)) return;
    if (fit.course.kind != CourseKind::kTrend &&
        (fit.course.high_count < min_each || known_ - fit.course.high_count < min_each))
      return;
    const auto same = std::ranges::find_if(best_, [&](const Fit& f) { return f.course.kind == fit.course.kind; });
    if (same == best_.end()) {
      best_.push_back(std::move(fit));
      return;
    }
    const size_t tried = same->tried + 1;
    if (fit.left < same->left) *same = std::move(fit);
    same->tried = tried;
  }

  size_t known_;
  std::vector<Fit> best_;
};

}  // namespace

Course course_of(std::span<const double> all) {
  const std::span<const double> values = all.subspan(0, std::min(all.size(), kMaxValues));
  const size_t known = std::ranges::count_if(values, [](double v) { return !std::isnan(v); });
  Fit constant = constant_fit(values);
  Course flat = std::move(constant.course);
  flat.noise = known > 1 ? std::sqrt(constant.left / (known - 1)) : 0;
  if (all.size() > values.size()) flat.level.resize(all.size(), flat.low);
  if (known < kMinValues || !(constant.left > 0)) return flat;
  const BestFits fits(values, known);
  const Fit* chosen = fits.choose(constant.left);
  if (!chosen) return flat;
  Course course = chosen->course;
  course.noise = std::sqrt(chosen->left / (known - 2));
  if (all.size() > values.size()) course.level.resize(all.size(), course.level.back());
  return course;
}

}  // namespace stageline
