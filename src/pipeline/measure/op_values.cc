#include "pipeline/measure/op_values.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr size_t kFew = 1 << 16;  // with fewer values, selecting is cheaper than counting
constexpr int kBits = 16;         // bits of a value by which one round counts
constexpr size_t kBuckets = size_t{1} << kBits;
constexpr size_t kGathered = 4;  // values are copied out once they are at most one in this many

// Maps a double to bits that ascend with its value.
uint64_t ordered(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}
double value_of(uint64_t bits) {
  return std::bit_cast<double>((bits >> 63) != 0 ? bits & ~(uint64_t{1} << 63) : ~bits);
}

constexpr size_t kMinBlock = 4096;  // operations
constexpr size_t kMaxBlocks = 64;

// Finds those of `nth` that `which` names, and writes them to `found`. Only values that agree with `prefix` in all bits
// above the kBits at `shift` are looked at. They are counted by these bits; where few values share the bits of one that
// is looked for, those are copied out.
void find_nth(std::span<const double> values, int shift, uint64_t prefix, const std::vector<size_t>& nth,
              std::vector<size_t> which, std::vector<double>& found) {
  const auto agrees = [&](double value) { return ordered(value) >> shift >> kBits == prefix; };
  if (shift < 0) {  // all remaining values are the same
    for (const size_t w : which) found[w] = value_of(prefix);
    return;
  }
  if (values.size() < kFew) {
    std::vector<double> sorted;
    std::ranges::copy_if(values, std::back_inserter(sorted), agrees);
    for (const size_t w : which) {
      const auto at = sorted.begin() + nth[w];
      std::nth_element(sorted.begin(), at, sorted.end());
      found[w] = *at;
    }
    return;
  }
  const OpBlocks blocks(values.size(), kBuckets);
  std::vector<uint32_t> count(blocks.size() * kBuckets, 0);
  const auto bucket_of = [&](double value) { return ordered(value) >> shift & (kBuckets - 1); };
  blocks.each([&](size_t b, uint32_t i) {
    if (agrees(values[i])) ++count[b * kBuckets + bucket_of(values[i])];
  });
  size_t before = 0;
  for (size_t bucket = 0; bucket < kBuckets && !which.empty(); ++bucket) {
    std::vector<size_t> here, inside = nth;
    size_t own = 0;
    for (size_t b = 0; b < blocks.size(); ++b) own += count[b * kBuckets + bucket];
    std::erase_if(which, [&](size_t w) {
      if (nth[w] >= before + own) return false;
      here.push_back(w);
      inside[w] -= before;
      return true;
    });
    before += own;
    if (here.empty()) continue;
    const uint64_t longer = prefix << kBits | bucket;
    if (own > values.size() / kGathered) {
      find_nth(values, shift - kBits, longer, inside, std::move(here), found);
      continue;
    }
    std::vector<double> gathered(own);
    std::vector<size_t> next(blocks.size() + 1, 0);
    for (size_t b = 0; b < blocks.size(); ++b) next[b + 1] = next[b] + count[b * kBuckets + bucket];
    blocks.each([&](size_t b, uint32_t i) {
      if (agrees(values[i]) && bucket_of(values[i]) == bucket) gathered[next[b]++] = values[i];
    });
    find_nth(gathered, shift - kBits, longer, inside, std::move(here), found);
  }
}

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
  const size_t total = sum_over<size_t>(ops, [](const OpStretch& s) { return s.end - s.begin; });
  const size_t blocks = std::clamp<size_t>(total / (2 * each + kMinBlock), 1, kMaxBlocks);
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

std::vector<double> OpValues::take_medians() {
  std::vector<double> medians(keys());
  parallel_for(medians.size(), [&](size_t k) {
    medians[k] = median_in_place({values_.begin() + begin_[k], begin_[k + 1] - begin_[k]});
  });
  return medians;
}

std::vector<double> nth_values(std::span<const double> values, const std::vector<size_t>& nth) {
  std::vector<double> found(nth.size());
  auto rest = indexes(nth.size());  // into `found`
  find_nth(values, 64 - kBits, 0, nth, std::move(rest), found);
  return found;
}

}  // namespace stageline
