#include "pipeline/sequence_lengths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/stage_costs.h"

namespace stageline {
namespace {

constexpr size_t kLeastOps = 3;     // of a micro-batch, for its length to be told
constexpr int kMostRounds = 16;     // of the fit, where pairs overlap
constexpr double kSettled = 0.005;  // change of a length in one round, below which the fit has settled
constexpr double kLeastPart = 0.1;  // of a pair that a half is taken to be
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Fit {
 public:
  Fit(const StepGraph& graph, const std::vector<double>& ratio, const std::vector<uint32_t>& partner, double long_from)
      : g_(graph), ratio_(ratio), partner_(partner), long_from_(long_from) {
    take_batches();
    const bool pairs =
        std::any_of(partner_.begin(), partner_.end(), [](uint32_t other) { return other != SequenceLengths::kNone; });
    double change = measure_lengths(true);
    for (int round = 1; pairs && round < kMostRounds && change > kSettled; ++round) {
      measure_part();
      change = measure_lengths(false);
    }
  }

  // What an operation says of its own micro-batch's length.
  double own(uint32_t op, bool first_round) const {
    if (!paired(op)) return ratio_[op];
    const double part = g_.kind[op] == CellKind::kForward ? out_.forward_part : 1 - out_.forward_part;
    const double other = first_round ? 1 : out_.batches[out_.batch_of[partner_[op]]].length;
    return (ratio_[op] - (1 - part) * (std::isnan(other) ? 1 : other)) / part;
  }
  const std::vector<std::vector<uint32_t>>& ops() const { return ops_; }
  SequenceLengths& out() { return out_; }

 private:
  bool paired(uint32_t op) const {
    return !partner_.empty() && partner_[op] != SequenceLengths::kNone &&
           out_.batch_of[partner_[op]] != SequenceLengths::kNone;
  }

  void take_batches() {
    out_.batch_of.assign(g_.size(), SequenceLengths::kNone);
    for (uint32_t s = 0; s < g_.steps.size(); ++s) {
      std::vector<uint32_t> ops;
      for (uint32_t op = g_.steps[s].begin; op < g_.steps[s].end; ++op)
        if (ratio_[op] > 0 && g_.micro_batch[op] != kUnknown) ops.push_back(op);
      const auto key = [&](uint32_t op) { return std::pair(g_.dp[op], g_.micro_batch[op]); };
      std::stable_sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
      for (size_t i = 0; i < ops.size(); ++i) {
        if (i == 0 || key(ops[i]) != key(ops[i - 1])) {
          out_.batches.push_back({s, kNaN, 1, 0});
          ops_.emplace_back();
        }
        ops_.back().push_back(ops[i]);
        out_.batch_of[ops[i]] = static_cast<uint32_t>(ops_.size() - 1);
      }
    }
  }

  // Returns the largest change.
  double measure_lengths(bool first_round) {
    std::vector<double> lengths(ops_.size(), kNaN);
    for (size_t b = 0; b < ops_.size(); ++b) {
      if (ops_[b].size() < kLeastOps) continue;
      std::vector<double> told;
      for (const uint32_t op : ops_[b]) told.push_back(own(op, first_round));
      lengths[b] = std::max(0.0, median_of(std::move(told)));
    }
    // Half way only: what one half is told too long the other one is too short, and would swing to and fro.
    double change = first_round ? 1 : 0;
    for (size_t b = 0; b < ops_.size(); ++b) {
      double& length = out_.batches[b].length;
      const double to = first_round ? lengths[b] : (length + lengths[b]) / 2;
      if (std::abs(to - length) > change) change = std::abs(to - length);
      length = to;
    }
    return change;
  }

  // ratio − length(b) = w · (length(a) − length(b)), over pairs of which one is long: others say nothing of w.
  void measure_part() {
    double xy = 0, xx = 0;
    for (uint32_t op = 0; op < g_.size(); ++op) {
      if (g_.kind[op] != CellKind::kForward || out_.batch_of[op] == SequenceLengths::kNone || !paired(op)) continue;
      const double a = out_.batches[out_.batch_of[op]].length, b = out_.batches[out_.batch_of[partner_[op]]].length;
      if (!(std::max(a, b) >= long_from_ * std::min(a, b))) continue;
      xy += (ratio_[op] - b) * (a - b);
      xx += (a - b) * (a - b);
    }
    if (xx > 0) out_.forward_part = std::clamp(xy / xx, kLeastPart, 1 - kLeastPart);
  }

  const StepGraph& g_;
  const std::vector<double>& ratio_;
  const std::vector<uint32_t>& partner_;
  double long_from_;
  SequenceLengths out_;
  std::vector<std::vector<uint32_t>> ops_;  // by micro-batch
};

}  // namespace

SequenceLengths sequence_lengths(const StepGraph& graph, const std::vector<bool>& counts,
                                 const std::vector<double>& ratio, const std::vector<uint32_t>& partner,
                                 double long_from) {
  Fit fit(graph, ratio, partner, long_from);
  SequenceLengths& out = fit.out();
  const auto replica = [&](size_t b) { return std::pair(out.batches[b].step, graph.dp[fit.ops()[b].front()]); };
  for (size_t first = 0; first < out.batches.size();) {
    size_t last = first;
    std::vector<double> lengths;
    for (; last < out.batches.size() && replica(last) == replica(first); ++last)
      if (!std::isnan(out.batches[last].length)) lengths.push_back(out.batches[last].length);
    const double middle = median_of(std::move(lengths));
    for (size_t b = first; b < last && middle > 0; ++b) {
      SequenceLengths::Batch& batch = out.batches[b];
      if (std::isnan(batch.length)) continue;
      batch.factor = batch.length / middle;
      std::vector<double> forward, backward;
      for (const uint32_t op : fit.ops()[b])
        (graph.kind[op] == CellKind::kForward ? forward : backward).push_back(fit.own(op, false));
      if (counts[batch.step] && !forward.empty() && !backward.empty())
        out.forward_backward.emplace_back(median_of(std::move(forward)) / middle,
                                          median_of(std::move(backward)) / middle);
    }
    first = last;
  }
  for (size_t first = 0; first < out.batches.size();) {
    size_t last = first;
    double sum = 0, n = 0;
    for (; last < out.batches.size() && out.batches[last].step == out.batches[first].step; ++last)
      if (out.batches[last].length > 0) sum += out.batches[last].length, ++n;
    for (size_t b = first; b < last; ++b) out.batches[b].even = n > 0 ? sum / n : 0;
    first = last;
  }
  return std::move(out);
}

}  // namespace stageline
