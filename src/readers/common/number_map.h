// Maps the profiler's numbers (of connections, tasks, operations) to rows.
#pragma once

#include "base/hashes.h"
#include "model/slice_facts.h"

namespace stageline {

// Profilers' numbers of launches and operators have up to 64 bits, the model's have 32. Returns those that fit as they
// are. Larger ones keep their low half, moved by a constant for each high half (rocmProfileData and others count each
// session on from the next multiple of 2^32). So numbers of one session stay apart, and those of two sessions meet only
// where both would be millions long. Negative ones, and what would be one of the two reserved numbers, give
// kNoCorrelation.
constexpr uint32_t fold_number(int64_t number) {
  if (number < 0) return kNoCorrelation;
  const auto folded = static_cast<uint32_t>(number) + static_cast<uint32_t>(number >> 32) * 0x9e3779b1u;
  return folded == 0 && number != 0 ? kNoCorrelation : folded;
}

// A profiler's numbers mostly run on, so sixteen neighbours share a cache line, and lines are found by open addressing.
// To be used by one thread only, reading included, since the last line is remembered.
class NumberMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Keeps the first value that was put for a key. Returns the value that is there now.
  uint32_t put(int64_t key, uint32_t value) {
    uint32_t& place = lines_[line_to_fill(key >> kBits)][key & kMask];
    return place == kNone ? place = value : place;
  }
  void replace(int64_t key, uint32_t value) { lines_[line_to_fill(key >> kBits)][key & kMask] = value; }
  uint32_t get(int64_t key) const {
    if (slots_.empty()) return kNone;
    const int64_t block = key >> kBits;
    if (block != last_block_) {
      const Slot& slot = slots_[find(slots_, block)];
      if (slot.line == kNone) return kNone;
      last_block_ = block;
      last_line_ = slot.line;
    }
    return lines_[last_line_][key & kMask];
  }

 private:
  static constexpr int kBits = 4;
  static constexpr int64_t kMask = (1 << kBits) - 1;
  using Line = std::array<uint32_t, size_t{1} << kBits>;
  struct Slot {
    int64_t block = 0;
    uint32_t line = kNone;
  };

  size_t find(const std::vector<Slot>& slots, int64_t block) const {
    const size_t mask = slots.size() - 1;
    size_t i = seeded_hash(block, seed_) & mask;
    while (slots[i].line != kNone && slots[i].block != block) i = (i + 1) & mask;
    return i;
  }
  uint32_t line_to_fill(int64_t block) {
    if (block == last_block_ && !slots_.empty()) return last_line_;
    if ((lines_.size() + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[find(slots_, block)];
    if (slot.line == kNone) {
      slot = {block, static_cast<uint32_t>(lines_.size())};
      lines_.emplace_back().fill(kNone);
    }
    last_block_ = block;
    return last_line_ = slot.line;
  }
  void grow() {
    std::vector<Slot> bigger(slots_.empty() ? 256 : slots_.size() * 2);
    for (const Slot& slot : slots_)
      if (slot.line != kNone) bigger[find(bigger, slot.block)] = slot;
    slots_.swap(bigger);
  }

  uint64_t seed_ = hash_seed();
  std::vector<Slot> slots_;
  std::vector<Line> lines_;
  mutable int64_t last_block_ = INT64_MIN;
  mutable uint32_t last_line_ = 0;
};

}  // namespace stageline
