// VPP (interleaved 1F1B): micro-batches go in groups of p; inside a group the chunks are walked one
// after another, which gives the table T[k] = (micro-batch, chunk). The backward uses the same table
// with the chunks mirrored. Rank r warms up with 2(p − 1 − r) + (v − 1)p forwards, then alternates
// F and B, then drains.
#include <algorithm>
#include <utility>
#include <vector>

#include "schedules/build.h"

namespace stageline {
namespace {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"vpp", sizes, ChunkLayout::kLoop, {}};
  const int32_t p = sizes.stages, m = sizes.micro_batches, v = sizes.chunks;
  std::vector<std::pair<int32_t, int32_t>> table;
  for (int32_t low = 0; low < m; low += p)  // the last group may be ragged
    for (int32_t chunk = 0; chunk < v; ++chunk)
      for (int32_t i = low; i < std::min(m, low + p); ++i) table.emplace_back(i, chunk);
  const auto total = static_cast<int32_t>(table.size());
  for (int32_t r = 0; r < p; ++r) {
    RankOrder order;
    const auto forward = [&](int32_t k) {
      const auto& [mb, chunk] = table[static_cast<size_t>(k)];
      push(order, CellKind::kForward, mb, chunk);
    };
    const auto backward = [&](int32_t k) {
      const auto& [mb, chunk] = table[static_cast<size_t>(k)];
      push(order, CellKind::kBackward, mb, v - 1 - chunk);
    };
    const int32_t warm = std::min(total, 2 * (p - 1 - r) + (v - 1) * p);
    for (int32_t k = 0; k < warm; ++k) forward(k);
    for (int32_t k = 0; k < total - warm; ++k) {
      forward(warm + k);
      backward(k);
    }
    for (int32_t k = total - warm; k < total; ++k) backward(k);
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace

extern const ScheduleDef vpp_schedule;
const ScheduleDef vpp_schedule = {"vpp", "interleaved 1F1B over several chunks a rank",
                                  "Narayanan et al., arXiv 2104.04473; Megatron and Paddle's VPP", true, make};

}  // namespace stageline
