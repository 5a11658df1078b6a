// Cells: the pipeline's own table. One row is one piece of work (or one message, collective …) of
// one rank, whatever framework it came from. Structure of arrays; row i of every column belongs
// together. Times are nanoseconds on the rank's own clock.
#pragma once

#include <cstdint>
#include <vector>

#include "model/kind.h"

namespace stageline {

inline constexpr int32_t kUnknown = -1;  // step, stage, dp, chunk or micro-batch that nobody knows
inline constexpr uint32_t kNoSlice = UINT32_MAX;

struct Cell {
  int32_t step = kUnknown;
  int32_t part = 0;  // index into Trace::parts, that is: the rank
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;
  int32_t micro_batch = kUnknown;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = kNoSlice;  // source slice within the part
};

struct Cells {
  std::vector<int32_t> step;
  std::vector<int32_t> part;
  std::vector<CellKind> kind;
  std::vector<int32_t> chunk;
  std::vector<int32_t> micro_batch;
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<uint32_t> slice;

  size_t size() const { return step.size(); }
  int64_t dur_ns(size_t i) const { return end_ns[i] - start_ns[i]; }
  void reserve(size_t count);
  void add(const Cell& cell);
  Cell at(size_t i) const;
  // Orders rows by (step, part, start, −duration, slice): what every consumer expects.
  void sort();
  // Keeps the rows for which keep(i) is true, in order.
  template <class Keep>
  void filter(Keep keep) {
    Cells kept;
    for (size_t i = 0; i < size(); ++i)
      if (keep(i)) kept.add(at(i));
    *this = std::move(kept);
  }
};

// Rows [begin, end) of one step in sorted cells.
struct StepRange {
  int32_t step;
  size_t begin, end;
};
std::vector<StepRange> step_ranges(const Cells& cells);

// Greedy rows so that no two intervals of one row overlap: row[i] for intervals given in start
// order; touching is no overlap. At most `max_rows` rows (the last one then may overlap).
// O(n · rows). Returns the number of rows used.
int assign_rows(const std::vector<int64_t>& start_ns, const std::vector<int64_t>& end_ns, std::vector<int>& row,
                int max_rows = 64);

}  // namespace stageline
