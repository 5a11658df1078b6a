#include "model/overlapped_pairs.h"

namespace stageline {

std::vector<uint32_t> overlapped_pairs(const Cells& cells) {
  std::vector<uint32_t> pairs(cells.size(), kNoPair);
  const auto same_times = [&](size_t a, size_t b) {
    return cells.start_ns[a] == cells.start_ns[b] && cells.end_ns[a] == cells.end_ns[b] &&
           cells.part[a] == cells.part[b] && cells.step[a] == cells.step[b];
  };
  for (size_t i = 0; i < cells.size();) {
    size_t end = i + 1;
    while (end < cells.size() && same_times(i, end)) ++end;
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
  return pairs;
}

}  // namespace stageline
