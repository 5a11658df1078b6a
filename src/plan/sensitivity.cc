#include "base/parallel.h"
#include "plan/search.h"

namespace stageline::plan {
namespace {

// A plan with times that can be changed.
class Changed {
 public:
  Changed(const Wish& w, const Candidate& c)
      : w_(w), c_(c), problem_(problem_of(w, c.layout, c.schedule, c.chunks, c.micro_batches)) {}
  Times times() const { return problem_ ? problem_->times : Times(); }
  // The step with these times.
  double step_ns(const Times& times, const RateOptions& rates) {
    if (!problem_) return static_cast<double>(c_.step_ns);
    problem_->times = times;
    const auto cells = cells_of(*problem_, stage_times(*problem_, LayerSums(*problem_), c_.plan));
    return cells ? static_cast<double>(step_of(w_, *problem_, c_.layout, c_.plan, *cells, rates)) : 0;
  }
  // The step when one kind of time takes `factor` times as long: of layers, ends and messages, or of links.
  double step_ns(std::string_view parameter, double factor) {
    RateOptions rates = w_.rates;
    const bool inside = parameter == "links in a node";
    if (inside || parameter == "links between nodes") {
      (inside ? rates.hardware.intra_bytes_s : rates.hardware.inter_bytes_s) /= factor;
      (inside ? rates.hardware.intra_ns : rates.hardware.inter_ns) *= factor;
      return step_ns(estimated_times(w_.model, c_.layout, rates), rates);
    }
    Times changed = base_;
    for_each_time(changed, [&](std::string_view name, int64_t& ns) {
      if (name == parameter) ns = std::llround(static_cast<double>(ns) * factor);
    });
    return step_ns(changed, rates);
  }

 private:
  const Wish& w_;
  const Candidate& c_;
  Result<PlanProblem> problem_;
  Times base_ = times();
};

}  // namespace

// To first order, the variance is gradient · covariance · gradient: the mean square of the changes that the draws make.
void add_errors(const Wish& w, Found& found) {
  if (w.resampled.size() < 2) return;
  parallel_for(found.plans.size(), [&](size_t i) {
    Candidate& c = found.plans[i];
    Changed plan(w, c);
    const Times base = plan.times();
    const auto values = [](Times times) {
      std::vector<double> out;
      for_each_time(times, [&](const char*, int64_t& ns) { out.push_back(static_cast<double>(ns)); });
      return out;
    };
    const std::vector<double> at = values(base);
    std::vector<double> slope(at.size(), 0);
    for (size_t k = 0; k < at.size(); ++k) {
      if (at[k] <= 0) continue;
      Times more = base;
      size_t n = 0;
      for_each_time(more, [&](const char*, int64_t& ns) { ns += n++ == k ? std::llround(at[k] / 100) : 0; });
      const auto step = static_cast<double>(std::llround(at[k] / 100));
      if (step > 0) slope[k] = (plan.step_ns(more, w.rates) - static_cast<double>(c.step_ns)) / step;
    }
    double square = 0;
    for (const Times& draw : w.resampled) {
      const std::vector<double> other = values(draw);
      double change = 0;
      for (size_t k = 0; k < at.size() && k < other.size(); ++k) change += slope[k] * (other[k] - at[k]);
      square += change * change / static_cast<double>(w.resampled.size());
    }
    c.error_ns = std::hypot(c.error_ns, std::sqrt(square));
  });
}

void add_sensitivity(const Wish& w, Found& found) {
  const Candidate& best = found.plans.front();
  std::vector<Changed> plans;
  for (const Candidate& c : found.plans) plans.emplace_back(w, c);
  for (const char* parameter :
       {"layer.F", "layer.B", "head.F", "head.B", "embedding", "latency", "links in a node", "links between nodes"}) {
    if (w.recorded && std::string_view(parameter).starts_with("links")) continue;
    Sensitivity s{parameter, 0, 0};
    const auto step = [&](size_t i, double factor) { return plans[i].step_ns(parameter, factor); };
    s.elasticity = (step(0, 1.01) / static_cast<double>(best.step_ns) - 1) / 0.01;
    const auto holds = [&](double factor) {
      const double own = step(0, factor);
      for (size_t i = 1; i < plans.size(); ++i)
        if (step(i, factor) < own) return false;
      return true;
    };
    // The nearest factor to each side at which another plan is faster; the nearer of the two counts.
    for (const bool up : {true, false}) {
      double near = 1, end = 1;
      for (const double factor : {1.1, 1.25, 1.5, 2.0, 3.0, 4.0}) {
        end = up ? factor : 1 / factor;
        if (!holds(end)) break;
        near = end;
      }
      if (near == end) continue;
      for (int i = 0; i < 10; ++i) {
        const double middle = (near + end) / 2;
        (holds(middle) ? near : end) = middle;
      }
      if (s.flips_at == 0 || std::abs(std::log(end)) < std::abs(std::log(s.flips_at))) s.flips_at = end;
    }
    found.sensitivity.push_back(s);
  }
}

}  // namespace stageline::plan
