// Runs whose clocks are wrong by a known amount: messages, collectives and disturbances for make_trace.h's traces.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "engine/one_clock.h"
#include "make_trace.h"
#include "pipeline/cells/link_cells.h"

namespace stageline::testing {

// A mapped trace as pictures draw it.
inline Trace drawn_copy(const Trace& recorded) {
  return DrawnRun(std::make_shared<const Run>(recorded)).trace().copy();
}

// Cells end a millisecond before what waits for them begins: messages fit in between.
inline void leave_room(Trace& trace) {
  for (size_t i = 0; i < trace.cells.size(); ++i)
    trace.cells.end_ns[i] -= trace.cells.kind[i] == CellKind::kForward ? 1'000'000 : 1'200'000;
}

inline int64_t middle_of(const Trace& trace) {
  const Extent extent = extent_of(trace);
  return extent.start_ns / 2 + extent.end_ns / 2;
}

struct Messages {
  int64_t min_ns = 20'000, max_ns = 120'000;  // the time of one, the same way for both directions
  bool forward = true, backward = true;
  uint64_t seed = 1;
};

// A send after every forward (backward) and a receive that ends when it arrives. Compute cells stay: what they wait for
// is the schedule's business, so `trace` should come from a spec whose cells leave room (latency is added to them).
inline void add_messages(Trace& trace, const Messages& how, int32_t stages) {
  std::mt19937_64 random(how.seed);
  std::uniform_int_distribution<int64_t> takes(how.min_ns, how.max_ns);
  const Cells cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto part = static_cast<size_t>(cells.part[i]);
    const bool forward = cells.kind[i] == CellKind::kForward;
    if (!(forward ? how.forward : how.backward && cells.kind[i] == CellKind::kBackward)) continue;
    const int32_t to_stage = trace.parts[part].stage + (forward ? 1 : -1);
    if (to_stage < 0 || to_stage >= stages) continue;
    for (size_t p = 0; p < trace.parts.size(); ++p) {
      if (trace.parts[p].stage != to_stage || trace.parts[p].dp != trace.parts[part].dp) continue;
      const int64_t end = cells.end_ns[i] + takes(random);
      trace.cells.add({cells.step[i], cells.part[i], forward ? CellKind::kSendForward : CellKind::kSendBackward, 0,
                       cells.micro_batch[i], cells.end_ns[i], end - how.min_ns / 2, kNoSlice});
      trace.cells.add({cells.step[i], static_cast<int32_t>(p),
                       forward ? CellKind::kRecvForward : CellKind::kRecvBackward, 0, cells.micro_batch[i],
                       cells.end_ns[i] - 1'000'000, end, kNoSlice});
    }
  }
  trace.cells.sort();
}

// One collective a step over the replicas of each stage: ends everywhere 10 to 30 µs after the last one came.
inline void add_collectives(Trace& trace, const std::string& name, uint64_t seed, bool shared = true) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> late(0, 3'000'000), takes(10'000, 30'000);
  const auto steps = step_ranges(trace.cells);
  std::vector<Cell> added;
  for (const StepRange& step : steps) {
    int64_t end = INT64_MIN;
    for (size_t i = step.begin; i < step.end; ++i) end = std::max(end, trace.cells.end_ns[i]);
    std::vector<int64_t> starts;
    int64_t last = INT64_MIN;
    for (size_t p = 0; p < trace.parts.size(); ++p) {
      starts.push_back(end + (shared ? 0 : static_cast<int64_t>(random() % 40) * 1'000'000) + late(random));
      last = std::max<int64_t>(last, starts.back());
    }
    for (size_t p = 0; p < trace.parts.size(); ++p)
      added.push_back({step.step, static_cast<int32_t>(p), CellKind::kCollective, 0, kUnknown, starts[p],
                       (shared ? last : starts[p]) + takes(random), kNoSlice});
  }
  for (const Cell& cell : added) add_named_cell(trace, cell, name);
  trace.cells.sort();
}

struct Clock {
  double offset_ns = 0, drift = 0;
  double jump_ns = 0;
  int64_t jump_at_ns = INT64_MAX;  // true time
};

// Stamps as each part's clock writes them: local = t + offset + drift · (t − middle).
inline void disturb(Trace& trace, const std::vector<Clock>& clocks, int64_t middle_ns) {
  const auto local = [&](const Clock& c, int64_t t) {
    const double by = c.offset_ns + c.drift * static_cast<double>(t - middle_ns) + (t >= c.jump_at_ns ? c.jump_ns : 0);
    return t + std::llround(by);
  };
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Clock& clock = clocks[trace.cells.part[i]];
    trace.cells.start_ns[i] = local(clock, trace.cells.start_ns[i]);
    trace.cells.end_ns[i] = std::max<int64_t>(trace.cells.start_ns[i], local(clock, trace.cells.end_ns[i]));
  }
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    Slices& slices = trace.parts[p].slices;
    for (int64_t& start : slices.start_ns) start = local(clocks[p], start);
  }
  trace.cells.sort();
  trace.clock = ClockState::kUnaligned;
  link_cells(trace);
}

inline std::vector<Clock> random_clocks(size_t count, uint64_t seed, double offset_ns = 5e7, double drift = 4e-5) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> one(-1, 1);
  std::vector<Clock> clocks;
  for (size_t i = 0; i < count; ++i) {
    const double offset = offset_ns * one(random);
    clocks.push_back({offset, drift * one(random), 0, INT64_MAX});
  }
  return clocks;
}

}  // namespace stageline::testing
