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
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

// Any file here that read_text_rank could use.
bool has_text(const RankFiles& files);

// Fills a builder; what is flawed is counted in builder.notes, and a file that cannot be read at all too
// ("ascend.unreadable_text"), as long as another one can. Errors: kBadInput when none can; names the first reason.
Status read_text_rank(const RankFiles& files, const ReadOptions& options, PartBuilder& builder);

// Step and link summaries of a rank whose slices come from a database. Never an error: counted in `notes`.
void add_summaries(const RankFiles& files, Part& part, Diagnostics& notes);

// After PartBuilder::finish: device work that no launch gives a step belongs to the step whose window holds its start.
void place_device_work_in_steps(Part& part);

}  // namespace stageline::ascend
