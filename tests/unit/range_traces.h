// Traces of mstx ranges as a schedule would leave them, timed by replay: a host range and its device interval a row.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/range_rows.h"
#include "pipeline/replay/replay.h"
#include "schedules/registry.h"

namespace stageline::testing {

struct MadeRange {
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // on the device
  int32_t micro_batch = kUnknown, chunk = kUnknown;
  ExpectedRow truth = {};  // of work: what it is
  int32_t step = 0;
  bool on_device = true;
};

struct RangeRun {
  Schedule schedule;
  std::vector<std::vector<MadeRange>> stages;  // by start
  int64_t step_ns = 0;
};

inline const char* range_name(CellKind kind) {
  return kind == CellKind::kForward           ? "forward_step"
         : kind == CellKind::kForwardBackward ? "forward_backward_overlaping"
         : kind == CellKind::kWeightGrad      ? "WeightGradStore.pop"
                                              : "backward_step";
}

// `steps` steps of a schedule; nothing says micro-batches or chunks.
inline RangeRun make_ranges(const char* name, const ScheduleSizes& sizes, int steps) {
  auto schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  const UnitCosts costs{8'000'000, 8'000'000, 8'000'000, 16'000'000, 22'000'000, 300'000};
  ReplayCosts how;
  how.cell_ns = [&](int32_t rank, const ScheduleCell& cell) { return costs.of(cell) + rank * 10'000; };
  how.latency_ns = 300'000;
  auto times = replay(*schedule, how);
  REQUIRE(times);
  RangeRun run{*schedule, {}, 0};
  for (const auto& rank : *times) run.step_ns = std::max(run.step_ns, rank.back().end_ns + 20'000'000);
  run.stages.resize(times->size());
  for (int step = 0; step < steps; ++step)
    for (size_t r = 0; r < times->size(); ++r) {
      const auto rows = expected_rows(RowHypothesis{.schedule = *schedule, .stages = {}}, static_cast<int32_t>(r));
      for (size_t i = 0; i < rows.size(); ++i)
        run.stages[r].push_back({range_name(rows[i].kind), (*times)[r][i].start_ns + step * run.step_ns,
                                 (*times)[r][i].end_ns + step * run.step_ns, kUnknown, kUnknown, rows[i], step});
    }
  return run;
}

inline void add_slice(Part& part, int64_t start, int64_t dur, StringId name, uint8_t category, uint32_t partner) {
  Slices& s = part.slices;
  s.file_index.push_back(static_cast<uint32_t>(s.size()));
  s.start_ns.push_back(start);
  s.dur_ns.push_back(dur);
  s.name_id.push_back(name);
  s.parent.push_back(kNoSliceIndex);
  s.correlation.push_back(kNoCorrelation);
  s.partner.push_back(partner);
  s.args_offset_low.push_back(0);
  s.args_offset_high.push_back(0);
  s.stream_id.push_back(0);
  s.step.push_back(0);
  s.category_id.push_back(category);
  s.kernel_class.push_back(0);
}

// Makes one part per stage, all on one clock. `step_time`: with STEP_TIME rows.
inline Trace range_trace(const RangeRun& run, bool step_time) {
  Trace trace;
  trace.format = "ascend";
  trace.device_family = DeviceFamily::kNpu;
  trace.numbers_messages_per_rank = true;
  trace.clock = ClockState::kShared;
  trace.categories = {{"mstx", Category::kUserAnnotation}, {"mstx_device", Category::kGpuAnnotation}};
  const StringId domain = trace.names.intern("default");
  for (size_t r = 0; r < run.stages.size(); ++r) {
    Part part;
    part.rank = static_cast<int32_t>(r);
    part.event_count = 1;
    const auto count = static_cast<uint32_t>(run.stages[r].size());
    std::map<int, std::pair<int64_t, int64_t>> steps;
    for (const bool device : {false, true})
      for (uint32_t i = 0; i < count; ++i) {
        const MadeRange& range = run.stages[r][i];
        const StringId name = trace.names.intern(range.name);
        const int64_t host = range.start_ns - 5'000'000;
        add_slice(part, device ? range.start_ns : host, device ? range.end_ns - range.start_ns : 100'000, name,
                  device ? 1 : 0,
                  !range.on_device ? kNoSliceIndex
                  : device         ? i
                                   : count + i);
        if (device) continue;
        part.ranges.push_back({i, name, domain, range.micro_batch, range.chunk, kUnknown, kUnknown});
        auto& [first, last] = steps.try_emplace(range.step, host, host).first->second;
        first = std::min(first, host);
        last = std::max(last, host + 100'001);
      }
    part.lanes = {{"thread 1", 0, count, LaneKind::kHostThread},
                  {"stream 2", count, 2 * count, LaneKind::kDeviceStream}};
    for (const auto& [number, range] : steps)
      if (step_time) part.steps.push_back({number + 10, range.first, range.second, kNoSliceIndex});
    trace.parts.push_back(std::move(part));
  }
  return trace;
}

// Groups and sizes as Ascend's META_DATA gives them: one pipeline of all ranks, in their order.
inline void say_pipeline(Trace& trace) {
  std::string ranks;
  for (const Part& part : trace.parts) ranks += (ranks.empty() ? "" : ", ") + std::to_string(part.rank);
  for (Part& part : trace.parts)
    part.metadata.push_back(
        {"parallel_group_info", R"({"group_name_0": {"group_name": "pp", "global_ranks": [)" + ranks + "]}}"});
}

}  // namespace stageline::testing
