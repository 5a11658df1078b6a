// Tables that every trace has, whatever was asked of it: its cells, its devices, its flaws.
#pragma once

#include "facts/run.h"
#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// "cells": one row per cell, in the trace's own order; times on the rank's own clock. O(cells).
Table cells_table(const Trace& trace);
// "devices": one row per rank: where it ran and what was read from it.
Table devices_table(const Trace& trace);
// "diagnostics": one row per kind of flaw, with the first place.
Table diagnostics_table(const Diagnostics& diagnostics);

// "steps": of a pipeline one row per step over all ranks, of a profile one per rank and ProfilerStep.
Table steps_table(const Run& run);
// "messages": one row per message between stages, with the time it took: those that the analysis links adds up. Empty
// where nothing links the stages.
Table messages_table(const Run& run);

}  // namespace stageline
