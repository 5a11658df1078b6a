#include "facts/flight_facts.h"

namespace stageline {
namespace {

struct FlightFact {
  using Value = FlightReport;
  static Value make(const Run& run) { return match_flight(run.trace()); }
};

}  // namespace

const FlightReport& flight_of(const Run& run) { return run.fact<FlightFact>(); }

}  // namespace stageline
