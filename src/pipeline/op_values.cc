#include "pipeline/op_values.h"

#include <array>
#include <bit>
#include <limits>

namespace stageline {
namespace {

constexpr size_t kFew = 1 << 16;  // below which counting is not worth it
constexpr int kBits = 16;  // of a value, by which it is counted: its sign, exponent and the beginning of the rest

// Ascends with the value.
uint64_t ordered(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}
size_t bucket_of(double value) { return ordered(value) >> (64 - kBits); }

constexpr size_t kLeastBlock = 4096;  // operations
constexpr size_t kMostBlocks = 64;

}  // namespace

std::vector<OpStretch> counted_ops(const StepGraph& graph, const std::vector<bool>& counts) {
  std::vector<OpStretch> ops;
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    if (!counts[s]) continue;
    if (ops.empty() || ops.back().end != graph.steps[s].begin) ops.push_back({graph.steps[s].begin, 0});
    ops.back().end = graph.steps[s].end;
  }
  return ops;
}

OpBlocks::OpBlocks(const std::vector<OpStretch>& ops, size_t each) {
  size_t total = 0;
  for (const OpStretch& s : ops) total += s.end - s.begin;
  const size_t blocks = std::clamp<size_t>(total / (2 * each + kLeastBlock), 1, kMostBlocks);
  size_t done = 0;
  for (OpStretch rest : ops)
    while (rest.begin < rest.end) {
      while (first_.size() < blocks && done >= total * first_.size() / blocks) first_.push_back(stretches_.size());
      const size_t until = total * first_.size() / blocks;  // where this block ends
      const auto cut = static_cast<uint32_t>(std::min<size_t>(rest.end, rest.begin + (until - done)));
      stretches_.push_back({rest.begin, cut});
      done += cut - rest.begin;
      rest.begin = cut;
    }
  if (first_.empty()) first_.push_back(0);
  first_.push_back(stretches_.size());
}

double median_in_place(std::span<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

std::vector<double> OpValues::take_medians() {
  std::vector<double> medians(keys());
  parallel_for(medians.size(), [&](size_t k) {
    medians[k] = median_in_place({values_.data() + begin_[k], begin_[k + 1] - begin_[k]});
  });
  return medians;
}

// Of values that are alike, as times of cells are, one bucket holds an eighth: those alone are gathered and sorted
// partly.
double nth_value(std::span<const double> values, size_t nth) {
  std::vector<double> gathered;
  if (values.size() < kFew) {
    gathered.assign(values.begin(), values.end());
  } else {
    constexpr size_t kBuckets = size_t{1} << kBits;
    const OpBlocks blocks(values.size(), kBuckets);
    std::vector<uint32_t> count(blocks.size() * kBuckets, 0);
    blocks.each([&](size_t b, uint32_t i) { ++count[b * kBuckets + bucket_of(values[i])]; });
    size_t bucket = 0, own = 0;
    for (;; ++bucket, nth -= own) {
      own = 0;
      for (size_t b = 0; b < blocks.size(); ++b) own += count[b * kBuckets + bucket];
      if (nth < own) break;
    }
    gathered.resize(own);
    std::vector<size_t> next(blocks.size() + 1, 0);
    for (size_t b = 0; b < blocks.size(); ++b) next[b + 1] = next[b] + count[b * kBuckets + bucket];
    blocks.each([&](size_t b, uint32_t i) {
      if (bucket_of(values[i]) == bucket) gathered[next[b]++] = values[i];
    });
  }
  const auto at = gathered.begin() + static_cast<std::ptrdiff_t>(nth);
  std::nth_element(gathered.begin(), at, gathered.end());
  return *at;
}

double median_of_many(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const size_t n = values.size();
  return n % 2 == 1 ? nth_value(values, n / 2) : (nth_value(values, n / 2 - 1) + nth_value(values, n / 2)) / 2;
}

}  // namespace stageline
