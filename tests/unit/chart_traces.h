// Traces made by hand for the chart's tests: orders of work per stage, run as soon as their inputs
// are there, on one clock and without message time.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "model/trace.h"

namespace stageline::test {

struct Work {
  CellKind kind;
  int32_t micro_batch;
  int32_t chunk = 0;
};

struct JobShape {
  int32_t stages = 4, micro_batches = 8, chunks = 1, replicas = 1, steps = 1;
  bool zero_bubble = false;  // I and W apart
  double last_stage_factor = 1.6;
};

inline std::vector<Work> order_of(const JobShape& job, int32_t stage) {
  std::vector<Work> order;
  const int32_t m = job.micro_batches;
  if (job.chunks > 1) {  // interleaved: rounds of `stages` micro-batches through each chunk
    std::vector<Work> f, b;
    for (int32_t first = 0; first < m; first += job.stages)
      for (int32_t c = 0; c < job.chunks; ++c)
        for (int32_t i = first; i < std::min(m, first + job.stages); ++i) {
          f.push_back({CellKind::kForward, i, c});
          b.push_back({CellKind::kBackward, i, job.chunks - 1 - c});
        }
    const auto warm = static_cast<size_t>(2 * (job.stages - stage - 1) + (job.chunks - 1) * job.stages);
    size_t next_f = std::min(warm, f.size()), next_b = 0;
    order.assign(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(next_f));
    while (next_b < b.size()) {
      if (next_f < f.size()) order.push_back(f[next_f++]);
      order.push_back(b[next_b++]);
    }
    return order;
  }
  const int32_t warm = std::min(m, job.stages - stage);
  int32_t f = 0, b = 0, w = 0;
  const CellKind back = job.zero_bubble ? CellKind::kInputGrad : CellKind::kBackward;
  while (f < warm) order.push_back({CellKind::kForward, f++});
  while (b < m) {
    order.push_back({back, b++});
    if (job.zero_bubble && b - w > stage) order.push_back({CellKind::kWeightGrad, w++});
    if (f < m) order.push_back({CellKind::kForward, f++});
  }
  while (job.zero_bubble && w < m) order.push_back({CellKind::kWeightGrad, w++});
  return order;
}

// Times in ms are F 20, B 40 (I 20, W 20), divided among chunks. Each rank has a collective that starts under the last
// backward, and an optimizer at the end of the step.
inline Trace make_trace(const JobShape& job) {
  constexpr int64_t kMs = 1'000'000;
  Trace trace;
  trace.format = "test";
  trace.clock = ClockState::kShared;
  for (int32_t d = 0; d < job.replicas; ++d)
    for (int32_t s = 0; s < job.stages; ++s) {
      Part part;
      part.rank = d * job.stages + s;
      part.stage = s;
      part.dp = job.replicas > 1 ? d : kUnknown;
      trace.parts.push_back(part);
    }
  int64_t step_start = 5'000 * kMs;
  for (int32_t step = 0; step < job.steps; ++step) {
    int64_t step_end = step_start;
    for (int32_t d = 0; d < job.replicas; ++d) {
      std::vector<std::vector<Work>> orders;
      for (int32_t s = 0; s < job.stages; ++s) orders.push_back(order_of(job, s));
      std::vector<size_t> next(orders.size(), 0);
      std::vector<int64_t> free_at(orders.size(), step_start + (d + 1) * kMs);
      std::map<std::tuple<bool, int32_t, int32_t>, int64_t> done;  // backward?, virtual stage, micro-batch
      for (bool moved = true; moved;) {
        moved = false;
        for (int32_t s = 0; s < job.stages; ++s) {
          const auto stage = static_cast<size_t>(s);
          while (next[stage] < orders[stage].size()) {
            const Work& work = orders[stage][next[stage]];
            const bool backward = work.kind != CellKind::kForward;
            const int32_t v = work.chunk * job.stages + s, last = job.stages * job.chunks - 1;
            int64_t ready = 0;
            if (work.kind != CellKind::kWeightGrad && !(v == 0 && !backward)) {
              const auto key = backward && v == last ? std::tuple(false, v, work.micro_batch)
                                                     : std::tuple(backward, backward ? v + 1 : v - 1, work.micro_batch);
              const auto it = done.find(key);
              if (it == done.end()) break;
              ready = it->second;
            }
            const int64_t start = std::max(ready, free_at[stage]);
            double ms = (work.kind == CellKind::kBackward ? 40.0 : 20.0) / job.chunks;
            if (s == job.stages - 1) ms *= job.last_stage_factor;
            ms *= 1 + 0.02 * ((work.micro_batch * 7 + s * 3 + step) % 5);
            const int64_t end = start + static_cast<int64_t>(ms * kMs);
            trace.cells.add({step, d * job.stages + s, work.kind, work.chunk, work.micro_batch, start, end, kNoSlice});
            if (work.kind != CellKind::kWeightGrad) done[{backward, v, work.micro_batch}] = end;
            if (v < last && !backward)
              trace.cells.add({step, d * job.stages + s, CellKind::kSendForward, work.chunk, work.micro_batch, end,
                               end + 3 * kMs, kNoSlice});
            free_at[stage] = end;
            ++next[stage];
            moved = true;
          }
        }
      }
      for (int32_t s = 0; s < job.stages; ++s) {
        const int64_t end = free_at[s];
        trace.cells.add({step, d * job.stages + s, CellKind::kCollective, kUnknown, kUnknown, end - 15 * kMs,
                         end + 30 * kMs, kNoSlice});
        step_end = std::max(step_end, end + 32 * kMs);
      }
    }
    for (size_t p = 0; p < trace.parts.size(); ++p)
      trace.cells.add({step, static_cast<int32_t>(p), CellKind::kOptimizer, kUnknown, kUnknown, step_end,
                       step_end + 14 * kMs, kNoSlice});
    step_start = step_end + 16 * kMs;
  }
  trace.cells.sort();
  return trace;
}

}  // namespace stageline::test
