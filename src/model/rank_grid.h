// RankGrid: the position of each rank of a job in the grid of its parallel dimensions. Ranks are numbered as Megatron
// numbers them: the first dimension of the order counts fastest, so with order tp-dp and tp = 2 ranks 0 and 1 are one
// tensor-parallel group. Expert parallelism divides the data-parallel ranks once more and does not count as a dimension
// here.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class GridDim : uint8_t { kTp, kCp, kDp, kPp };
inline constexpr size_t kGridDims = 4;

struct RankGrid {
  // Indexed by GridDim, each at least 1; the product fits an int32_t.
  ByEnum<GridDim, int32_t, kGridDims> size = {{1, 1, 1, 1}};
  std::array<GridDim, kGridDims> order = {GridDim::kTp, GridDim::kCp, GridDim::kDp, GridDim::kPp};  // fastest first

  int32_t of(GridDim dim) const { return size[dim]; }
  int32_t world() const;
  // `rank` is 0 … world() − 1.
  int32_t coordinate(int32_t rank, GridDim dim) const;
  int32_t rank_at(int32_t tp, int32_t cp, int32_t dp, int32_t pp) const;
  // Returns the ranks that differ from `rank` only in `dims`, `rank` included, ascending. O(size of the group).
  std::vector<int32_t> group(int32_t rank, std::initializer_list<GridDim> dims) const;
};

// Parses an order, "tp-cp-ep-dp-pp". Dimensions that it does not name count slowest. Other names are skipped, since
// check_rank_order of pipeline/cells/rank_layout.h has refused wrong ones before.
std::array<GridDim, kGridDims> grid_order(std::string_view text);

}  // namespace stageline
