// The data of a run for the pipeline page besides its cells: ranks, clocks, theory, colours, and where each column is
// in the payload. web/src/data/report.ts declares the same shape.
#pragma once

#include <string>

#include "model/theory.h"
#include "model/trace.h"
#include "server/pipeline/cell_payload.h"

namespace stageline {

// Returns one JSON object. `theory` may be unknown.
std::string pipeline_json(const Trace& trace, const Theory& theory, const CellPayload& payload);

}  // namespace stageline
