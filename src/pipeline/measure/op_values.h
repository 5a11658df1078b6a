// Values of many operations, arranged by owner, and order statistics of them, both in parallel. In a large run all
// threads would wait for one that appends to a list. Results do not depend on the number of threads.
#pragma once

#include "base/parallel.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Operations [begin, end).
struct OpStretch {
  uint32_t begin = 0, end = 0;
};

// Operations of the steps that count, in order; adjoining stretches are joined.
std::vector<OpStretch> counted_ops(const StepGraph& graph, const std::vector<bool>& counts);

// Operations cut into blocks for parallel loops that keep `each` counters per block. The more counters a block needs,
// the fewer blocks there are.
class OpBlocks {
 public:
  OpBlocks(const std::vector<OpStretch>& ops, size_t each);
  OpBlocks(size_t count, size_t each)
      : OpBlocks(std::vector<OpStretch>{{0, static_cast<uint32_t>(count)}}, each) {}  // [0, count)
  size_t size() const { return first_.size() - 1; }
  // Calls body(block, operations) for stretches that hold all operations; those of one block in order.
  template <class Body> void each_stretch(const Body& body) const {
    parallel_for(size(), [&](size_t b) {
      for (size_t s = first_[b]; s < first_[b + 1]; ++s) body(b, stretches_[s]);
    });
  }
  // Calls body(block, operation) for all operations; those of one block in order.
  template <class Body> void each(const Body& body) const {
    each_stretch([&](size_t b, const OpStretch& ops) {
      for (uint32_t op = ops.begin; op < ops.end; ++op) body(b, op);
    });
  }

 private:
  std::vector<OpStretch> stretches_;  // cut where blocks end
  std::vector<size_t> first_;         // for each block its first stretch, and at last the end
};

// An array with unset values: the thread that writes a value first touches its page, so that all threads share that
// work.
template <class T> class RawValues {
 public:
  void resize(size_t count) { values_ = std::make_unique_for_overwrite<T[]>(count_ = count); }
  size_t size() const { return count_; }
  T* begin() { return values_.get(); }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }
  operator std::span<const T>() const { return {values_.get(), count_}; }

 private:
  std::unique_ptr<T[]> values_;
  size_t count_ = 0;
};

class OpValues {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // key of an operation that belongs to nothing
  OpValues() = default;

  // `key` gives the owner of an operation of `ops`: a number below `keys`, or kNone. `resize` is called first, with the
  // number of values; then `place(op, at)` puts an operation's value, and all other data of it, at its place. `key` and
  // `place` are called from several threads and may change nothing but that place. Values are in order of their keys,
  // and within a key in the order of operations. O(operations + keys), memory O(keys) besides the values.
  template <class Key, class Resize, class Place>
  void arrange(const std::vector<OpStretch>& ops, size_t keys, const Key& key, const Resize& resize,
               const Place& place) {
    const OpBlocks blocks(ops, keys);
    std::vector<uint32_t> next(blocks.size() * keys, 0);
    blocks.each([&](size_t b, uint32_t op) {
      if (const uint32_t k = key(op); k != kNone) ++next[b * keys + k];
    });
    begin_.assign(keys + 1, 0);
    uint32_t total = 0;
    for (size_t k = 0; k < keys; ++k) {
      begin_[k] = total;
      for (size_t b = 0; b < blocks.size(); ++b) {
        const uint32_t own = next[b * keys + k];
        next[b * keys + k] = total;
        total += own;
      }
    }
    begin_[keys] = total;
    resize(total);
    blocks.each([&](size_t b, uint32_t op) {
      if (const uint32_t k = key(op); k != kNone) place(op, next[b * keys + k]++);
    });
  }

  // The usual case: each operation has one value.
  template <class Key, class Value>
  OpValues(const std::vector<OpStretch>& ops, size_t keys, const Key& key, const Value& value) {
    arrange(
        ops, keys, key, [&](size_t total) { values_.resize(total); },
        [&](uint32_t op, size_t at) { values_[at] = value(op); });
  }

  size_t keys() const { return begin_.empty() ? 0 : begin_.size() - 1; }
  RawValues<double>& all() { return values_; }
  std::span<const double> of(size_t key) const {
    return std::span<const double>(values_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }
  // Returns the median for each key; NaN for a key without values. Changes the order of values within their keys.
  std::vector<double> take_medians();

 private:
  RawValues<double> values_;
  std::vector<uint32_t> begin_;
};

// Returns the values that would be at the places `nth` if all were sorted. It counts in parallel and does not sort or
// copy them all. Expects more values than any of `nth`, and no NaN.
std::vector<double> nth_values(std::span<const double> values, const std::vector<size_t>& nth);
// The places of the values in the middle of `count` sorted ones (at least one); their mean is the median.
inline std::vector<size_t> middle_of(size_t count) { return {(count - 1) / 2, count / 2}; }

}  // namespace stageline
