// The cells of a run as bytes, for the pipeline page: little-endian columns one after the other, each 8-byte aligned.
// docs/viewer-protocol.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/theory.h"
#include "model/trace.h"

namespace stageline {

struct PayloadColumn {
  const char* name;
  const char* type;     // "f64", "i32", "u32", "u8"
  size_t offset_bytes;  // within the decompressed bytes
  size_t count;
};

struct CellPayload {
  std::string bytes;  // not compressed
  std::vector<PayloadColumn> columns;
  size_t cell_count = 0;                // embedded cells
  std::vector<StepRange> steps;         // rows of the trace's cells that they are, in order
  size_t link_count = 0;                // links with both ends embedded
  std::vector<std::string_view> names;  // slice names by the payload's own name id; [0] is ""
  std::vector<int64_t> part_zero_ns;    // what the start column counts from, per part
  bool has_step(int32_t step) const;
};

// Which rows of sorted cells fit `max_cells`, ascending: whole steps, those in `first` before the others, which follow
// from the first on until one does not fit. When not even the first choice fits, its first `max_cells` rows.
std::vector<StepRange> embedded_steps(const Cells& cells, size_t max_cells, const std::vector<int32_t>& first = {});

// Of the cells in `steps`, as embedded_steps() has them. Starts count from the first start of all cells; when every rank
// has its own zero, from the first start of the rank's own cells. With a theory, columns of it follow: starts on the same
// axis, NaN without one. O(cells + links).
CellPayload make_cell_payload(const Trace& trace, std::vector<StepRange> steps, const Theory* theory = nullptr);

}  // namespace stageline
