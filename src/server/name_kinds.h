// Which kinds each name occurs as, and a dense number for every pair of the two: sums by name and kind are arrays.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "server/view_lane.h"

namespace stageline {

class NameKinds {
 public:
  // O(slices), parallel. 8 B a name and 5 B a pair; and at most 4 MiB of a table that finds places at once.
  NameKinds(const std::vector<ViewLane>& lanes, size_t name_count);

  size_t size() const { return kind_.size(); }
  // Of a pair that occurs.
  uint32_t place(StringId name, uint8_t kind) const {
    if (!table_.empty()) return table_[size_t{table_row_[kind]} * kinds_.size() + name];
    const uint32_t before = kinds_[name] & ((uint32_t{1} << kind) - 1);
    return first_[name] + static_cast<uint32_t>(std::popcount(before));
  }
  uint32_t place_of(const ViewLane& lane, size_t slice) const { return place(lane.names[slice], lane.kind(slice)); }
  StringId name(uint32_t place) const { return name_[place]; }
  uint8_t kind(uint32_t place) const { return kind_[place]; }

 private:
  static constexpr size_t kMostTable = size_t{1} << 20;

  std::vector<uint32_t> kinds_;  // by name, a bit each
  std::vector<uint32_t> first_;  // by name: its first place
  std::vector<StringId> name_;   // by place
  std::vector<uint8_t> kind_;
  std::vector<uint32_t> table_;  // [kinds that occur][names]: places; empty where it would be large
  std::array<uint8_t, kViewKindCount> table_row_{};
};

}  // namespace stageline
