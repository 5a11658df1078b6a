// What the calls of a flight recorder add up to, made once per Run.
#pragma once

#include "facts/run.h"
#include "profile/flight_match.h"

namespace stageline {

// The trace is a flight recorder's: its parts hold calls and no times of work.
bool has_flight_calls(const Trace& trace);

const FlightReport& flight_of(const Run& run);

}  // namespace stageline
