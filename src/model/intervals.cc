#include "model/intervals.h"

#include "base/parallel.h"

namespace stageline {

std::vector<uint32_t> overlapped_pairs(const Cells& cells) {
  std::vector<uint32_t> pairs(cells.size(), kNoPair);
  const auto same_times = [&](size_t a, size_t b) {
    return cells.start_ns[a] == cells.start_ns[b] && cells.end_ns[a] == cells.end_ns[b] &&
           cells.part[a] == cells.part[b] && cells.step[a] == cells.step[b];
  };
  const std::vector<StepRange> ranges = step_ranges(cells);
  parallel_for(ranges.size(), [&](size_t s) {
    for (size_t i = ranges[s].begin; i < ranges[s].end;) {
      size_t end = i + 1;
      while (end < ranges[s].end && same_times(i, end)) ++end;
      uint32_t forward = kNoPair, backward = kNoPair;
      for (size_t k = i; k < end && cells.dur_ns(i) > 0; ++k) {
        if (cells.kind[k] == CellKind::kForward) forward = static_cast<uint32_t>(k);
        if (cells.kind[k] == CellKind::kBackward || cells.kind[k] == CellKind::kInputGrad)
          backward = static_cast<uint32_t>(k);
        if (forward == kNoPair || backward == kNoPair) continue;
        pairs[forward] = backward;
        pairs[backward] = forward;
        forward = backward = kNoPair;
      }
      i = end;
    }
  });
  return pairs;
}

std::vector<uint32_t> loss_backwards(const Cells& cells) {
  const auto is_backward = [&](size_t i) {
    return cells.kind[i] == CellKind::kBackward || cells.kind[i] == CellKind::kInputGrad;
  };
  const std::vector<StepRange> ranges = step_ranges(cells);
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> found(ranges.size());
  parallel_for(ranges.size(), [&](size_t s) {
    uint32_t later[2] = {kNoPair, kNoPair};  // the two pieces of work after this one
    for (size_t i = ranges[s].end; i-- > ranges[s].begin;) {
      if (!is_compute(cells.kind[i])) continue;
      for (const uint32_t j : later)
        if (j != kNoPair && is_backward(i) && is_backward(j) && cells.part[i] == cells.part[j] &&
            cells.micro_batch[i] != kUnknown && cells.chunk[i] != kUnknown &&
            cells.micro_batch[i] == cells.micro_batch[j] && cells.chunk[i] == cells.chunk[j] &&
            cells.end_ns[i] <= cells.start_ns[j]) {
          found[s].emplace_back(static_cast<uint32_t>(i), j);
          break;
        }
      later[1] = later[0];
      later[0] = static_cast<uint32_t>(i);
    }
  });
  std::vector<uint32_t> whole;
  for (const auto& of_step : found)
    for (const auto& [loss, backward] : of_step) {
      whole.resize(cells.size(), kNoPair);
      whole[loss] = backward;
    }
  return whole;
}

}  // namespace stageline
