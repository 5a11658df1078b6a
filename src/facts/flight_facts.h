// Sums over the calls of a flight recorder, as a fact of a run.
#pragma once

#include "facts/run.h"
#include "profile/flight_match.h"

namespace stageline {

// Returns true when the trace is a flight recorder's, whose parts hold calls but no times of work.
bool has_flight_calls(const Trace& trace);

const FlightReport& flight_of(const Run& run);

}  // namespace stageline
