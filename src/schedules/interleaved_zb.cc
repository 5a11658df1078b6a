// Interleaved zero bubble (PyTorch's InterleavedZeroBubble, ZB1P) follows VPP's table: a warm-up of (p − 1 − r) + (v −
// 1)g forwards, then F and I in turn. Rank r owes r weight gradients, which drain at the end.
#include "schedules/build.h"

namespace stageline::interleaved_zb {

int32_t group_of(const ScheduleSizes& sizes) { return sizes.group > 0 ? sizes.group : even_group(sizes); }

int32_t warm_of(const ScheduleSizes& sizes, int32_t rank) {
  const int64_t total = int64_t{sizes.micro_batches} * sizes.chunks;
  const int64_t warm = (int64_t{sizes.stages} - 1 - rank) + (sizes.chunks - 1) * int64_t{group_of(sizes)};
  return static_cast<int32_t>(std::min(total, warm));
}

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"interleaved-zb", sizes, ChunkLayout::kLoop};
  schedule.sizes.group = group_of(sizes);
  const auto table = interleaving_table(sizes, group_of(sizes));
  const auto total = static_cast<int32_t>(table.size());
  for (int32_t r = 0; r < sizes.stages; ++r) {
    RankOrder order;
    order.reserve(table.size() * 3);
    const auto backward = [&](CellKind kind, int32_t k) {
      const auto& [mb, chunk] = table[k];
      push(order, kind, mb, sizes.chunks - 1 - chunk);
    };
    const auto forward = [&](int32_t k) { push(order, CellKind::kForward, table[k].first, table[k].second); };
    const int32_t warm = warm_of(sizes, r);
    int32_t weight = 0;
    for (int32_t k = 0; k < warm; ++k) forward(k);
    for (int32_t k = 0; k < total; ++k) {
      if (warm + k < total) forward(warm + k);
      backward(CellKind::kInputGrad, k);
      if (k >= r) backward(CellKind::kWeightGrad, weight++);
    }
    while (weight < total) backward(CellKind::kWeightGrad, weight++);
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches * sizes.chunks, warm_of(sizes, rank) + 1);
}
double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return (sizes.stages - 1) * static_cast<double>(c.forward_ns + c.input_ns - c.weight_ns);
}
// Activations of the warm-up, of the first steady forward, and of the r weight gradients owed.
int64_t activations(const ScheduleSizes& sizes, int32_t) {
  return std::min<int64_t>(int64_t{sizes.micro_batches} * sizes.chunks,
                           int64_t{sizes.stages} + (sizes.chunks - 1) * int64_t{group_of(sizes)});
}

}  // namespace stageline::interleaved_zb
