#include "pipeline/measure/sequence_lengths.h"

#include "base/sorting.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr size_t kMinOps = 3;       // operations that a micro-batch needs for measuring its length
constexpr int kMaxRounds = 16;      // most rounds of the fit, which repeats only where pairs overlap
constexpr double kSettled = 0.005;  // change of a length in one round, below which the fit has settled
constexpr double kMinPart = 0.1;    // minimum share of a pair that one half is taken to be
constexpr uint32_t kNone = SequenceLengths::kNone;

class Fit {
 public:
  Fit(const StepGraph& graph, const std::function<double(uint32_t op)>& ratio, const std::vector<uint32_t>& partner,
      double long_from, SequenceLengths& out)
      : g_(graph), partner_(partner), long_from_(long_from), out_(out), ops_(out.ops), begin_(out.begin) {
    take_batches(ratio);
    const bool pairs = std::ranges::any_of(partner_, [](uint32_t other) { return other != kNone; });
    if (pairs) out_.find_batches(g_);
    double change = measure_lengths(true);
    for (int round = 1; pairs && round < kMaxRounds && change > kSettled; ++round) {
      measure_part();
      change = measure_lengths(false);
    }
  }

  // Relates each length to the median one of its replica and to the mean of its step; fills `forward_backward` by step.
  void compare(std::vector<std::vector<std::pair<double, double>>>& forward_backward) {
    parallel_for(g_.steps.size(), [&](size_t s) {
      double sum = 0, n = 0;
      Ways space;
      std::vector<double> lengths;
      for (size_t first = step_begin_[s]; first < step_begin_[s + 1];) {
        size_t last = first;
        lengths.clear();
        for (; last < step_begin_[s + 1] && g_.dp(ops_[begin_[last]]) == g_.dp(ops_[begin_[first]]); ++last) {
          const double length = out_.batches[last].length;
          if (!std::isnan(length)) lengths.push_back(length);
          if (length > 0) sum += length, ++n;
        }
        const double middle = median_in_place(lengths);
        for (size_t b = first; b < last && middle > 0; ++b)
          if (!std::isnan(out_.batches[b].length)) compare_ways(b, middle, space, forward_backward[s]);
        first = last;
      }
      for (size_t b = step_begin_[s]; b < step_begin_[s + 1]; ++b) out_.batches[b].even = n > 0 ? sum / n : 0;
    });
  }

 private:
  bool paired(uint32_t op) const {
    return !out_.batch_of.empty() && partner_[op] != kNone && out_.batch_of[partner_[op]] != kNone;
  }

  // The length of its own micro-batch that one operation suggests.
  double own(uint32_t place, bool first_round) const {
    const uint32_t op = ops_[place];
    if (!paired(op)) return ratio_[place];
    const double part = g_.kind[op] == CellKind::kForward ? out_.forward_part : 1 - out_.forward_part;
    const double other = first_round ? 1 : out_.batches[out_.batch_of[partner_[op]]].length;
    return (ratio_[place] - (1 - part) * (std::isnan(other) ? 1 : other)) / part;
  }

  // Arranges the operations by step, replica and micro-batch.
  void take_batches(const std::function<double(uint32_t op)>& ratio) {
    const auto key = [&](uint32_t op) { return std::array{g_.dp(op), g_.micro_batch[op]}; };
    std::vector<std::vector<uint32_t>> of_step(g_.steps.size());
    std::vector<size_t> count(g_.steps.size(), 0);
    parallel_for(g_.steps.size(), [&](size_t s) {
      std::vector<uint32_t>& ops = of_step[s];
      for (uint32_t op = g_.steps[s].begin; op < g_.steps[s].end; ++op)
        if (g_.micro_batch[op] != kUnknown && ratio(op) > 0) ops.push_back(op);
      sort_by_numbers(ops, key);
      for (size_t i = 0; i < ops.size(); ++i) count[s] += i == 0 || key(ops[i]) != key(ops[i - 1]) ? 1 : 0;
    });
    step_begin_.assign(1, 0);
    std::vector<uint32_t> first(1, 0);  // for each step its first index in ops_
    for (size_t s = 0; s < of_step.size(); ++s) {
      step_begin_.push_back(step_begin_.back() + count[s]);
      first.push_back(first.back() + static_cast<uint32_t>(of_step[s].size()));
    }
    ops_.resize(first.back());
    ratio_.resize(first.back());
    begin_.resize(step_begin_.back() + 1, first.back());
    out_.batches.resize(step_begin_.back());
    parallel_for(of_step.size(), [&](size_t s) {
      const std::vector<uint32_t> ops = std::move(of_step[s]);
      size_t batch = step_begin_[s];
      for (uint32_t i = 0; i < ops.size(); ++i) {
        if (i == 0 || key(ops[i]) != key(ops[i - 1])) {
          begin_[batch] = first[s] + i;
          out_.batches[batch++] = {static_cast<uint32_t>(s), kNaN, 1, 0};
        }
        ops_[first[s] + i] = ops[i];
        ratio_[first[s] + i] = ratio(ops[i]);
      }
    });
  }

  // Measures all lengths again and returns the largest change.
  double measure_lengths(bool first_round) {
    std::vector<double> lengths(out_.batches.size(), kNaN);
    parallel_for(g_.steps.size(), [&](size_t s) {
      std::vector<double> reported;
      for (size_t b = step_begin_[s]; b < step_begin_[s + 1]; ++b) {
        if (begin_[b + 1] - begin_[b] < kMinOps) continue;
        reported.clear();
        for (uint32_t i = begin_[b]; i < begin_[b + 1]; ++i) reported.push_back(own(i, first_round));
        lengths[b] = std::max(0.0, median_in_place(reported));
      }
    });
    // Lengths move only half way: where one half of a pair is taken as too long the other comes out too short, and full
    // steps would swing to and fro.
    double change = first_round ? 1 : 0;
    for (size_t b = 0; b < lengths.size(); ++b) {
      double& length = out_.batches[b].length;
      const double to = first_round ? lengths[b] : (length + lengths[b]) / 2;
      if (std::abs(to - length) > change) change = std::abs(to - length);
      length = to;
    }
    return change;
  }

  // Fits w in ratio − length(b) = w · (length(a) − length(b)), over pairs in which one is long: others say nothing of
  // w.
  void measure_part() {
    double xy = 0, xx = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const uint32_t op = ops_[i];
      if (g_.kind[op] != CellKind::kForward || !paired(op)) continue;
      const double a = out_.batches[out_.batch_of[op]].length, b = out_.batches[out_.batch_of[partner_[op]]].length;
      if (!(std::max(a, b) >= long_from_ * std::min(a, b))) continue;
      xy += (ratio_[i] - b) * (a - b);
      xx += (a - b) * (a - b);
    }
    if (xx > 0) out_.forward_part = std::clamp(xy / xx, kMinPart, 1 - kMinPart);
  }

  struct Ways {
    std::vector<double> forward, backward;
  };

  void compare_ways(size_t b, double middle, Ways& space, std::vector<std::pair<double, double>>& forward_backward) {
    out_.batches[b].factor = out_.batches[b].length / middle;
    auto& [forward, backward] = space;
    forward.clear(), backward.clear();
    for (uint32_t i = begin_[b]; i < begin_[b + 1]; ++i)
      (g_.kind[ops_[i]] == CellKind::kForward ? forward : backward).push_back(own(i, false));
    if (!forward.empty() && !backward.empty())
      forward_backward.emplace_back(median_in_place(forward) / middle, median_in_place(backward) / middle);
  }

  const StepGraph& g_;
  const std::vector<uint32_t>& partner_;
  double long_from_;
  SequenceLengths& out_;
  RawValues<uint32_t>& ops_;
  std::vector<uint32_t>& begin_;
  RawValues<double> ratio_;         // for each of ops_
  std::vector<size_t> step_begin_;  // for each step its first micro-batch, and at last the end
};

}  // namespace

void SequenceLengths::find_batches(const StepGraph& graph) {
  if (!batch_of.empty()) return;
  batch_of.assign(graph.size(), kNone);
  parallel_for(batches.size(), [&](size_t b) {
    for (uint32_t i = begin[b]; i < begin[b + 1]; ++i) batch_of[ops[i]] = static_cast<uint32_t>(b);
  });
}

SequenceLengths sequence_lengths(const StepGraph& graph, const std::vector<bool>& counts,
                                 const std::function<double(uint32_t op)>& ratio, const std::vector<uint32_t>& partner,
                                 double long_from) {
  SequenceLengths out;
  std::vector<std::vector<std::pair<double, double>>> of_step(graph.steps.size());
  Fit(graph, ratio, partner, long_from, out).compare(of_step);
  for (size_t s = 0; s < of_step.size(); ++s)
    if (counts[s]) out.forward_backward.insert(out.forward_backward.end(), of_step[s].begin(), of_step[s].end());
  return out;
}

}  // namespace stageline
