// Small traces for tests, timed by a little simulation of their own: nothing here depends on
// schedules/ or on a reader.
#pragma once

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "model/schedule.h"
#include "model/trace.h"

namespace stageline::testing {

struct TraceSpec {
  int32_t stages = 4, micro_batches = 8, steps = 1;
  int32_t chunks = 1;  // above 1: breadth-first, every chunk forward, then every chunk backward
  ChunkLayout layout = ChunkLayout::kLoop;
  int32_t dp = 1, tp = 1;
  int32_t machines = 0;  // 0: unknown
  int64_t start_ns = 0;
  int64_t forward_ns = 8'050'000, backward_ns = 16'200'000, step_gap_ns = 5'000'000;
};

// One rank's order: (kind, chunk, micro-batch). One chunk: 1F1B.
inline std::vector<Action> make_order(const TraceSpec& spec, int32_t stage) {
  std::vector<Action> order;
  const int32_t m = spec.micro_batches;
  if (spec.chunks > 1) {
    for (int32_t c = 0; c < spec.chunks; ++c)
      for (int32_t i = 0; i < m; ++i) order.push_back({CellKind::kForward, i, c});
    for (int32_t c = spec.chunks - 1; c >= 0; --c)
      for (int32_t i = 0; i < m; ++i) order.push_back({CellKind::kBackward, i, c});
    return order;
  }
  const int32_t warm_up = std::min(m, spec.stages - 1 - stage);
  int32_t forward = 0, backward = 0;
  while (forward < warm_up) order.push_back({CellKind::kForward, forward++, 0});
  while (backward < m) {
    if (forward < m) order.push_back({CellKind::kForward, forward++, 0});
    order.push_back({CellKind::kBackward, backward++, 0});
  }
  return order;
}

// Steps one after another, every cell starting when its rank is free and its input is there.
inline Trace make_1f1b_trace(const TraceSpec& spec) {
  Trace trace;
  trace.format = "test";
  trace.description = "made by make_trace.h";
  trace.clock = ClockState::kShared;
  const int32_t ranks = spec.stages * spec.dp * spec.tp;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Part part;
    part.rank = rank;
    part.stage = rank / spec.tp % spec.stages;
    part.dp = rank / spec.tp / spec.stages;
    if (spec.machines > 0) {
      part.machine = rank * spec.machines / ranks;
      part.device = rank - part.machine * ranks / spec.machines;
    }
    trace.parts.push_back(part);
  }
  Schedule shape;
  shape.sizes = {spec.stages, spec.micro_batches, spec.chunks};
  shape.layout = spec.layout;
  const int32_t vstages = spec.stages * spec.chunks;
  const auto p = static_cast<size_t>(spec.stages);
  int64_t step_start = spec.start_ns;
  for (int32_t step = 0; step < spec.steps; ++step) {
    // done[backward][vstage][micro-batch]: when it ended, −1 while it has not.
    std::vector<std::vector<int64_t>> done(2 * static_cast<size_t>(vstages),
                                           std::vector<int64_t>(static_cast<size_t>(spec.micro_batches), -1));
    std::vector<std::vector<Action>> order;
    for (int32_t s = 0; s < spec.stages; ++s) order.push_back(make_order(spec, s));
    std::vector<size_t> next(p, 0);
    std::vector<int64_t> free_at(p, step_start);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < p; ++s) {
        if (next[s] == order[s].size()) continue;
        const Action action = order[s][next[s]];
        const bool backward = action.kind == CellKind::kBackward;
        const int32_t vs = virtual_stage(shape, static_cast<int32_t>(s), action.chunk);
        const auto at = [&](bool b, int32_t v) -> int64_t& { return done[v + (b ? vstages : 0)][action.micro_batch]; };
        int64_t ready = step_start;
        if (backward) ready = vs + 1 < vstages ? at(true, vs + 1) : at(false, vs);
        if (!backward && vs > 0) ready = at(false, vs - 1);
        if (ready < 0) continue;
        const int64_t start = std::max(ready, free_at[s]);
        const int64_t end = start + (backward ? spec.backward_ns : spec.forward_ns);
        at(backward, vs) = free_at[s] = end;
        ++next[s];
        moved = true;
        for (int32_t part = 0; part < ranks; ++part)
          if (trace.parts[part].stage == static_cast<int32_t>(s))
            trace.cells.add({step, part, action.kind, action.chunk, action.micro_batch, start, end, kNoSlice});
      }
    }
    step_start = *std::max_element(free_at.begin(), free_at.end()) + spec.step_gap_ns;
  }
  trace.cells.sort();
  return trace;
}

// A cell that goes by a name of its own. Call trace.cells.sort() after the last one.
inline void add_named_cell(Trace& trace, Cell cell, const std::string& name) {
  Part& part = trace.parts[cell.part];
  Slices one;
  one.start_ns = {cell.start_ns};
  one.dur_ns = {cell.end_ns - cell.start_ns};
  one.name_id = {trace.names.intern(name)};
  one.file_index = {static_cast<uint32_t>(part.slices.size())};
  cell.slice = part.add_lane(name, one).front();
  trace.cells.add(cell);
}

// Two stages, one micro-batch, messages recorded as operations: a send and its receive are one group, which ends
// together. Times in ms:
//
//   rank 0  F 0─80  SF 80─140            RB 100─────520  B 520─680  O 680─700
//   rank 1     RF 20─130   F 135─255  B 255─495  SB 495─515   O 500─520
inline Trace two_stages() {
  constexpr int64_t kMs = 1'000'000;
  Trace trace;
  trace.format = "test";
  trace.clock = ClockState::kShared;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = part.stage = rank;
    part.dp = 0;
    trace.parts.push_back(part);
  }
  const auto add = [&](int32_t part, CellKind kind, const char* name, int64_t start, int64_t end) {
    add_named_cell(trace, {7, part, kind, 0, 0, start * kMs, end * kMs}, name);
  };
  add(0, CellKind::kForward, "forward-compute", 0, 80);
  add(0, CellKind::kSendForward, "forward-send", 80, 140);
  add(0, CellKind::kRecvBackward, "backward-recv", 100, 520);
  add(0, CellKind::kBackward, "backward-compute", 520, 680);
  add(0, CellKind::kOptimizer, "optimizer", 680, 700);
  add(1, CellKind::kRecvForward, "forward-recv", 20, 130);
  add(1, CellKind::kForward, "forward-compute", 135, 255);
  add(1, CellKind::kBackward, "backward-compute", 255, 495);
  add(1, CellKind::kSendBackward, "backward-send", 495, 515);
  add(1, CellKind::kOptimizer, "optimizer", 500, 520);
  trace.cells.sort();
  return trace;
}

// Index of the cell of a job; asserts that it is there.
inline uint32_t find_cell(const Trace& trace, int32_t step, int32_t part, CellKind kind, int32_t micro_batch,
                          int32_t chunk = 0) {
  const Cells& c = trace.cells;
  for (uint32_t i = 0; i < c.size(); ++i)
    if (c.step[i] == step && c.part[i] == part && c.kind[i] == kind && c.micro_batch[i] == micro_batch &&
        c.chunk[i] == chunk)
      return i;
  assert(false);
  return UINT32_MAX;
}

}  // namespace stageline::testing
