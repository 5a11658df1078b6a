#include "diagnosis/profile/change_of_steps.h"

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/diff/diff_side.h"

namespace stageline {
namespace {

std::vector<bool> usual_steps(const std::vector<double>& lengths) {
  const double median = median_of(lengths);
  return mapped<bool>(lengths, [&](const double length) { return length < kLongStep * median; });
}

std::vector<double> picked(const std::vector<double>& values, const std::vector<bool>& which) {
  std::vector<double> some;
  for (size_t k = 0; k < values.size(); ++k)
    if (which[k]) some.push_back(values[k]);
  return some;
}

}  // namespace

ChangeOfSteps::ChangeOfSteps(const std::vector<double>& lengths_a, const std::vector<double>& lengths_b, double min_ns)
    : usual_a_(usual_steps(lengths_a)), usual_b_(usual_steps(lengths_b)),
      steps_(std::min(lengths_a.size(), lengths_b.size())), min_ns_(min_ns) {}

double ChangeOfSteps::error_ns(const std::vector<double>& a, const std::vector<double>& b) {
  return std::hypot(standard_error(a, std::ssize(a)), standard_error(b, std::ssize(b)));
}

double ChangeOfSteps::certain_ns(double change_ns, const std::vector<double>& a, const std::vector<double>& b) const {
  if (std::abs(change_ns) < min_ns_) return 0;
  if (beyond_noise(change_ns, error_ns(a, b), steps_)) return change_ns;
  const std::vector<double> some_a = picked(a, usual_a_), some_b = picked(b, usual_b_);
  const double usual_ns = mean_of(some_b) - mean_of(some_a);
  const int64_t count = std::min(some_a.size(), some_b.size());
  const bool is_alike = count > 1 && usual_ns / change_ns > 0 && std::abs(usual_ns) >= min_ns_;
  return is_alike && beyond_noise(usual_ns, error_ns(some_a, some_b), count) ? usual_ns : 0;
}

}  // namespace stageline
