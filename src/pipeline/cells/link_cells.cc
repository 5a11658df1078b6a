#include "pipeline/cells/link_cells.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/parallel.h"

namespace stageline {
namespace {

enum class Direction : uint8_t { kDown, kUp };

// A cell as a stop on the way of its micro-batch, which begins and ends in one step. When stops are sorted by (way,
// vstage), neighbours on a way stand side by side. So a step takes one sort and one sweep, and steps are done in
// parallel.
struct Stop {
  int32_t dp, position, micro_batch;
  Direction direction;
  int32_t vstage;
  uint32_t cell;

  auto way() const { return std::tie(dp, position, direction, micro_batch); }
};

// Returns each part's position among the parts of its (dp, stage), in rank order; this is its tensor-parallel index.
std::vector<int32_t> positions_in_stage(const std::vector<Part>& parts) {
  std::vector<int32_t> position(parts.size());
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (size_t p = 0; p < parts.size(); ++p) position[p] = seen[{parts[p].dp, parts[p].stage}]++;
  return position;
}

// Returns the stops of the cells of one step; `shape` says which virtual stages a micro-batch passes.
std::vector<Stop> stops_of(const Trace& trace, const Schedule& shape, const std::vector<int32_t>& position,
                           const StepRange& step) {
  const Cells& cells = trace.cells;
  std::vector<Stop> stops;
  if (step.step == kUnknown) return stops;
  for (size_t i = step.begin; i < step.end; ++i) {
    const CellKind kind = cells.kind[i];
    const bool down = kind == CellKind::kForward || kind == CellKind::kForwardBackward;
    const bool up = is_backward(kind) || kind == CellKind::kForwardBackward;
    const auto part_index = static_cast<size_t>(cells.part[i]);
    const Part& part = trace.parts[part_index];
    if ((!down && !up) || cells.micro_batch[i] == kUnknown || part.stage == kUnknown) continue;
    const int32_t chunk = trace.chunks_are_pieces ? 0 : std::max(cells.chunk[i], 0);
    if ((int64_t{chunk} + 1) * shape.sizes.stages > INT32_MAX) continue;  // no model has so many virtual stages
    const int32_t vstage = virtual_stage(shape, part.stage, chunk);
    Stop stop{part.dp, position[part_index], cells.micro_batch[i], Direction::kDown, vstage, static_cast<uint32_t>(i)};
    if (down) stops.push_back(stop);
    stop.direction = Direction::kUp;
    if (up) stops.push_back(stop);
  }
  std::sort(stops.begin(), stops.end(), [&](const Stop& a, const Stop& b) {
    if (a.way() != b.way()) return a.way() < b.way();
    if (a.vstage != b.vstage) return a.vstage < b.vstage;
    // Read once, as the two lie far apart in memory.
    const int64_t a_start = cells.start_ns[a.cell], b_start = cells.start_ns[b.cell];
    return std::tie(a_start, a.cell) < std::tie(b_start, b.cell);
  });
  return stops;
}

// Calls take(from, to) for every pair of neighbours, as the header defines them.
template <class Take>
void for_each_link(const Cells& cells, const std::vector<Stop>& stops, Take take) {
  struct Place {  // all pieces of one job
    const Stop* key = nullptr;
    uint32_t first = 0, last = 0;  // cells: the first to start, the last to end
  };
  Place before;
  for (size_t i = 0; i < stops.size();) {
    Place place{&stops[i], stops[i].cell, stops[i].cell};
    for (; i < stops.size() && stops[i].way() == place.key->way() && stops[i].vstage == place.key->vstage; ++i)
      if (cells.end_ns[stops[i].cell] > cells.end_ns[place.last]) place.last = stops[i].cell;
    if (before.key && before.key->way() == place.key->way() && before.key->vstage + 1 == place.key->vstage) {
      if (place.key->direction == Direction::kDown) {
        take(before.last, place.first);
      } else {
        take(place.last, before.first);
      }
    }
    before = place;
  }
}

// Calls take(step, from, to) for every link of every step. Links of one step come in order; several steps run at the
// same time.
template <class Take>
void for_each_link(const Trace& trace, const Extent& extent, ChunkLayout layout, const std::vector<StepRange>& steps,
                   const Take& take) {
  Schedule shape;  // filled as far as virtual_stage() needs it
  shape.sizes.stages = std::max(extent.stage_count, trace.pipeline_stages);
  shape.layout = layout;
  const std::vector<int32_t> position = positions_in_stage(trace.parts);
  parallel_for(steps.size(), [&](size_t s) {
    for_each_link(trace.cells, stops_of(trace, shape, position, steps[s]),
                  [&](uint32_t from, uint32_t to) { take(s, from, to); });
  });
}

// Counts links whose successor starts no earlier than its predecessor ends.
size_t causal_links(const Trace& trace, const Extent& extent, ChunkLayout layout) {
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  std::vector<size_t> counts(steps.size(), 0);
  for_each_link(trace, extent, layout, steps, [&](size_t step, uint32_t from, uint32_t to) {
    const Cells& cells = trace.cells;
    counts[step] +=
        trace.common_ns(cells.part[to], cells.start_ns[to]) >= trace.common_ns(cells.part[from], cells.end_ns[from]);
  });
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

}  // namespace

ChunkLayout guess_chunk_layout(const Trace& trace) {
  const Extent extent = extent_of(trace);
  if (extent.chunk_count < 2 || trace.chunks_are_pieces || extent.stage_count < 2 || !trace.comparable())
    return ChunkLayout::kLoop;
  const bool v = causal_links(trace, extent, ChunkLayout::kV) > causal_links(trace, extent, ChunkLayout::kLoop);
  return v ? ChunkLayout::kV : ChunkLayout::kLoop;
}

void link_cells(Trace& trace) {
  trace.links.clear();
  const Extent extent = extent_of(trace);
  if (extent.stage_count < 1 || extent.micro_batch_count < 1) return;
  assert(std::is_sorted(trace.cells.step.begin(), trace.cells.step.end()));
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  std::vector<std::vector<Link>> links(steps.size());
  for_each_link(trace, extent, guess_chunk_layout(trace), steps, [&](size_t step, uint32_t from, uint32_t to) {
    if (from != to) links[step].push_back({from, to});
  });
  parallel_for(steps.size(), [&](size_t step) {
    std::sort(links[step].begin(), links[step].end(), [](const Link& a, const Link& b) {
      return std::tie(a.from_cell, a.to_cell) < std::tie(b.from_cell, b.to_cell);
    });
  });
  size_t count = 0;
  for (const std::vector<Link>& of_step : links) count += of_step.size();
  trace.links.reserve(count);
  // Both ends of a link lie in one step, so the steps' links one after another are in order.
  for (const std::vector<Link>& of_step : links) trace.links.insert(trace.links.end(), of_step.begin(), of_step.end());
}

}  // namespace stageline
