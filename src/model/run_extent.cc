#include "model/run_extent.h"

#include "model/torch_facts.h"

namespace stageline {

int32_t micro_batches_per_step(const Trace& trace) {
  const Cells& cells = trace.cells;
  int64_t highest = max_over<int64_t>(cells.micro_batch, [&](const int32_t label) { return int64_t{label} + 1; });
  std::map<size_t, int64_t> counts;  // number of micro-batches → number of steps with it
  std::vector<int32_t> labels;
  std::vector<size_t> seen;  // for each label, where the last step that had it begins
  if (highest > 0 && static_cast<size_t>(highest) <= cells.size() + 64) seen.assign(highest, SIZE_MAX);
  for (size_t i = 0; i < cells.size();) {
    const int32_t step = cells.step[i];
    const size_t begin = i;
    size_t different = 0;
    labels.clear();
    for (; i < cells.size() && cells.step[i] == step; ++i) {
      const int32_t label = cells.micro_batch[i];
      if (label < 0) continue;
      if (seen.empty()) {
        labels.push_back(label);
      } else if (seen[label] != begin) {
        seen[label] = begin;
        ++different;
      }
    }
    std::ranges::sort(labels);
    if (seen.empty()) different = std::unique(labels.begin(), labels.end()) - labels.begin();
    if (step != kUnknown && different > 0) ++counts[different];
  }
  int32_t best = 0;
  int64_t max = 0;
  for (const auto& [count, steps] : counts)
    if (steps >= max) best = static_cast<int32_t>(count), max = steps;
  return best;
}

MicroBatchRange micro_batch_range(const Trace& trace) {
  const Cells& cells = trace.cells;
  MicroBatchRange range;
  std::vector<int32_t> forwards(trace.parts.size(), 0);  // of the step looked at
  for (size_t i = 0; i < cells.size();) {
    const int32_t step = cells.step[i];
    std::ranges::fill(forwards, 0);
    for (; i < cells.size() && cells.step[i] == step; ++i) {
      const size_t part = cells.part[i];
      const bool forward = cells.kind[i] == CellKind::kForward || cells.kind[i] == CellKind::kForwardBackward;
      forwards[part] += forward && cells.chunk[i] <= 0 && trace.parts[part].stage == 0;
    }
    if (step == kUnknown) continue;
    int32_t min = INT32_MAX, max = 0;
    for (const int32_t count : forwards)
      if (count > 0) min = std::min(min, count), max = std::max(max, count);
    if (max == 0) continue;
    range.between_ranks = range.between_ranks || min < max;
    range.min = range.max == 0 ? min : std::min(range.min, min);
    range.max = std::max(range.max, max);
  }
  return range;
}

int64_t step_count_of(const Trace& trace) {
  if (trace.cells.size() > 0) return extent_of(trace).step_count;
  return count_slices(trace).steps.size();
}

int64_t recording_ns(const Trace& trace) {
  const bool profiled = std::ranges::any_of(trace.parts, [](const Part& part) { return part.event_count > 0; });
  if (trace.cells.size() > 0 && !profiled) {
    const Extent extent = extent_of(trace);
    return between_ns(extent.start_ns, extent.end_ns);
  }
  const SliceCounts counts = count_slices(trace);
  return between_ns(counts.start_ns, counts.end_ns);
}

int64_t axis_zero_ns(const Trace& trace) {
  int64_t first = INT64_MAX;
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) first = std::min(first, trace.common_ns(cells.part[i], cells.start_ns[i]));
  for (size_t p = 0; p < trace.parts.size() && cells.size() == 0; ++p)
    for (const Lane& lane : trace.parts[p].lanes)
      if (lane.begin < lane.end)
        first = std::min(first, trace.common_ns(static_cast<int32_t>(p), trace.parts[p].slices.start_ns[lane.begin]));
  return first == INT64_MAX ? 0 : first;
}

LinkMachines link_machines(const Trace& trace, int32_t stage, int32_t other_stage) {
  std::map<int32_t, std::pair<int32_t, int32_t>> machines;  // for each replica those of both stages
  for (const Part& part : trace.parts) {
    if (part.stage != stage && part.stage != other_stage) continue;
    auto& [one, other] = machines.try_emplace(part.dp, kUnknown, kUnknown).first->second;
    (part.stage == stage ? one : other) = part.machine;
  }
  bool known = !machines.empty();
  for (const auto& [replica, both] : machines) {
    const bool own = both.first != kUnknown && both.second != kUnknown;
    if (own && both.first != both.second) return LinkMachines::kSeveral;
    known = known && own;
  }
  return known ? LinkMachines::kSame : LinkMachines::kUndecided;
}

bool of_hosts_alone(const Trace& trace) {
  bool facts = false;
  for (const Part& part : trace.parts) {
    facts |= !part.slices.category_id.empty();
    if (std::ranges::any_of(part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; }))
      return false;
  }
  return facts;
}

}  // namespace stageline
