// Links: which cell waited for the result of which other cell. Exporters draw them as arrows.
#pragma once

#include "model/schedule.h"
#include "model/trace.h"

namespace stageline {

// Replaces trace.links. Forward work of a micro-batch goes down the virtual stages of the model and
// backward work comes back up:
//
//     F(mb, vs) → F(mb, vs + 1)          B or I(mb, vs) → B or I(mb, vs − 1)
//
// within one step and one data-parallel index. Tensor-parallel ranks share a stage: each is linked with the rank at its
// own position in the neighbouring stage. F&B counts as both F and B. Cells whose step, stage or micro-batch is unknown
// get no link. If a job was logged in several pieces, the link leaves the piece that ends last and reaches the one that
// starts first. Links are ordered by (from, to). Expects cells ordered by step. O(n log n), in parallel over steps, the
// same result whatever the order of the cells' ties.
void link_cells(Trace& trace);

// Links between cells of which the ranks between them were not read: on both sides of a missing rank, the work of one
// micro-batch goes on. Empty where every stage of every replica was read in every step, and where these cells do not
// begin after each other on one clock. In no order. O(n log n).
std::vector<Link> links_over_missing(const Trace& trace);

// Finds the layout of several chunks on the ranks, which logs do not record. Recorded messages decide. Otherwise it is
// the layout in which more micro-batches had time to come back to a rank, by that rank's own clock. Among equal ones it
// is the one in which more cells start after their input's end, if clocks can be compared. Returns the loop when both
// layouts explain the times equally well, and when there is one chunk.
ChunkLayout guess_chunk_layout(const Trace& trace);

// Finds links whose cell begins before the cell it waits for has ended. Either clocks disagree, or cells have wrong
// labels.
struct EarlyLinks {
  int64_t count = 0, worst_ns = 0;  // how many links are early by more than was asked, and by how much the worst one is
  const Link* first = nullptr;      // the first of them in Trace::links; nullptr when there is none
};

// Compares common times. O(links), in parallel.
EarlyLinks early_links(const Trace& trace, int64_t beyond_ns);

}  // namespace stageline
