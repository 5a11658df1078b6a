#include "pipeline/cells/link_cells.h"

#include "base/parallel.h"

namespace stageline {
namespace {

enum class Direction : uint8_t { kDown, kUp };

// A cell as a stop on the way of its micro-batch, which starts and ends in one step on ranks of one replica and
// position. The stops of a step are first grouped by replica and position, by counting. Each such group is sorted by
// itself, so that it stays in the processor's cache. Example: with 10 000 ranks a step has 600 000 stops, and a group
// of 16 stages a thousand. Then neighbours on a way are adjacent, and one sweep finds them. Steps are done in parallel.
struct Stop {
  uint64_t key;  // direction, micro-batch, virtual stage, from the highest bits to the lowest
  uint32_t cell;

  static constexpr int kStageBits = 31;
  static uint64_t key_of(Direction direction, int32_t micro_batch, int32_t vstage) {
    return static_cast<uint64_t>(direction) << 63 |
           static_cast<uint64_t>(static_cast<uint32_t>(micro_batch)) << kStageBits | vstage;
  }
  int32_t vstage() const { return static_cast<int32_t>(key & ((uint64_t{1} << kStageBits) - 1)); }
  Direction direction() const { return static_cast<Direction>(key >> 63); }
  uint64_t way() const { return key >> kStageBits; }
};

// Returns whether b follows a in the model.
bool follows(const Stop& a, const Stop& b) { return a.key + 1 == b.key; }

// For each part the number of its group: its replica, and its position among the parts of its (replica, stage) in rank
// order, which is its tensor-parallel index.
struct Groups {
  std::vector<uint32_t> of_part;
  size_t count = 0;
};

Groups groups_of(const std::vector<Part>& parts) {
  Groups groups;
  groups.of_part.resize(parts.size());
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  std::map<std::pair<int32_t, int32_t>, uint32_t> number;
  for (size_t p = 0; p < parts.size(); ++p) {
    const int32_t position = seen[{parts[p].dp, parts[p].stage}]++;
    groups.of_part[p] = number.try_emplace({parts[p].dp, position}, static_cast<uint32_t>(number.size())).first->second;
  }
  groups.count = number.size();
  return groups;
}

// Calls take(group, stop) for the stops of the cells of one step; `shape` gives the virtual stages that each
// micro-batch passes.
template <class Take>
void for_each_stop(const Trace& trace, const Schedule& shape, const Groups& groups, const StepRange& step,
                   const Take& take) {
  const Cells& cells = trace.cells;
  for (uint32_t i = step.begin; i < step.end; ++i) {
    const CellKind kind = cells.kind[i];
    const bool down = kind == CellKind::kForward || kind == CellKind::kForwardBackward;
    const bool up = is_backward(kind) || kind == CellKind::kForwardBackward;
    const size_t part_index = cells.part[i];
    const Part& part = trace.parts[part_index];
    if ((!down && !up) || cells.micro_batch[i] == kUnknown || part.stage == kUnknown) continue;
    const int32_t chunk = trace.chunks_are_pieces ? 0 : std::max(cells.chunk[i], 0);
    if ((int64_t{chunk} + 1) * shape.sizes.stages > INT32_MAX) continue;  // no model has this number of virtual stages
    const int32_t vstage = virtual_stage(shape, part.stage, chunk);
    assert(vstage >= 0);
    const auto add = [&](Direction direction) {
      take(groups.of_part[part_index], Stop{Stop::key_of(direction, cells.micro_batch[i], vstage), i});
    };
    if (down) add(Direction::kDown);
    if (up) add(Direction::kUp);
  }
}

// Calls take(from, to) for every pair of neighbours in a sorted group, as the header defines them. The function
// next_to(a, b) decides whether two stops of one way, one behind the other in the group, are neighbours.
template <class NextTo, class Take>
void for_each_neighbour(const Cells& cells, const Stop* begin, const Stop* end, const NextTo& next_to,
                        const Take& take) {
  struct Place {  // all pieces of one job
    const Stop* key = nullptr;
    uint32_t first = 0, last = 0;  // cells: the first to start, the last to end
  };
  Place before;
  for (const Stop* stop = begin; stop < end;) {
    Place place{stop, stop->cell, stop->cell};
    for (; stop < end && stop->key == place.key->key; ++stop)
      if (cells.end_ns[stop->cell] > cells.end_ns[place.last]) place.last = stop->cell;
    if (before.key && before.key->way() == place.key->way() && next_to(*before.key, *place.key)) {
      if (place.key->direction() == Direction::kDown) take(before.last, place.first);
      else take(place.last, before.first);
    }
    before = place;
  }
}

// Calls take(begin, end) for every sorted group of stops of one step.
template <class Take>
void for_each_group(const Trace& trace, const Schedule& shape, const Groups& groups, const StepRange& step,
                    const Take& take) {
  if (step.step == kUnknown) return;
  const Cells& cells = trace.cells;
  std::vector<size_t> ends(groups.count + 1);  // a group's end, once all its stops are placed
  for_each_stop(trace, shape, groups, step, [&](uint32_t group, const Stop&) { ++ends[group + 1]; });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Stop> stops(ends.back());
  for_each_stop(trace, shape, groups, step, [&](uint32_t group, const Stop& stop) { stops[ends[group]++] = stop; });
  size_t begin = 0;
  for (size_t group = 0; group < groups.count; ++group) {
    Stop* const first = stops.data() + begin;
    Stop* const last = stops.data() + ends[group];
    std::sort(first, last, [&](const Stop& a, const Stop& b) {
      if (a.key != b.key) return a.key < b.key;
      return std::pair(cells.start_ns[a.cell], a.cell) < std::pair(cells.start_ns[b.cell], b.cell);
    });
    take(first, last);
    begin = ends[group];
  }
}

// Calls take(step, begin, end) for every sorted group of every step. Several steps run at the same time.
template <class Take>
void for_each_group(const Trace& trace, const Extent& extent, ChunkLayout layout, const std::vector<StepRange>& steps,
                    const Take& take) {
  Schedule shape;  // filled as far as virtual_stage() needs it
  shape.sizes.stages = std::max(extent.stage_count, trace.pipeline_stages);
  shape.layout = layout;
  const Groups groups = groups_of(trace.parts);
  parallel_for(steps.size(), [&](size_t s) {
    for_each_group(trace, shape, groups, steps[s], [&](const Stop* begin, const Stop* end) { take(s, begin, end); });
  });
}

// Calls take(step, from, to) for every link of every step.
template <class Take>
void for_each_link(const Trace& trace, const Extent& extent, ChunkLayout layout, const std::vector<StepRange>& steps,
                   const Take& take) {
  for_each_group(trace, extent, layout, steps, [&](size_t step, const Stop* begin, const Stop* end) {
    for_each_neighbour(trace.cells, begin, end, follows, [&](uint32_t from, uint32_t to) { take(step, from, to); });
  });
}

// Puts the links of one step in order, (from, to). They are placed by counting; those that leave one cell, mostly one,
// are then sorted.
void sort_links(std::vector<Link>& links, const StepRange& step) {
  std::vector<uint32_t> ends(step.end - step.begin + 1);
  for (const Link& link : links) ++ends[link.from_cell - step.begin + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Link> sorted(links.size());
  for (const Link& link : links) sorted[ends[link.from_cell - step.begin]++] = link;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    if (end - begin > 1)
      std::sort(sorted.begin() + begin, sorted.begin() + end,
                [](const Link& a, const Link& b) { return a.to_cell < b.to_cell; });
    begin = end;
  }
  links = std::move(sorted);
}

// Measures how well a layout of chunks explains the times.
struct Explained {
  size_t round_trips = 0, links = 0;
  auto operator<=>(const Explained&) const = default;
};

// Counts the round trips that had time enough: between two cells of one micro-batch on one rank, all cells of the way
// between them run one after another. Both timestamps are of one clock, and lengths are of any, so no clock has to
// agree with another.
//
//     rank 0   │ F0 chunk 0 │ F1 chunk 0 │                          │ F0 chunk 1 │    a loop over three ranks takes two
//     rank 1                │ F0 chunk 0 │                                            forwards to come back to rank 0,
//     rank 2                             │ F0 chunk 0 │                               and a V four
size_t round_trips(const Cells& cells, const Stop* begin, const Stop* end) {
  struct Passed {
    const Stop* stop;
    int64_t ns;  // the way's cells until the end of this one
  };
  std::vector<Passed> way;
  size_t count = 0;
  for (const Stop* stop = begin; stop < end;) {
    way.clear();
    int64_t ns = 0;
    for (const Stop* first = stop; stop < end && stop->way() == first->way(); ++stop) {
      if (stop != first && stop[-1].key == stop->key) continue;  // the further pieces of a job
      const int64_t dur_ns = cells.dur_ns(stop->cell);
      for (const Passed& passed : way) {
        if (cells.part[passed.stop->cell] != cells.part[stop->cell]) continue;
        const bool down = stop->direction() == Direction::kDown;
        const uint32_t from = down ? passed.stop->cell : stop->cell, to = down ? stop->cell : passed.stop->cell;
        count += cells.start_ns[to] - cells.end_ns[from] >= ns - passed.ns;
      }
      ns += dur_ns;
      way.push_back({stop, ns});
    }
  }
  return count;
}

// Counts what had time enough, and, where clocks can be compared, the links whose successor starts no earlier than its
// predecessor ends.
Explained explained_by(const Trace& trace, const Extent& extent, ChunkLayout layout) {
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  std::vector<Explained> counts(steps.size());
  const Cells& cells = trace.cells;
  for_each_group(trace, extent, layout, steps, [&](size_t step, const Stop* begin, const Stop* end) {
    counts[step].round_trips += round_trips(cells, begin, end);
    if (!trace.comparable()) return;
    for_each_neighbour(cells, begin, end, follows, [&](uint32_t from, uint32_t to) {
      counts[step].links +=
          trace.common_ns(cells.part[to], cells.start_ns[to]) >= trace.common_ns(cells.part[from], cells.end_ns[from]);
    });
  });
  Explained all;
  for (const Explained& one : counts) all.round_trips += one.round_trips, all.links += one.links;
  return all;
}

// The layout by which ranks sent: chunk 0 leaves the last stage in a loop, and stays there in a V. Unknown where
// messages were not recorded with their chunks.
std::optional<ChunkLayout> layout_of_messages(const Trace& trace, int32_t stages) {
  const Cells& cells = trace.cells;
  bool sent = false, reached_last = false, left_last = false;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!is_message(cells.kind[i]) || cells.chunk[i] != 0) continue;
    const bool last = trace.parts[cells.part[i]].stage == stages - 1;
    if (cells.kind[i] == CellKind::kSendForward) (last ? left_last : sent) = true;
    reached_last = reached_last || (last && cells.kind[i] == CellKind::kRecvForward);
  }
  if (left_last) return ChunkLayout::kLoop;
  return sent && reached_last ? std::optional(ChunkLayout::kV) : std::nullopt;
}

}  // namespace

ChunkLayout guess_chunk_layout(const Trace& trace) {
  const Extent extent = extent_of(trace);
  if (extent.chunk_count < 2 || trace.chunks_are_pieces || extent.stage_count < 2) return ChunkLayout::kLoop;
  if (const auto sent = layout_of_messages(trace, std::max(extent.stage_count, trace.pipeline_stages))) return *sent;
  const bool v = explained_by(trace, extent, ChunkLayout::kV) > explained_by(trace, extent, ChunkLayout::kLoop);
  return v ? ChunkLayout::kV : ChunkLayout::kLoop;
}

void link_cells(Trace& trace) {
  trace.links.clear();
  const Extent extent = extent_of(trace);
  if (extent.stage_count < 1 || extent.micro_batch_count < 1) return;
  assert(std::ranges::is_sorted(trace.cells.step));
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  std::vector<std::vector<Link>> links(steps.size());
  for_each_link(trace, extent, guess_chunk_layout(trace), steps, [&](size_t step, uint32_t from, uint32_t to) {
    if (from != to) links[step].push_back({from, to});
  });
  parallel_for(steps.size(), [&](size_t step) { sort_links(links[step], steps[step]); });
  size_t count = sum_over<size_t>(links, [&](const std::vector<Link>& of_step) { return of_step.size(); });
  trace.links.reserve(count);
  // Both ends of a link lie in one step, so the steps' links one after another are in order.
  for (const std::vector<Link>& of_step : links) trace.links.insert(trace.links.end(), of_step.begin(), of_step.end());
}

std::vector<Link> links_over_missing(const Trace& trace) {
  const Extent extent = extent_of(trace);
  const int32_t stages = std::max(extent.stage_count, trace.pipeline_stages);
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  const auto whole = [&](const StepRange& step) {
    std::set<std::pair<int32_t, int32_t>> read;
    for (size_t i = step.begin; i < step.end; ++i)
      if (const int32_t part = trace.cells.part[i]; i == step.begin || part != trace.cells.part[i - 1])
        read.emplace(trace.parts[part].dp, trace.parts[part].stage);
    return step.step == kUnknown || std::ssize(read) >= int64_t{stages} * std::max(extent.dp_count, 1);
  };
  if (stages < 3 || !trace.comparable() || std::ranges::all_of(steps, whole)) return {};
  std::vector<std::vector<Link>> links(steps.size());
  for_each_group(trace, extent, guess_chunk_layout(trace), steps, [&](size_t step, const Stop* begin, const Stop* end) {
    std::set<int32_t> present;
    for (const Stop* stop = begin; stop < end; ++stop) present.insert(stop->vstage());
    const auto over_missing = [&](const Stop& a, const Stop& b) {
      return !follows(a, b) && present.upper_bound(a.vstage()) == present.find(b.vstage());
    };
    for_each_neighbour(trace.cells, begin, end, over_missing,
                       [&](uint32_t from, uint32_t to) { links[step].push_back({from, to}); });
  });
  std::vector<Link> all;
  for (const std::vector<Link>& of_step : links) all.insert(all.end(), of_step.begin(), of_step.end());
  // Where chunks are placed differently than was guessed without the missing ranks, many of these cells begin before
  // their input.
  constexpr double kMaxEarly = 0.05;
  const Cells& cells = trace.cells;
  const auto early = std::ranges::count_if(all, [&](const Link& link) {
    return trace.common_ns(cells.part[link.to_cell], cells.start_ns[link.to_cell]) <
           trace.common_ns(cells.part[link.from_cell], cells.end_ns[link.from_cell]);
  });
  return early > kMaxEarly * all.size() ? std::vector<Link>() : all;
}

EarlyLinks early_links(const Trace& trace, int64_t beyond_ns) {
  const std::vector<Link>& links = trace.links;
  const Cells& cells = trace.cells;
  std::vector<EarlyLinks> stretches((links.size() + kStretch - 1) / kStretch);
  parallel_for(stretches.size(), [&](size_t s) {
    EarlyLinks& own = stretches[s];
    for (size_t l = s * kStretch; l < std::min(links.size(), (s + 1) * kStretch); ++l) {
      const Link& link = links[l];
      const int64_t early = trace.common_ns(cells.part[link.from_cell], cells.end_ns[link.from_cell]) -
                            trace.common_ns(cells.part[link.to_cell], cells.start_ns[link.to_cell]);
      if (early <= beyond_ns) continue;
      if (own.count++ == 0) own.first = &link;
      own.worst_ns = std::max(own.worst_ns, early);
    }
  });
  EarlyLinks all;
  for (const EarlyLinks& own : stretches) {
    if (!all.first) all.first = own.first;
    all.count += own.count;
    all.worst_ns = std::max(all.worst_ns, own.worst_ns);
  }
  return all;
}

}  // namespace stageline
