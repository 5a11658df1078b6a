// One rank of an Ascend profile from its text exports, where the profiler database is missing; and the profiler's own
// sums, which stand beside a database too.
//
//   trace_view.json ─────── all slices ──┐  (kernel_details.csv then adds shapes)
//   kernel_details.csv ──── kernels ─────┤→ PartBuilder
//   analysis.db, else communication.json ┘  operations of communication: groups, bytes; slices where no other file has
//                                            them
//   analysis.db, else step_trace_time.csv          → Part::step_summaries
//   analysis.db, else communication_matrix.json    → Part::link_summaries
//
// docs/formats/ascend-text.md says what is taken from which file.
#pragma once

#include "readers/ascend/find_ranks.h"
#include "readers/ascend/rank_part.h"

namespace stageline::ascend {

// Whether a file of the source is one of these exports, by its name and its first bytes.
bool is_text_export(const Source& source, size_t file);

// What is flawed is counted in the notes; a file that cannot be read at all too ("ascend.unreadable_text"), as long as
// another one can. Error: kBadInput when none can, with the first reason.
RankPart read_rank_text(const RankFiles& files, const ReadOptions& options);

// Step and link summaries of a rank whose slices come from a database. Never an error: counted in `notes`.
void add_summaries(const RankFiles& files, Part& part, Diagnostics& notes);

}  // namespace stageline::ascend
