// Numbers the machines of a run whose files name the host of each rank.
#pragma once

#include "model/trace.h"

namespace stageline {

// Numbers machines in natural order of their names; does nothing unless every rank's name is known.
void number_machines(Trace& trace);

}  // namespace stageline
