// The pipeline of Megatron's spans: which forward and backward is which micro-batch of which step.
#pragma once

#include <vector>

#include "readers/common/ops.h"
#include "readers/otlp/span_file.h"

namespace stageline::otlp {

// The spans of a run, whose resources are one run's. Spans are ordered by start.
struct Run {
  std::vector<Resource> resources;
  std::vector<Span> spans;
  std::vector<ServedRequest> requests;  // of the spans, whatever their order
};

// Whether spans say their own stages (pipeline.stage).
bool names_stages(const Run& run);

// Returns an operation for each span of a rank. A forward or backward within a known iteration is a cell; all other
// spans, messages among them, are calls of the host. Returns nothing where there is no cell. Counts what was inferred
// or left out in trace.diagnostics, and adds Trace::lossy_steps.
std::vector<Op> pipeline_ops(const Run& run, Trace& trace);

}  // namespace stageline::otlp
