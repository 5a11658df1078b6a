// ZB-V has two chunks per rank, folded in a V, so that the first rank also holds the end of the model. The fixed
// pattern is for F = I = W and n = max(2p − 1, m) micro-batches; those from m on are then removed:
//
//   (2(p−r)−1) × F0      warm-up down the V
//   r × (F1, F0)
//   (p−r) × (F1, I1, W1)
//   steady               [F0 while there are any] I0 W0 F1 I1 W1
//   r × (I0, I1)         no W: the ranks above still wait
//   (p−r) × (I0, W0)
//   the W1 left, then the W0 left
#include "schedules/build.h"

namespace stageline::zb_v {

class Writer {
 public:
  explicit Writer(int32_t micro_batches) : micro_batches_(micro_batches) {
    order_.reserve(static_cast<size_t>(micro_batches) * 6);
  }
  int32_t done(CellKind kind, int32_t chunk) const { return count_[index(kind, chunk)]; }
  void put(CellKind kind, int32_t chunk) {
    const int32_t i = count_[index(kind, chunk)]++;
    if (i < micro_batches_) push(order_, kind, i, chunk);
  }
  RankOrder take() { return std::move(order_); }

 private:
  static size_t index(CellKind kind, int32_t chunk) { return static_cast<size_t>(kind) * 2 + chunk; }
  std::array<int32_t, 8> count_ = {};
  int32_t micro_batches_;
  RankOrder order_;
};

Result<Schedule> make(const ScheduleSizes& sizes) {
  constexpr CellKind f = CellKind::kForward, i = CellKind::kInputGrad, w = CellKind::kWeightGrad;
  Schedule schedule{"zb-v", sizes, ChunkLayout::kV};
  const int32_t p = sizes.stages, n = std::max(2 * p - 1, sizes.micro_batches);
  for (int32_t r = 0; r < p; ++r) {
    Writer out(sizes.micro_batches);
    for (int32_t k = 0; k < 2 * (p - r) - 1; ++k) out.put(f, 0);
    for (int32_t k = 0; k < r; ++k) {
      out.put(f, 1);
      out.put(f, 0);
    }
    for (int32_t k = 0; k < p - r; ++k) {
      out.put(f, 1);
      out.put(i, 1);
      out.put(w, 1);
    }
    while (out.done(f, 1) < out.done(f, 0) || out.done(f, 0) < n) {
      if (out.done(f, 0) < n) out.put(f, 0);
      out.put(i, 0);
      out.put(w, 0);
      out.put(f, 1);
      out.put(i, 1);
      out.put(w, 1);
    }
    for (int32_t k = 0; k < r; ++k) {
      out.put(i, 0);
      out.put(i, 1);
    }
    for (int32_t k = 0; k < p - r; ++k) {
      out.put(i, 0);
      out.put(w, 0);
    }
    while (out.done(w, 1) < out.done(i, 1)) out.put(w, 1);
    while (out.done(w, 0) < out.done(i, 0)) out.put(w, 0);
    schedule.ranks.push_back(out.take());
  }
  return schedule;
}

double bubble_ns(const ScheduleSizes&, const UnitCosts&) { return 0; }
int64_t activations(const ScheduleSizes& sizes, int32_t) { return 2 * int64_t{sizes.stages}; }

}  // namespace stageline::zb_v
