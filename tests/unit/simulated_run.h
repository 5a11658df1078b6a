// Runs of the simulator as traces that are ready to be analysed.
#pragma once

#include <doctest/doctest.h>

#include <utility>

#include "pipeline/cells/link_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"

namespace stageline {

inline Schedule schedule_of(const char* name, int32_t stages, int32_t micro_batches) {
  const ScheduleDef* def = find_schedule(name);
  REQUIRE(def != nullptr);
  Result<Schedule> schedule =
      make_schedule(name, {.stages = stages, .micro_batches = micro_batches, .chunks = def->default_chunks});
  REQUIRE(schedule);
  return std::move(*schedule);
}

inline Trace simulated(SimulateOptions o) {
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

}  // namespace stageline
