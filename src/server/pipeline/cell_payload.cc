#include "server/pipeline/cell_payload.h"

namespace stageline {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

template <class T>
void append_column(CellPayload& payload, const char* name, const char* type, const std::vector<T>& values) {
  payload.bytes.resize((payload.bytes.size() + 7) / 8 * 8);
  payload.columns.push_back({name, type, payload.bytes.size(), values.size()});
  payload.bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::vector<int64_t> part_zeros(const Trace& trace) {
  std::vector<int64_t> zeros(trace.parts.size(), 0);
  // Steps that were laid end to end are on one axis already, whatever clocks their ranks had.
  if (trace.clock != ClockState::kPerRank || trace.steps_laid_end_to_end) {
    std::ranges::fill(zeros, extent_of(trace).start_ns);
    return zeros;
  }
  std::vector<bool> seen(trace.parts.size());
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const size_t part = trace.cells.part[i];
    if (!seen[part] || trace.cells.start_ns[i] < zeros[part]) zeros[part] = trace.cells.start_ns[i];
    seen[part] = true;
  }
  return zeros;
}

template <class Body> void for_embedded(const CellPayload& payload, const Body& body) {
  for (const StepRange& range : payload.steps)
    for (size_t i = range.begin; i < range.end; ++i) body(i);
}

// The payload's row for a row of the trace's cells; UINT32_MAX: it is not included.
class EmbeddedRows {
 public:
  explicit EmbeddedRows(const std::vector<StepRange>& steps) : steps_(steps) {
    size_t before = 0;
    for (const StepRange& range : steps) {
      first_.push_back(before);
      before += range.end - range.begin;
    }
  }
  uint32_t of(size_t cell) const {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), cell,
                                        [](size_t value, const StepRange& range) { return value < range.end; });
    if (after == steps_.end() || cell < after->begin) return UINT32_MAX;
    return static_cast<uint32_t>(first_[after - steps_.begin()] + cell - after->begin);
  }

 private:
  const std::vector<StepRange>& steps_;
  std::vector<size_t> first_;
};

// Names get dense ids in the order of first use, so that the page carries only texts that cells need.
std::vector<uint32_t> name_ids(const Trace& trace, CellPayload& payload) {
  std::vector<uint32_t> dense(trace.names.size(), UINT32_MAX);
  dense[0] = 0;
  payload.names.emplace_back();
  std::vector<uint32_t> ids(payload.cell_count, 0);
  size_t row = 0;
  for_embedded(payload, [&](size_t i) {
    const size_t at = row++;
    if (trace.cells.slice[i] == kNoSlice) return;
    const Part& part = trace.parts[trace.cells.part[i]];
    const StringId id = part.slices.name_id[trace.cells.slice[i]];
    if (dense[id] == UINT32_MAX) {
      dense[id] = static_cast<uint32_t>(payload.names.size());
      payload.names.push_back(trace.names.text(id));
    }
    ids[at] = dense[id];
  });
  return ids;
}

// Links are sorted and stored as differences, which are numbers near zero and compress well.
void append_links(const Trace& trace, CellPayload& payload) {
  std::vector<Link> links;
  const EmbeddedRows rows(payload.steps);
  for (const Link& link : trace.links)
    if (const Link own{rows.of(link.from_cell), rows.of(link.to_cell)};
        own.from_cell != UINT32_MAX && own.to_cell != UINT32_MAX)
      links.push_back(own);
  sort_stably(links, [](const Link& a, const Link& b) {
    return a.from_cell != b.from_cell ? a.from_cell < b.from_cell : a.to_cell < b.to_cell;
  });
  std::vector<uint32_t> from_step;
  std::vector<int32_t> distance;
  uint32_t last = 0;
  for (const Link& link : links) {
    from_step.push_back(link.from_cell - last);
    distance.push_back(static_cast<int32_t>(static_cast<int64_t>(link.to_cell) - link.from_cell));
    last = link.from_cell;
  }
  payload.link_count = links.size();
  append_column(payload, "link_from_step", "u32", from_step);
  append_column(payload, "link_distance", "i32", distance);
}

// Where theory places each cell; NaN where it does not.
void append_theory(const Trace& trace, const Theory& theory, CellPayload& payload) {
  std::vector<double> start(payload.cell_count, kNaN), dur(payload.cell_count, kNaN);
  size_t row = 0;
  for_embedded(payload, [&](size_t i) {
    const size_t at = row++;
    if (!theory.has(i)) return;
    const int64_t zero = payload.part_zero_ns[trace.cells.part[i]];
    start[at] = theory.start_ns[i] - zero;
    dur[at] = theory.end_ns[i] - theory.start_ns[i];
  });
  append_column(payload, "theory_start_ns", "f64", start);
  append_column(payload, "theory_dur_ns", "f64", dur);
}

}  // namespace

bool CellPayload::has_step(int32_t step) const {
  return std::ranges::any_of(steps, [&](const StepRange& range) { return range.step == step; });
}

std::vector<StepRange> embedded_steps(const Cells& cells, size_t max_cells, const std::vector<int32_t>& first) {
  const std::vector<StepRange> all = step_ranges(cells);
  if (cells.size() <= max_cells) return all;
  std::vector<size_t> wanted;
  for (const int32_t step : first)
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].step == step) wanted.push_back(i);
  std::vector<uint8_t> chosen(all.size(), 0);
  size_t left = max_cells;
  // Chooses a step if it fits; returns whether it is among the chosen ones.
  const auto choose = [&](size_t i) {
    const size_t count = all[i].end - all[i].begin;
    if (!chosen[i] && count <= left) chosen[i] = 1, left -= count;
    return chosen[i] != 0;
  };
  for (const size_t i : wanted) choose(i);
  for (size_t i = 0; i < all.size() && choose(i); ++i) continue;
  std::vector<StepRange> out;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) out.push_back(all[i]);
  if (out.empty()) {
    const StepRange& best = all[wanted.empty() ? 0 : wanted.front()];
    out.push_back({best.step, best.begin, best.begin + max_cells});
  }
  return out;
}

CellPayload make_cell_payload(const Trace& trace, std::vector<StepRange> steps, const Theory* theory) {
  const Cells& cells = trace.cells;
  CellPayload payload;
  payload.steps = std::move(steps);
  for (const StepRange& range : payload.steps) payload.cell_count += range.end - range.begin;
  payload.part_zero_ns = part_zeros(trace);
  const size_t count = payload.cell_count;

  // This is exact: differences below 2^53 ns (104 days) are whole numbers as doubles.
  std::vector<double> start, dur;
  std::vector<uint8_t> kind;
  start.reserve(count);
  dur.reserve(count);
  kind.reserve(count);
  for_embedded(payload, [&](size_t i) {
    start.push_back(cells.start_ns[i] - payload.part_zero_ns[cells.part[i]]);
    dur.push_back(cells.dur_ns(i));
    kind.push_back(static_cast<uint8_t>(cells.kind[i]));
  });
  const auto head = [&](const std::vector<int32_t>& column) {
    std::vector<int32_t> kept;
    kept.reserve(count);
    for_embedded(payload, [&](size_t i) { kept.push_back(column[i]); });
    return kept;
  };
  append_column(payload, "start_ns", "f64", start);
  append_column(payload, "dur_ns", "f64", dur);
  append_column(payload, "step", "i32", head(cells.step));
  append_column(payload, "part", "i32", head(cells.part));
  append_column(payload, "chunk", "i32", head(cells.chunk));
  append_column(payload, "micro_batch", "i32", head(cells.micro_batch));
  append_column(payload, "name", "u32", name_ids(trace, payload));
  append_column(payload, "kind", "u8", kind);
  append_links(trace, payload);
  if (theory && theory->known()) append_theory(trace, *theory, payload);
  return payload;
}

}  // namespace stageline
