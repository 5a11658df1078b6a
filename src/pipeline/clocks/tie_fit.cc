#include "pipeline/clocks/tie_fit.h"

namespace stageline::align {
namespace {

// This factor converts the median absolute deviation into the standard deviation of a normal distribution.
constexpr double kToSigma = 1.4826;
constexpr double kFloorNs = 100;  // no timestamp is more exact than this

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The slope starts as the median over pairs of samples that are a half, a third and two thirds of all samples apart
// (Theil–Sen on incomplete pairs). Half of the samples may be wrong in any way. Then follow least squares over all
// samples that are not outliers of that line, repeated with the line found. The refits matter for two reasons. A clock
// that wanders about its mean drift moves a median of slopes more than a mean. And timestamps of messages often have
// two or three levels, one per protocol, between which a median jumps.
Line robust(const std::vector<Sample>& samples, double drift_limit) {
  constexpr double kOutlier = 6;  // in scatters from the middle
  constexpr int kRefits = 3;
  Line line;
  std::vector<double> values;
  const size_t n = samples.size();
  const bool sloped = drift_limit > 0 && n >= 6;
  if (sloped) {
    for (const size_t lag : {n / 2, n / 3, 2 * n / 3})
      for (size_t i = 0; i + lag < n; ++i)
        if (samples[i + lag].t > samples[i].t)
          values.push_back((samples[i + lag].y - samples[i].y) / (samples[i + lag].t - samples[i].t));
    line.slope = median(values);
  }
  double t = 0;  // the middle of the samples that were no outliers
  for (int refit = 0; refit <= kRefits; ++refit) {
    values.clear();
    for (const Sample& s : samples) values.push_back(s.y - line.at(s.t));
    const double middle = median(values);
    for (double& v : values) v = std::abs(v - middle);
    const double scatter = kToSigma * median(values);
    if (refit == 0) line.scatter = scatter;
    double count = 0, y = 0, tt = 0, ty = 0;
    t = 0;
    const auto rest = [&](const Sample& s) { return s.y - line.at(s.t); };
    const auto outlier = [&](double residual) { return std::abs(residual - middle) > kOutlier * (scatter + kFloorNs); };
    for (const Sample& s : samples)
      if (const double residual = rest(s); !outlier(residual)) {
        count += 1;
        t += s.t;
        y += residual;
      }
    if (count == 0) return line;
    t /= count;
    y /= count;
    for (const Sample& s : samples)
      if (const double residual = rest(s); sloped && !outlier(residual)) {
        tt += (s.t - t) * (s.t - t);
        ty += (s.t - t) * (residual - y);
      }
    const double turn = tt > 0 ? ty / tt : 0;
    line.offset += y - turn * t;
    line.slope += turn;
    if (static_cast<size_t>(count) == n) break;
  }
  const double slope = std::clamp(line.slope, -drift_limit, drift_limit);
  line.offset += (line.slope - slope) * t;
  line.slope = slope;
  return line;
}

double span_of(const std::vector<Sample>& samples) {
  if (samples.empty()) return 0;
  const auto [low, high] =
      std::minmax_element(samples.begin(), samples.end(), [](const Sample& x, const Sample& y) { return x.t < y.t; });
  return high->t - low->t;
}

double mean_t(const std::vector<Sample>& samples) {
  const double sum = sum_over<double>(samples, &Sample::t);
  return samples.empty() ? 0 : sum / samples.size();
}

bool two_way(const TiePoints& points) { return points.from_a.count() > 0 && points.from_b.count() > 0; }

// One line for both directions with a common slope, to which each direction contributes by what it knows.
struct EndsFit {
  Line line;
  double slope_sigma = 0, offset_sigma = 0, asymmetry = 0;
};
EndsFit fit_ends(const TiePoints& points, double drift_limit) {
  const auto &a = points.from_a.kept(), &b = points.from_b.kept();
  const Line down = robust(a, drift_limit), up = robust(b, drift_limit);
  const auto sigma = [](const Line& line, const std::vector<Sample>& s) {
    const double span = span_of(s);
    return span > 0 && s.size() >= 6 ? (line.scatter + kFloorNs) * std::sqrt(12.0 / s.size()) / span
                                     : std::numeric_limits<double>::infinity();
  };
  const double sigma_a = sigma(down, a), sigma_b = sigma(up, b);
  const double weight_a = 1 / (sigma_a * sigma_a), weight_b = 1 / (sigma_b * sigma_b);
  EndsFit fit;
  fit.line.slope = weight_a + weight_b > 0 ? (weight_a * down.slope + weight_b * up.slope) / (weight_a + weight_b) : 0;
  fit.slope_sigma =
      weight_a + weight_b > 0 ? 1 / std::sqrt(weight_a + weight_b) : std::numeric_limits<double>::infinity();
  // Each direction keeps its level at its samples, and the common slope carries it to t = 0.
  const double level_a = down.at(mean_t(a)) - fit.line.slope * mean_t(a);
  const double level_b = up.at(mean_t(b)) - fit.line.slope * mean_t(b);
  fit.line.offset = (level_a + level_b) / 2;
  fit.asymmetry = std::abs(level_a - level_b) / 2;
  fit.line.scatter = std::max(down.scatter, up.scatter);
  const double min = std::min(a.size(), b.size());
  fit.offset_sigma = (fit.line.scatter + kFloorNs) / std::sqrt(min);
  return fit;
}

// Returns true when every sender waited for its receiver, as far as the line is known.
bool all_waited(const TiePoints& points, const EndsFit& fit) {
  const double slack = 3 * fit.offset_sigma + kFloorNs;
  for (const Sample& s : points.from_a.kept())
    if (fit.line.at(s.t) < s.rendezvous - slack) return false;
  return std::ranges::none_of(points.from_b.kept(),
                              [&](const Sample& s) { return fit.line.at(s.t) > s.rendezvous + slack; });
}

void fit_envelope(const Bounds& bounds, const Slopes& slopes, TieFit& fit) {
  fit.slope = slopes.roomiest;
  const double high = bounds.upper.support(fit.slope), low = -bounds.negated_lower.support(-fit.slope);
  fit.offset = (high + low) / 2;
  fit.offset_sigma = (high - low) / 4 + kFloorNs;
  fit.slope_sigma = (slopes.high - slopes.low) / 4 + 1e-9;
}

// An operator that starts on both ranks at once: the difference of its starts is the offset, and their spread gives the
// bounds.
TieFit fit_operator(const TiePoints& points, double drift_limit, Bounds& bounds) {
  TieFit fit;
  const std::vector<Sample>& samples = points.from_a.kept();
  if (samples.empty()) return fit;
  const Line line = robust(samples, drift_limit);
  fit.two_way = fit.possible = true;
  fit.middle_t = mean_t(samples);
  fit.offset = line.offset;
  fit.slope = line.slope;
  double worst = max_over<double>(samples, [&](const Sample& s) { return std::abs(s.y - line.at(s.t)); }, kFloorNs);
  for (const Sample& s : samples) {
    bounds.upper.add({s.t, line.at(s.t) + worst, 0});
    bounds.negated_lower.add({s.t, -line.at(s.t) + worst, 0});
  }
  bounds.finish();
  const Slopes slopes = admissible_slopes(bounds, drift_limit);
  fit.slope_low = slopes.low;
  fit.slope_high = slopes.high;
  fit.offset_sigma = (line.scatter + kFloorNs) / std::sqrt(samples.size());
  const double span = span_of(samples);
  fit.slope_sigma = span > 0 ? std::sqrt(12.0) * fit.offset_sigma / span : kMaxDrift;
  fit.match_count = points.from_a.count();
  return fit;
}

}  // namespace

TieFit fit_tie(const TiePoints& points, TieKind kind, double drift_limit, Bounds& bounds) {
  bounds = {};
  if (kind == TieKind::kOperator) return fit_operator(points, drift_limit, bounds);
  bounds = points.causal;
  TieFit fit{.two_way = two_way(points),
             .middle_t = (mean_t(points.from_a.kept()) + mean_t(points.from_b.kept())) / 2,
             .match_count =
                 kind == TieKind::kCollectives ? points.from_a.count() : points.from_a.count() + points.from_b.count()};
  Slopes slopes = admissible_slopes(points.causal, drift_limit);
  fit.possible = slopes.possible;
  fit.slope_low = slopes.low;
  fit.slope_high = slopes.high;
  if (!fit.two_way || !fit.possible) return fit;
  if (kind == TieKind::kGaps) {
    fit_envelope(points.causal, slopes, fit);
    return fit;
  }
  const EndsFit ends = fit_ends(points, drift_limit);
  const double room = points.causal.room(slopes.roomiest);
  if (kind == TieKind::kMessages && all_waited(points, ends)) {
    Bounds both = points.causal;
    both.merge(points.rendezvous);
    both.finish();
    const Slopes tighter = admissible_slopes(both, drift_limit);
    if (tighter.possible) {
      bounds = std::move(both);
      slopes = tighter;
      fit.rendezvous = true;
      fit.slope_low = slopes.low;
      fit.slope_high = slopes.high;
    }
  }
  if (!fit.rendezvous && ends.line.scatter > room / 8) {
    fit_envelope(points.causal, slopes, fit);
    return fit;
  }
  fit.offset = ends.line.offset;
  fit.slope = ends.line.slope;
  fit.offset_sigma = ends.offset_sigma;
  fit.slope_sigma = ends.slope_sigma;
  fit.asymmetry = ends.asymmetry;
  return fit;
}

std::optional<Line> robust_line(const TiePoints& points, TieKind kind, double drift_limit) {
  if (!two_way(points)) return std::nullopt;
  if (kind != TieKind::kGaps) return fit_ends(points, drift_limit).line;
  // The smallest gaps are nearest to y. The fifth percentile is used, so that a few bad ones do not decide.
  const auto edge = [&](const std::vector<Sample>& samples, double sign) {
    Line line = robust(samples, drift_limit);
    auto rest = mapped<double>(samples, [&](const Sample& s) { return sign * (s.y - line.slope * s.t); });
    const auto fifth = rest.begin() + rest.size() / 20;
    std::nth_element(rest.begin(), fifth, rest.end());
    line.offset = sign * *fifth;
    return line;
  };
  const Line down = edge(points.from_a.kept(), 1), up = edge(points.from_b.kept(), -1);
  return Line{(down.offset + up.offset) / 2, (down.slope + up.slope) / 2, std::max(down.scatter, up.scatter)};
}

Line min_contradicted(const TiePoints& points, const Line& start, double drift_limit) {
  const Slopes slopes = admissible_slopes(points.causal, drift_limit);
  Line best = start;
  size_t fewest = SIZE_MAX;
  double widest = -1;
  for (const double slope : {start.slope, 0.0, slopes.roomiest}) {
    // Bounds as heights at t = 0. A line breaks an upper bound when it is above it, and a lower bound when it is below
    // it.
    std::vector<double> upper, lower;
    for (const Sample& s : points.from_a.kept()) upper.push_back(s.causal - slope * s.t);
    for (const Sample& s : points.from_b.kept()) lower.push_back(s.causal - slope * s.t);
    std::ranges::sort(upper);
    std::ranges::sort(lower);
    // Goes upwards over all heights. Between two neighbouring bounds the number of broken ones is constant; it has its
    // minima where a lower bound is followed by an upper one.
    size_t u = 0;
    for (size_t l = 0; l < lower.size(); ++l) {
      while (u < upper.size() && upper[u] < lower[l]) ++u;
      const bool next_is_upper = u < upper.size() && (l + 1 == lower.size() || upper[u] <= lower[l + 1]);
      if (!next_is_upper) continue;
      const size_t broken = u + (lower.size() - l - 1);
      const double width = upper[u] - lower[l];
      if (broken > fewest || (broken == fewest && width <= widest)) continue;
      fewest = broken;
      widest = width;
      best = {(upper[u] + lower[l]) / 2, slope, start.scatter};
    }
  }
  return best;
}

}  // namespace stageline::align
