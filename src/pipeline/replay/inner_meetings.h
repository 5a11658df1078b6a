// Collectives inside cells: ranks of one stage that hold a cell together (tensor, context or expert parallelism) meet
// in it several times. Who comes early waits there, so the length of a cell is that of the slowest one's.
//
//     rank 4   ▐▐▐▐ own work ▐▐▐▐│ wait │        own work 8 of 12 ms: the cell took 12 ms on both ranks, and only
//     rank 5   ▐▐▐▐▐▐▐▐ own work ▐▐▐▐▐▐▐▐│       rank 5 is slow
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct InnerMeetings {
  static constexpr uint32_t kNone = UINT32_MAX;
  // Indexed by cell; all are empty where ranks do not meet inside cells.
  std::vector<int64_t> wait_ns;    // of a compute cell: the time in which it waits for its peers
  std::vector<uint32_t> last_row;  // of a compute cell that meets others: the last collective in it, else kNone
  std::vector<uint32_t> meets_as;  // of such a cell: a number that the cells which meet have in common, else kNone
  std::vector<uint8_t> inside;     // of a collective: it is one of these
  // (cell, collective in it), by cell and then by start: all collectives of stages whose ranks meet in one set only.
  std::vector<std::pair<uint32_t, uint32_t>> rows;
  bool any() const { return !wait_ns.empty(); }
  bool is_inside(size_t cell) const { return any() && inside[cell] != 0; }
};

// Finds collectives between whose ranks cells wait. Rows of one name count if three things hold. Nearly every cell of a
// kind on a stage holds as many of them. The ranks that share the name were in them at the same time. The cell goes on
// as long as ever after the last of them, however long it waited. A reduction that runs during a backward fails in the
// first or the last. In each, the rank that came last waits for no other rank, so the extra time of the others is
// waiting. Expects sorted cells and clocks that can be compared; otherwise, and where cells overlap, there are none.
// O(cells log cells).
InnerMeetings find_inner_meetings(const Trace& trace);

}  // namespace stageline
