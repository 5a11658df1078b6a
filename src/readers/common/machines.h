// Machines of a run whose files name each rank's host.
#pragma once

#include "model/trace.h"

namespace stageline {

// Machines are numbered in natural order of their names, where every rank's is known.
void number_machines(Trace& trace);

}  // namespace stageline
