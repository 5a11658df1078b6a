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
  size_t cell_count = 0;                // embedded cells: rows [0, cell_count) of the trace's cells
  size_t link_count = 0;                // links with both ends embedded
  std::vector<std::string_view> names;  // slice names by the payload's own name id; [0] is ""
  std::vector<int64_t> part_zero_ns;    // what the start column counts from, per part
};

// How many rows of sorted cells fit `max_cells`: whole steps from the first on; when even the first
// step is too large, its first `max_cells` rows.
size_t embedded_cell_count(const Cells& cells, size_t max_cells);

// Starts count from the first start of all cells; when every rank has its own zero, from the
// first start of the rank's own cells. With a theory, columns of it follow: starts on the same axis, NaN without one.
// O(cells + links).
CellPayload make_cell_payload(const Trace& trace, size_t max_cells, const Theory* theory = nullptr);

}  // namespace stageline
