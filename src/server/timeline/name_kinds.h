// Computes which kinds each name occurs as, and a dense number (a place) for every such pair, so that sums by name and
// kind are arrays.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "server/timeline/view_lane.h"

namespace stageline {

class NameKinds {
 public:
  // O(slices), parallel. Takes 8 bytes a name and 5 bytes a pair, and at most 4 MiB for a table that gives places at
  // once.
  NameKinds(const std::vector<ViewLane>& lanes, size_t name_count);

  size_t size() const { return kind_.size(); }
  // The place of a pair, which must occur.
  uint32_t place(StringId name, uint8_t kind) const {
    if (!table_.empty()) return table_[size_t{table_row_[kind]} * kinds_.size() + name];
    const uint32_t before = kinds_[name] & ((uint32_t{1} << kind) - 1);
    return first_[name] + std::popcount(before);
  }
  uint32_t place_of(const ViewLane& lane, size_t slice) const { return place(lane.names[slice], lane.kind(slice)); }
  StringId name(uint32_t place) const { return name_[place]; }
  uint8_t kind(uint32_t place) const { return kind_[place]; }

 private:
  static constexpr size_t kMaxTable = size_t{1} << 20;

  std::vector<uint32_t> kinds_;  // for each name, one bit for each kind
  std::vector<uint32_t> first_;  // for each name its first place
  std::vector<StringId> name_;   // for each place
  std::vector<uint8_t> kind_;
  std::vector<uint32_t> table_;  // [kinds that occur][names] → place; empty where it would be large
  std::array<uint8_t, kViewKindCount> table_row_{};
};

}  // namespace stageline
