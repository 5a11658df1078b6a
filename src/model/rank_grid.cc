#include "model/rank_grid.h"

namespace stageline {

int32_t RankGrid::world() const { return size[0] * size[1] * size[2] * size[3]; }

int32_t RankGrid::coordinate(int32_t rank, GridDim dim) const {
  for (const GridDim d : order) {
    if (d == dim) return rank % of(d);
    rank /= of(d);
  }
  return 0;
}

int32_t RankGrid::rank_at(int32_t tp, int32_t cp, int32_t dp, int32_t pp) const {
  const ByEnum<GridDim, int32_t, kGridDims> at = {{tp, cp, dp, pp}};
  int32_t rank = 0, stride = 1;
  for (const GridDim d : order) {
    rank += at[d] * stride;
    stride *= of(d);
  }
  return rank;
}

std::vector<int32_t> RankGrid::group(int32_t rank, std::initializer_list<GridDim> dims) const {
  std::vector<int32_t> ranks = {rank};
  for (const GridDim dim : dims) {
    int32_t stride = 1;
    for (const GridDim d : order) {
      if (d == dim) break;
      stride *= of(d);
    }
    std::vector<int32_t> wider;
    for (const int32_t r : ranks)
      for (int32_t i = 0; i < of(dim); ++i) wider.push_back(r + (i - coordinate(r, dim)) * stride);
    ranks = std::move(wider);
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::array<GridDim, kGridDims> grid_order(std::string_view text) {
  static constexpr std::array<std::string_view, kGridDims> kNames = {"tp", "cp", "dp", "pp"};
  std::array<GridDim, kGridDims> order{};
  std::array<bool, kGridDims> taken{};
  size_t count = 0;
  const auto take = [&](size_t dim) {
    if (taken[dim]) return;
    taken[dim] = true;
    order[count++] = static_cast<GridDim>(dim);
  };
  for (const std::string_view word : split(text, '-'))
    for (size_t dim = 0; dim < kGridDims; ++dim)
      if (word == kNames[dim]) take(dim);
  for (size_t dim = 0; dim < kGridDims; ++dim) take(dim);
  return order;
}

}  // namespace stageline
