#include "pipeline/cells/link_cells.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace stageline {
namespace {

enum class Direction : uint8_t { kDown, kUp };

// A cell as a stop on the way of its micro-batch. Sorted by (way, vstage), neighbours on one way
// stand side by side, so the whole search is one sort and one sweep.
struct Stop {
  int32_t step, dp, position, micro_batch;
  Direction direction;
  int32_t vstage;
  uint32_t cell;

  auto way() const { return std::tie(step, dp, position, direction, micro_batch); }
};

// Position of each part among the parts of its (dp, stage), in rank order: the tensor-parallel index.
std::vector<int32_t> positions_in_stage(const std::vector<Part>& parts) {
  std::vector<int32_t> position(parts.size());
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (size_t p = 0; p < parts.size(); ++p) position[p] = seen[{parts[p].dp, parts[p].stage}]++;
  return position;
}

std::vector<Stop> stops_of(const Trace& trace, const Extent& extent, ChunkLayout layout) {
  Schedule shape;  // only what virtual_stage() looks at
  shape.sizes.stages = std::max(extent.stage_count, trace.pipeline_stages);
  shape.layout = layout;
  const std::vector<int32_t> position = positions_in_stage(trace.parts);
  const Cells& cells = trace.cells;
  std::vector<Stop> stops;
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellKind kind = cells.kind[i];
    const bool down = kind == CellKind::kForward || kind == CellKind::kForwardBackward;
    const bool up = is_backward(kind) || kind == CellKind::kForwardBackward;
    const auto part_index = static_cast<size_t>(cells.part[i]);
    const Part& part = trace.parts[part_index];
    if ((!down && !up) || cells.step[i] == kUnknown || cells.micro_batch[i] == kUnknown || part.stage == kUnknown)
      continue;
    const int32_t chunk = trace.chunks_are_pieces ? 0 : std::max(cells.chunk[i], 0);
    if ((int64_t{chunk} + 1) * shape.sizes.stages > INT32_MAX) continue;  // no model has as many virtual stages
    const int32_t vstage = virtual_stage(shape, part.stage, chunk);
    Stop stop{cells.step[i],    part.dp, position[part_index],    cells.micro_batch[i],
              Direction::kDown, vstage,  static_cast<uint32_t>(i)};
    if (down) stops.push_back(stop);
    stop.direction = Direction::kUp;
    if (up) stops.push_back(stop);
  }
  std::sort(stops.begin(), stops.end(), [&](const Stop& a, const Stop& b) {
    const int64_t a_start = cells.start_ns[a.cell], b_start = cells.start_ns[b.cell];
    return std::tuple(a.way(), a.vstage, a_start, a.cell) < std::tuple(b.way(), b.vstage, b_start, b.cell);
  });
  return stops;
}

// Calls take(from, to) for every pair of neighbours, as documented in the header.
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

// Links whose successor starts no earlier than its predecessor ends.
size_t causal_links(const Trace& trace, const Extent& extent, ChunkLayout layout) {
  size_t count = 0;
  for_each_link(trace.cells, stops_of(trace, extent, layout), [&](uint32_t from, uint32_t to) {
    const Cells& cells = trace.cells;
    count +=
        trace.common_ns(cells.part[to], cells.start_ns[to]) >= trace.common_ns(cells.part[from], cells.end_ns[from]);
  });
  return count;
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
  const std::vector<Stop> stops = stops_of(trace, extent, guess_chunk_layout(trace));
  for_each_link(trace.cells, stops, [&](uint32_t from, uint32_t to) {
    if (from != to) trace.links.push_back({from, to});
  });
  std::sort(trace.links.begin(), trace.links.end(), [](const Link& a, const Link& b) {
    return std::tie(a.from_cell, a.to_cell) < std::tie(b.from_cell, b.to_cell);
  });
}

}  // namespace stageline
