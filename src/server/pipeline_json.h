// What the pipeline page learns of a run beside its cells: ranks, clocks, theory, colours, and where in the payload
// which column lies. web/src/data/report.ts declares the same shape.
#pragma once

#include <string>

#include "model/theory.h"
#include "model/trace.h"
#include "server/cell_payload.h"

namespace stageline {

// One JSON object. `theory` may be unknown.
std::string pipeline_json(const Trace& trace, const Theory& theory, const CellPayload& payload);

}  // namespace stageline
