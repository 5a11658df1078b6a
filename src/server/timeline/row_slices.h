// Which slice of a lane is at which position of a row: ascending numbers, stored in little more than a byte each.
//
// Positions are stored in blocks of kTogether. A block stores its first number whole, and for all its numbers the
// distance from it, in one byte each where all of them fit, else in two or four.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace stageline {

class RowSlices {
 public:
  static constexpr size_t kTogether = 32;

  bool empty() const { return blocks_.empty(); }
  // Adds numbers, which must come in ascending order; call finish() after the last one.
  void push(uint32_t slice) {
    pending_.push_back(slice);
    if (pending_.size() == kTogether) close();
  }
  void finish() {
    if (!pending_.empty()) close();
    std::vector<uint32_t>().swap(pending_);
    blocks_.shrink_to_fit();
    bytes_.shrink_to_fit();
  }

  uint32_t at(size_t position) const {
    const Block& block = blocks_[position / kTogether];
    const size_t k = position % kTogether;
    const uint8_t* from = bytes_.data() + size_t{block.at >> 2} * kTogether;
    switch (block.at & 3) {
      case 0: return block.first + from[k];
      case 1: return block.first + wide<uint16_t>(from, k);
      default: return block.first + wide<uint32_t>(from, k);
    }
  }
  size_t bytes() const { return blocks_.size() * sizeof(Block) + bytes_.size(); }

 private:
  struct Block {
    uint32_t first;
    uint32_t at;  // where its distances begin in bytes_, in units of kTogether; the two lowest bits are their width
  };
  static_assert((uint64_t{UINT32_MAX} / kTogether + 1) * 4 <= uint64_t{1} << 30, "places of blocks fit 30 bits");

  template <class T>
  static uint32_t wide(const uint8_t* from, size_t k) {
    T value;
    std::memcpy(&value, from + k * sizeof value, sizeof value);
    return value;
  }
  template <class T>
  void put() {
    for (const uint32_t slice : pending_) {
      const T distance = static_cast<T>(slice - pending_.front());
      const auto* raw = reinterpret_cast<const uint8_t*>(&distance);
      bytes_.insert(bytes_.end(), raw, raw + sizeof distance);
    }
    bytes_.resize((bytes_.size() + kTogether - 1) / kTogether * kTogether);
  }
  void close() {
    const uint32_t span = pending_.back() - pending_.front();
    const uint32_t width = span <= UINT8_MAX ? 0 : span <= UINT16_MAX ? 1 : 2;
    blocks_.push_back({pending_.front(), static_cast<uint32_t>(bytes_.size() / kTogether) << 2 | width});
    if (width == 0)
      put<uint8_t>();
    else if (width == 1)
      put<uint16_t>();
    else
      put<uint32_t>();
    pending_.clear();
  }

  std::vector<Block> blocks_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> pending_;
};

}  // namespace stageline
