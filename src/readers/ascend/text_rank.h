// Reads one rank of an Ascend profile from its text exports, where the profiler database is missing; and reads the
// profiler's own sums, which also exist next to a database.
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

// Returns true when a file of the source is one of these exports, by its name and first bytes.
bool is_text_export(const Source& source, size_t file);

// Flaws are counted in the notes; so is a file that cannot be read at all ("ascend.unreadable_text"), as long as
// another can. Error: kBadInput, with the first reason, when none can be read.
RankPart read_rank_text(const RankFiles& files, const ReadOptions& options);

// Adds step and link summaries to a rank whose slices come from a database. It never fails; flaws are counted in
// `notes`.
void add_summaries(const RankFiles& files, Part& part, Diagnostics& notes);

}  // namespace stageline::ascend
