// Clocks by a manifest of Perfetto (perfetto_manifest.json), which lies next to the traces of a run.
#pragma once

#include "model/trace.h"
#include "readers/reader.h"

namespace stageline {

// Moves the parts of a profile onto the clock of the file that a manifest relates them to, and names their machines.
// The run's clock is then shared if one file is the reference of all. A manifest in a circle, or no JSON, is a problem.
void apply_clock_manifest(const Source& source, Trace& trace);

}  // namespace stageline
