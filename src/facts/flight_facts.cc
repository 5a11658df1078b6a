#include "facts/flight_facts.h"

#include <algorithm>

namespace stageline {
namespace {

struct FlightFact {
  using Value = FlightReport;
  static Value make(const Run& run) { return match_flight(run.trace()); }
};

}  // namespace

bool has_flight_calls(const Trace& trace) {
  return std::any_of(trace.parts.begin(), trace.parts.end(),
                     [](const Part& part) { return !part.flight_calls.empty(); });
}

const FlightReport& flight_of(const Run& run) { return run.fact<FlightFact>(); }

}  // namespace stageline
