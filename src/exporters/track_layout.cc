#include "exporters/track_layout.h"

#include "exporters/slice_names.h"

namespace stageline {
namespace {

std::string numbered(const std::string& name, size_t row) {
  return row == 0 ? name : name + " (" + std::to_string(row + 1) + ")";
}

std::string track_name(const Part& part, int lane, bool with_dp) {
  std::string name = "rank " + std::to_string(part.rank);
  if (lane != 0) name += " · " + std::string(lane_name(lane));
  else if (part.stage != kUnknown) name += " · stage " + std::to_string(part.stage);
  if (with_dp && part.dp != kUnknown) name += " · dp " + std::to_string(part.dp);
  return name;
}

std::string process_name(const Part& part, bool machines_known) {
  if (!part.machine_name.empty()) return valid_utf8(part.machine_name);
  if (part.machine != kUnknown) return "machine " + std::to_string(part.machine);
  return machines_known ? "other ranks" : "ranks";
}

// Cells grouped by (part, lane), each group in start order. offsets[part * kLaneCount + lane] is the begin of a group.
struct Groups {
  std::vector<uint32_t> cells;
  std::vector<size_t> offsets;
};

Groups group_by_lane(const Trace& trace) {
  const Cells& cells = trace.cells;
  const auto group_of = [&](size_t i) {
    return static_cast<size_t>(cells.part[i]) * kLaneCount + kind_lane(cells.kind[i]);
  };
  Groups groups;
  groups.offsets.assign(trace.parts.size() * kLaneCount + 1, 0);
  for (size_t i = 0; i < cells.size(); ++i) ++groups.offsets[group_of(i) + 1];
  std::partial_sum(groups.offsets.begin(), groups.offsets.end(), groups.offsets.begin());
  groups.cells.resize(cells.size());
  std::vector<size_t> next = groups.offsets;
  for (uint32_t i = 0; i < cells.size(); ++i) groups.cells[next[group_of(i)]++] = i;
  const auto earlier = [&](uint32_t a, uint32_t b) {
    return std::tuple(cells.start_ns[a], shown_end_ns(cells, b), a) <
           std::tuple(cells.start_ns[b], shown_end_ns(cells, a), b);
  };
  for (size_t g = 0; g + 1 < groups.offsets.size(); ++g) {
    const auto begin = groups.cells.begin() + groups.offsets[g];
    const auto end = groups.cells.begin() + groups.offsets[g + 1];
    if (!std::is_sorted(begin, end, earlier)) std::sort(begin, end, earlier);
  }
  return groups;
}

// Returns the end of the time that a cell occupies. An instant occupies its whole nanosecond, because viewers would
// nest a slice that starts where an instant stands.
int64_t occupied_end_ns(const Cells& cells, size_t i) {
  return std::max(shown_end_ns(cells, i), cells.start_ns[i] + 1);
}

// Appends the tracks of one (part, lane), with its cells divided into rows.
void add_lane_tracks(const Trace& trace, const uint32_t* first, const uint32_t* last, Track track,
                     TrackLayout& layout) {
  const Cells& cells = trace.cells;
  // One row is nearly always enough, so this is checked before rows are made.
  bool overlap = false;
  for (const uint32_t* i = first; i + 1 < last && !overlap; ++i)
    overlap = cells.start_ns[i[1]] < occupied_end_ns(cells, i[0]);
  if (!overlap) {
    track.begin = layout.cells.size();
    layout.cells.insert(layout.cells.end(), first, last);
    track.end = layout.cells.size();
    layout.tracks.push_back(std::move(track));
    return;
  }
  std::vector<int64_t> start_ns, end_ns;
  for (const uint32_t* i = first; i < last; ++i) {
    start_ns.push_back(cells.start_ns[*i]);
    end_ns.push_back(occupied_end_ns(cells, *i));
  }
  std::vector<int> row;
  // One row more than is shown: it takes the cells that have no place.
  const int rows = assign_rows(start_ns, end_ns, row, kMaxRowsPerLane + 1);
  const std::string name = track.name;
  for (int r = 0; r < std::min(rows, kMaxRowsPerLane); ++r) {
    track.name = numbered(name, r);
    track.begin = layout.cells.size();
    for (size_t k = 0; k < row.size(); ++k)
      if (row[k] == r) layout.cells.push_back(first[k]);
    track.end = layout.cells.size();
    layout.tracks.push_back(track);
  }
  layout.cells_left_out += std::ranges::count(row, kMaxRowsPerLane);
}

void add_steps(const Cells& cells, TrackLayout& layout) {
  std::map<int32_t, StepSlice> steps;
  StepSlice* at = nullptr;  // cells come step by step, so the step is looked up only when it changes
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] == kUnknown) continue;
    if (!at || at->step != cells.step[i])
      at = &steps.try_emplace(cells.step[i], StepSlice{cells.step[i], cells.start_ns[i], cells.start_ns[i], 0})
                .first->second;
    at->start_ns = std::min(at->start_ns, cells.start_ns[i]);
    at->end_ns = std::max(at->end_ns, shown_end_ns(cells, i));
  }
  for (const auto& [number, step] : steps) layout.steps.push_back(step);
  std::ranges::sort(layout.steps, [](const StepSlice& a, const StepSlice& b) {
    return std::tie(a.start_ns, a.step) < std::tie(b.start_ns, b.step);
  });
  std::vector<int64_t> start_ns, end_ns;
  for (const StepSlice& step : layout.steps) {
    start_ns.push_back(step.start_ns);
    end_ns.push_back(std::max(step.end_ns, step.start_ns + 1));
  }
  // There are few steps, and no real job has steps that overlap deeply. So there are as many rows as needed.
  std::vector<int> row;
  const int rows = assign_rows(start_ns, end_ns, row, INT32_MAX);
  for (size_t k = 0; k < row.size(); ++k) layout.steps[k].row = row[k];
  for (int r = 0; r < rows; ++r) layout.step_tracks.push_back({numbered("steps", r), 0});
}

}  // namespace

TrackLayout lay_out_tracks(const Trace& trace) {
  TrackLayout layout;
  layout.extent = extent_of(trace);
  add_steps(trace.cells, layout);

  // Machines come in order, ranks in order within a machine, and ranks without a machine last.
  int32_t last_machine = max_over<int32_t>(trace.parts, &Part::machine, kUnknown);
  const bool machines_known = last_machine != kUnknown;
  const auto place = [&](uint32_t p) {
    const Part& part = trace.parts[p];
    return std::tuple(part.machine == kUnknown ? last_machine + 1 : part.machine, part.rank, p);
  };
  auto order = indexes<uint32_t>(trace.parts.size());
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return place(a) < place(b); });

  const Groups groups = group_by_lane(trace);
  layout.cells.reserve(groups.cells.size());
  for (const uint32_t p : order) {
    const Part& part = trace.parts[p];
    const uint32_t pid = std::get<0>(place(p)) + 1;
    for (int lane = 0; lane < kLaneCount; ++lane) {
      const size_t g = size_t{p} * kLaneCount + lane;
      const uint32_t* first = groups.cells.data() + groups.offsets[g];
      const uint32_t* last = groups.cells.data() + groups.offsets[g + 1];
      if (first == last) continue;
      if (layout.processes.empty() || layout.processes.back().pid != pid)
        layout.processes.push_back({process_name(part, machines_known), pid, layout.tracks.size(), 0});
      add_lane_tracks(trace, first, last, {track_name(part, lane, layout.extent.dp_count > 1), pid, 0, p, 0, 0},
                      layout);
      layout.processes.back().end = layout.tracks.size();
    }
  }
  layout.step_pid = layout.processes.empty() ? 1 : layout.processes.back().pid + 1;
  uint32_t tid = layout.step_pid;
  for (StepTrack& track : layout.step_tracks) track.tid = ++tid;
  for (Track& track : layout.tracks) track.tid = ++tid;
  return layout;
}

}  // namespace stageline
