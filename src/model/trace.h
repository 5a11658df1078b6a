// Trace: what was recorded, one Part per rank, columns of slices, and the Cells read from them.
//
//   Trace ── names        every text once
//         ├─ parts[]      one per rank: identity, lanes, slices (start, duration, name, file index)
//         ├─ cells        step, part, kind, chunk, micro-batch, start, end → source slice
//         ├─ links[]      cell → cell arrows (filled by the pipeline layer, read by exporters)
//         └─ diagnostics  what was flawed, with places
//
// A lane is a range of its part's slices; within a lane slices are ordered by start, then longer
// first, then file order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/string_pool.h"
#include "model/cells.h"

namespace stageline {

struct Slices {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> dur_ns;
  std::vector<StringId> name_id;
  std::vector<uint32_t> file_index;  // position in the source's own order

  size_t size() const { return start_ns.size(); }
};

struct Lane {
  std::string name;           // "compute stream", "pp-comm", …
  size_t begin = 0, end = 0;  // slices [begin, end) of the part
};

struct Part {
  int32_t rank = 0;            // global rank
  int32_t machine = kUnknown;  // index of the machine in natural order of the machines' names
  int32_t device = kUnknown;   // index within the machine
  int32_t stage = kUnknown;    // pipeline stage
  int32_t dp = kUnknown;       // data-parallel index
  std::string machine_name;    // folder or host name, may be empty
  std::string source;          // the file it was read from
  std::vector<Lane> lanes;
  Slices slices;

  // Appends a lane from unordered columns and puts it in order. Returns the permutation:
  // new slice index (within the part) of each given row.
  std::vector<uint32_t> add_lane(std::string name, const Slices& rows);
};

// Which cell has to wait for which: "F3 of stage 0 → F3 of stage 1".
struct Link {
  uint32_t from_cell, to_cell;
};

enum class ClockState : uint8_t {
  kShared,     // all parts are stamped by one clock
  kUnaligned,  // several clocks, trusted as they are
  kPerRank,    // every rank counts from its own zero: ranks cannot be compared
};

std::string_view clock_name(ClockState clock);  // "shared", "unaligned", "per-rank"

struct Trace {
  std::string format;       // name of the reader
  std::string description;  // "2 machines × 4 workerlogs", for people
  StringPool names;
  std::vector<Part> parts;  // ordered by rank
  Cells cells;
  std::vector<Link> links;
  Diagnostics diagnostics;
  ClockState clock = ClockState::kUnaligned;
  bool steps_laid_end_to_end = false;  // the source restarts its time at every step
  // Chunk numbers tell pieces of one forward or backward apart (Paddle's overlap mode cuts them into
  // slices), not virtual stages.
  bool chunks_are_pieces = false;
  int32_t pipeline_stages = 0;  // of the whole run, whatever ranks were filtered out

  size_t slice_count() const;
  int32_t machine_count() const;
  std::string_view slice_name(const Cell& cell) const;  // "" for a cell without source slice
};

// Trace-wide sizes, computed from the cells. kUnknown entries do not count.
struct Extent {
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of all cells; 0,0 without cells
  int32_t stage_count = 0, dp_count = 0, step_count = 0;
  int32_t chunk_count = 0, micro_batch_count = 0;  // highest value + 1
};
Extent extent_of(const Trace& trace);

// "F3", "B1", and with several chunks "F3.c1": what people call a cell.
std::string cell_label(const Cell& cell, bool with_chunk);

// Keeps only the given ranks and steps; empty lists keep everything. Parts without cells stay
// unless excluded by `ranks`. Links are dropped (they are filled after filtering).
void filter_trace(Trace& trace, const std::vector<int32_t>& ranks, int64_t first_step, int64_t last_step);

}  // namespace stageline
