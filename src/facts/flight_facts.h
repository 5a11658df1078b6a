// Sums over the calls of a flight recorder, as a fact of a run.
#pragma once

#include "facts/run.h"
#include "profile/flight_match.h"

namespace stageline {

// Returns the calls of the run's flight recorders, matched over ranks; made when first asked.
const FlightReport& flight_of(const Run& run);

}  // namespace stageline
