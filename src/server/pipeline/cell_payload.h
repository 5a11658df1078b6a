// The cells of a run as bytes for the pipeline page: little-endian columns one after another, each aligned to 8 bytes.
// docs/viewer-protocol.md describes the layout.
#pragma once

#include "model/theory.h"

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
  size_t cell_count = 0;                // cells that are included
  std::vector<StepRange> steps;         // the included rows of the trace's cells, in order
  size_t link_count = 0;                // links of which both cells are included
  std::vector<std::string_view> names;  // slice names by the payload's own ids; [0] is ""
  std::vector<int64_t> part_zero_ns;    // for each part the timestamp from which its start column counts
  bool has_step(int32_t step) const;
};

// The rows of sorted cells that fit into `max_cells`, ascending. They are whole steps: first those in `first`, then the
// others from the run's beginning until one does not fit. Where not even the first choice fits, its first `max_cells`
// rows.
std::vector<StepRange> embedded_steps(const Cells& cells, size_t max_cells, const std::vector<int32_t>& first = {});

// Makes the payload of the cells in `steps`, which come from embedded_steps(). Starts count from the first start of all
// cells or, where every rank has its own zero, from the first start of the rank's cells. With a theory, its columns
// follow: starts on the same axis, NaN where theory has no place for a cell. O(cells + links).
CellPayload make_cell_payload(const Trace& trace, std::vector<StepRange> steps, const Theory* theory = nullptr);

}  // namespace stageline
