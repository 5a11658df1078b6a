// Answers the panel of the pipeline page: the times of the run's steps under changes, and all cells of one step. The
// numbers are those of `stageline what-if`. docs/viewer-protocol.md is the contract with the page.
#pragma once

#include <string>

#include "base/result.h"
#include "server/http/query.h"

namespace stageline {

class PipelineView;

// /api/pipeline/fixes: what can be changed, and the fixes that suit the run, with their prices. Errors: kUnavailable
// for a run without pipeline cells. Where nothing can be priced, the answer is unanswered_json().
Result<std::string> pipeline_fixes_answer(const PipelineView& view, const Query& query);
// /api/pipeline/what-if?scale=&schedule=&chunks=&group=&micro_batches=&latency_ns=&fix=&step=&dp=: the price of a world
// and the cells that the step has in it, of one replica if `dp` names it. Errors: those above, and kUsage, which names
// the parameter. O(operations).
Result<std::string> pipeline_what_if_answer(const PipelineView& view, const Query& query);
// The bytes from which a report's page answers the same (packed_model()); "" where nothing can be priced, or where
// there are more than `max_operations` operations.
std::string what_if_model_bytes(const PipelineView& view, size_t max_operations);

}  // namespace stageline
