#include "schedules/build.h"

namespace stageline {

void DualPipeRank::forward(int32_t chunk) { push(order_, CellKind::kForward, forwards_[chunk]++, chunk); }

void DualPipeRank::backward(int32_t chunk, bool split) {
  const int32_t i = backwards_[chunk]++;
  push(order_, split ? CellKind::kInputGrad : CellKind::kBackward, i, chunk);
  if (split) owed_.push_back({CellKind::kWeightGrad, i, chunk});
}

void DualPipeRank::weight() { order_.emplace_back(owed_[paid_++]); }

void DualPipeRank::overlapped(int32_t forward_chunk, int32_t backward_chunk) {
  const Action f = {CellKind::kForward, forwards_[forward_chunk]++, forward_chunk};
  const Action b = {CellKind::kBackward, backwards_[backward_chunk]++, backward_chunk};
  order_.emplace_back(f, b);
}

void DualPipeRank::warm_up_and_steady() {
  const int32_t n = ranks_, r = rank_;
  order_.reserve(static_cast<size_t>(micro_batches_) * 5);
  for (int32_t k = 0; k < 2 * (n - r - 1); ++k) forward(0);
  for (int32_t k = 0; k < r + 1; ++k) {
    forward(0);
    forward(1);
  }
  for (int32_t k = 0; k < n - r - 1; ++k) {
    backward(1, true);
    weight();
    forward(1);
  }
  for (int32_t k = 0; k < micro_batches_ - 2 * n + r + 1; ++k) {
    if (k == 0 && r == n - 1) {
      forward(0);
      backward(1, false);
    } else {
      overlapped(0, 1);
    }
    overlapped(1, 0);
  }
  for (int32_t k = 0; k < n - r - 1; ++k) {
    backward(1, false);
    overlapped(1, 0);
  }
}

RankOrder DualPipeRank::dualpipe() {
  warm_up_and_steady();
  // Splitting begins in the middle of step 6: with that round's B1 on odd ranks, with its B0 on even ranks.
  const int32_t middle = (rank_ + 1) / 2;
  for (int32_t k = 0; k < rank_ + 1; ++k) {
    backward(1, k > middle || (k == middle && rank_ % 2 == 1));
    backward(0, k >= middle);
  }
  for (int32_t k = 0; k < ranks_ - rank_ - 1; ++k) {
    weight();
    backward(0, true);
  }
  while (paid_ < owed_.size()) weight();
  return std::move(order_);
}

RankOrder DualPipeRank::mindspeed(bool detach) {
  warm_up_and_steady();
  const auto left = [&](int32_t chunk) { return backwards_[chunk] < micro_batches_; };
  int32_t done = 0;
  for (int32_t chunk = 1; left(0) || left(1); chunk = 1 - chunk, ++done) {
    if (!left(chunk)) continue;
    // The first rank + 1 backwards still belong to the overlapping loop, whose forwards have run out, so they are
    // whole.
    const bool split = detach && done > rank_;
    backward(chunk, split);
    if (split && done - (rank_ + 1) >= rank_) weight();
  }
  while (paid_ < owed_.size()) weight();
  return std::move(order_);
}

int32_t dualpipe_warm_up(int32_t ranks, int32_t rank) { return 2 * ranks + (rank == ranks - 1 ? 1 : 0); }

double dualpipe_bubble_ns(int32_t ranks, const UnitCosts& c) {
  return (ranks - 1) * static_cast<double>(c.overlapped_ns + c.backward_ns - 3 * c.weight_ns);
}

}  // namespace stageline
