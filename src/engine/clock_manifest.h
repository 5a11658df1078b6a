// Clocks by a manifest of Perfetto (perfetto_manifest.json), which lies beside the traces of a run.
#pragma once

#include "model/trace.h"
#include "readers/reader.h"

namespace stageline {

// Moves the parts whose files a manifest relates onto the clock of the file that it relates them to, and names their
// machines. The clock of the run is then shared if one file is the reference of all. Only for profiles, whose cells are
// not known yet. A manifest that relates files in a circle, or is no JSON, counts as a problem.
void apply_clock_manifest(const Source& source, Trace& trace);

}  // namespace stageline
