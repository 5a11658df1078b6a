// What the pipeline page's panel asks: what the run's steps would take under changes, and one of them in full. The
// numbers are those of `stageline what-if`. docs/viewer-protocol.md is the contract with the page.
#pragma once

#include <string>

#include "base/result.h"
#include "server/query.h"

namespace stageline {

class PipelineView;

// /api/pipeline/fixes: what can be changed, and the fixes that the run asks for with their prices. Errors: kUnavailable
// for a run without pipeline cells. Where nothing can be priced it is unanswered_json().
Result<std::string> pipeline_fixes_answer(const PipelineView& view, const Query& query);
// /api/pipeline/what-if?scale=&schedule=&chunks=&group=&micro_batches=&latency_ns=&fix=&step=&dp=: the price of a
// world, and the step's cells in it, of one replica where it is named. Errors: those above, and kUsage naming the
// parameter. O(operations).
Result<std::string> pipeline_what_if_answer(const PipelineView& view, const Query& query);
// What a report's page answers the same from (packed_model()); "" where nothing can be priced, or of more operations.
std::string what_if_model_bytes(const PipelineView& view, size_t most_operations);

}  // namespace stageline
