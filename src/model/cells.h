// Cells: the pipeline's own table. One row is one piece of work (or one message, collective …) of
// one rank, whatever framework it came from. Structure of arrays; row i of every column belongs
// together. Times are nanoseconds on the rank's own clock.
#pragma once

#include "model/kind.h"

namespace stageline {

// Stands for a step, stage, dp, chunk or micro-batch that the source does not give.
inline constexpr int32_t kUnknown = -1;
inline constexpr uint32_t kNoSlice = UINT32_MAX;

struct Cell {
  int32_t step = kUnknown;
  int32_t part = 0;  // index into Trace::parts; a part is a rank
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;
  int32_t micro_batch = kUnknown;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = kNoSlice;  // the slice of the part that this cell was made from
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

  Cells() = default;
  Cells(const Cells& from);  // several columns at a time: a copy is mostly new memory
  Cells(Cells&&) = default;
  Cells& operator=(Cells&&) = default;
  size_t size() const { return step.size(); }
  int64_t dur_ns(size_t i) const { return end_ns[i] - start_ns[i]; }
  // Calls body(column) for each column.
  template <class Body> void each_column(Body&& body) {
    body(step), body(part), body(kind), body(chunk), body(micro_batch), body(start_ns), body(end_ns), body(slice);
  }
  void reserve(size_t count) {
    each_column([&](auto& column) { column.reserve(count); });
  }
  void add(const Cell& cell);
  Cell at(size_t i) const;
  // Orders rows by (step, part, start, −duration, slice); everything that takes "sorted cells" expects this order.
  void sort();
  // Keeps the rows for which keep(i) is true, in order.
  template <class Keep> void filter(Keep keep) {
    Cells kept;
    for (size_t i = 0; i < size(); ++i)
      if (keep(i)) kept.add(at(i));
    *this = std::move(kept);
  }

 private:
  void sort_rows(size_t begin, size_t end);
};

// Rows [begin, end) of one step in sorted cells.
struct StepRange {
  int32_t step;
  size_t begin, end;
};
std::vector<StepRange> step_ranges(const Cells& cells);

// Puts intervals into rows so that no two of one row overlap, each into the first row that is free: row[i] is the row
// of interval i. Intervals are given in the order of their starts; two that touch do not overlap. At most `max_rows`
// rows are used, and the last of them takes what fits nowhere else, so there intervals may overlap. O(n · rows).
// Returns the number of rows used.
int assign_rows(const std::vector<int64_t>& start_ns, const std::vector<int64_t>& end_ns, std::vector<int>& row,
                int max_rows = 64);

// The rows [begin, end) of one rank in one step, in sorted cells.
struct RankRange {
  int32_t step, part;
  size_t begin, end;
};
std::vector<RankRange> rank_ranges(const Cells& cells);  // O(cells)

}  // namespace stageline
