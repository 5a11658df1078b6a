#include "server/cell_payload.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "base/number.h"

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
  // Steps laid end to end stand on one axis already, whatever clocks their ranks had.
  if (trace.clock != ClockState::kPerRank || trace.steps_laid_end_to_end) {
    std::fill(zeros.begin(), zeros.end(), extent_of(trace).start_ns);
    return zeros;
  }
  std::vector<bool> seen(trace.parts.size());
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const auto part = static_cast<size_t>(trace.cells.part[i]);
    if (!seen[part] || trace.cells.start_ns[i] < zeros[part]) zeros[part] = trace.cells.start_ns[i];
    seen[part] = true;
  }
  return zeros;
}

// Names get dense ids in order of first use, so the page carries only texts that cells need.
std::vector<uint32_t> name_ids(const Trace& trace, CellPayload& payload) {
  std::vector<uint32_t> dense(trace.names.size(), UINT32_MAX);
  dense[0] = 0;
  payload.names.emplace_back();
  std::vector<uint32_t> ids(payload.cell_count, 0);
  for (size_t i = 0; i < payload.cell_count; ++i) {
    if (trace.cells.slice[i] == kNoSlice) continue;
    const Part& part = trace.parts[static_cast<size_t>(trace.cells.part[i])];
    const StringId id = part.slices.name_id[trace.cells.slice[i]];
    if (dense[id] == UINT32_MAX) {
      dense[id] = static_cast<uint32_t>(payload.names.size());
      payload.names.push_back(trace.names.text(id));
    }
    ids[i] = dense[id];
  }
  return ids;
}

// Sorted and as differences: numbers near zero, which gzip likes.
void append_links(const Trace& trace, CellPayload& payload) {
  std::vector<Link> links;
  for (const Link& link : trace.links)
    if (link.from_cell < payload.cell_count && link.to_cell < payload.cell_count) links.push_back(link);
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
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

// Where theory has each cell; NaN where it has none.
void append_theory(const Trace& trace, const Theory& theory, CellPayload& payload) {
  std::vector<double> start(payload.cell_count, kNaN), dur(payload.cell_count, kNaN);
  for (size_t i = 0; i < payload.cell_count; ++i) {
    if (!theory.has(i)) continue;
    const int64_t zero = payload.part_zero_ns[static_cast<size_t>(trace.cells.part[i])];
    start[i] = static_cast<double>(theory.start_ns[i] - zero);
    dur[i] = static_cast<double>(theory.end_ns[i] - theory.start_ns[i]);
  }
  append_column(payload, "theory_start_ns", "f64", start);
  append_column(payload, "theory_dur_ns", "f64", dur);
}

}  // namespace

size_t embedded_cell_count(const Cells& cells, size_t max_cells) {
  if (cells.size() <= max_cells) return cells.size();
  size_t count = 0;
  for (const StepRange& range : step_ranges(cells)) {
    if (range.end > max_cells) break;
    count = range.end;
  }
  return count > 0 ? count : max_cells;
}

CellPayload make_cell_payload(const Trace& trace, size_t max_cells, const Theory* theory) {
  const Cells& cells = trace.cells;
  CellPayload payload;
  payload.cell_count = embedded_cell_count(cells, max_cells);
  payload.part_zero_ns = part_zeros(trace);
  const size_t count = payload.cell_count;

  // Exact: int64 differences below 2^53 ns (104 days) are whole doubles.
  std::vector<double> start(count), dur(count);
  std::vector<uint8_t> kind(count);
  for (size_t i = 0; i < count; ++i) {
    start[i] = static_cast<double>(cells.start_ns[i] - payload.part_zero_ns[static_cast<size_t>(cells.part[i])]);
    dur[i] = static_cast<double>(cells.dur_ns(i));
    kind[i] = static_cast<uint8_t>(cells.kind[i]);
  }
  const auto head = [&](const std::vector<int32_t>& column) {
    return std::vector<int32_t>(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(count));
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
