// Cells in which ranks meet, meeting by meeting: each rank's own work between its collectives, and
// how long each collective takes once the last of the ranks has come.
//
//     rank 4   ▐▐ own ▐▐│ wait │transfer│▐▐▐▐ own ▐▐▐▐│transfer│▐ own ▐
//     rank 5   ▐▐▐▐ own ▐▐▐▐│transfer│▐ own ▐│ wait   │transfer│▐ own ▐
//
// A step graph has one meeting a cell, behind the sum of the cell's own work. It knows no rank that is late in one
// meeting and early in the next, so such a cell is replayed here.
#pragma once

#include "pipeline/replay/graph_ops.h"

namespace stageline {

// Collectives inside cells: ranks of one stage that hold a cell together (tensor, context or expert parallelism) meet
// in it several times. Who comes early waits there, so the length of a cell is that of the slowest one's.
//
//     rank 4   ▐▐▐▐ own work ▐▐▐▐│ wait │        own work 8 of 12 ms: the cell took 12 ms on both ranks, and only
//     rank 5   ▐▐▐▐▐▐▐▐ own work ▐▐▐▐▐▐▐▐│       rank 5 is slow
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

struct PeerCell {
  uint32_t op = 0, meeting = 0;  // in the graph: its work, and the meeting behind it
  uint32_t group = 0;            // index into PeerCells::groups
  size_t first = 0;              // index of its first own work; its k-th transfer has the index of its k-th own work
  uint32_t meets = 0;            // it has one more stretch of own work than it has meetings
};

struct PeerCells {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<PeerCell> cells;              // members of a group side by side
  std::vector<GraphGroup> groups;           // indices of cells that meet
  std::vector<uint32_t> of_op;              // for each operation its cell, for works and meetings; kNone; may be empty
  std::vector<double> own_ns, transfer_ns;  // see PeerCell::first
  // True when collectives come in pairs of all-to-all, as around experts: between those of a pair is the experts' work.
  bool experts = false;
  // The recorded duration of each cell's meeting if it starts with the first one and not behind all own work.
  std::vector<double> meeting_ns;

  bool any() const { return !cells.empty(); }
  std::span<const double> own(const PeerCell& cell) const { return {&own_ns[cell.first], cell.meets + size_t{1}}; }
  std::span<const double> transfers(const PeerCell& cell) const { return {&transfer_ns[cell.first], cell.meets}; }
  bool is_experts(size_t stretch) const { return experts && stretch % 2 == 1; }
};

// Transfers are measured on the clock on which no rank leaves a meeting before the last one has come: as stamped, or
// else in common time. A rank that leaves each meeting late must also end its steps late, whatever its clock says;
// otherwise, and where no clock fits, the shortest collective of a meeting is the transfer of all its ranks. O(cells
// log cells).
PeerCells find_peer_cells(const Trace& trace, const StepGraph& graph);

// The own work and transfers of the cells that meet, side by side as in PeerCells.
struct PeerTimes {
  std::vector<double> own_ns, transfer_ns;  // members one after the other, each with `meets` + 1 places
};
// Writes for each of the members the time from the first meeting of a group to the end of its cell.
void replay_meetings(const PeerTimes& times, size_t members, size_t meets, std::span<double> after_ns);

}  // namespace stageline
