// Tables that exist for every trace, whatever was asked of it: its cells, its devices, its flaws.
#pragma once

#include "facts/run.h"
#include "model/table.h"

namespace stageline {

// "cells" has one row per cell in the trace's own order, with times on the rank's own clock. O(cells).
Table cells_table(const Trace& trace);
// "devices" has one row per rank: where it ran, and what was read from it.
Table devices_table(const Trace& trace);
// Returns whether a diagnostic comes from putting clocks on one axis rather than from reading. Only commands that
// compare clocks have such notes.
bool is_of_clocks(const Diagnostic& diagnostic);

// "diagnostics" has one row per kind of flaw, with the first place where it occurred.
Table diagnostics_table(const Diagnostics& diagnostics);

// "steps" has one row per step over all ranks for a pipeline, and one per rank and ProfilerStep for a profile.
Table steps_table(const Run& run);
// "messages" has one row per message between stages, with the time it took; the analysis `links` adds up these. It is
// empty where nothing connects the stages.
Table messages_table(const Run& run);

// Returns the table of `stageline align` for programs: exact values in all columns (docs/reference/clocks.md). There is
// a row for each rank, and one more for each time its clock was set (or, where every step counts from its own zero, for
// each step). A rank that nothing connects to the others has no offset and the method `untied`, or with `trusted` the
// method `trusted`.
Table clock_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

// Returns it for people: offsets in ms, drifts in ppm, times since the rank's first cell, and only those columns that
// say something.
Table clock_summary_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

}  // namespace stageline
