// Which calls of a flight recorder belong together, which of these did not come to an end, and who is to blame.
//
//   rank 0   all_reduce 6 ✓   all_reduce 7 …            calls of one group with one sequence number are one collective;
//   rank 1   all_reduce 6 ✓   all_reduce 7 …            the k-th send from a to b and the k-th receive of b from a are
//   rank 2   all_reduce 6 ✓                             one message: sequence numbers do not tell pairs of ranks apart
//
// Here rank 2 never made all_reduce 7: ranks 0 and 1 wait in it for rank 2. Whether calls agree in operation, sizes and
// types is judged by what most members say, not by what the first one does.
// Rules that torch's own analyser has: docs/analyses/flight-recorder.md, with what differs and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

enum class FlightVerdict : uint8_t {
  kMissing,     // members never made the call that others wait in
  kType,        // members made another operation
  kSizes,       // … the same operation with sizes that do not fit
  kDtype,       // … with another data type
  kStuck,       // all made it; for some it is through, for others not
  kUnfinished,  // all made it, and for nobody it is through: in flight when the dump was taken, or stuck
};
std::string_view flight_verdict_name(
    FlightVerdict verdict);  // "missing", "type", "sizes", "dtype", "stuck", "unfinished"

// One collective or message that did not go well.
struct FlightProblem {
  FlightVerdict verdict = FlightVerdict::kMissing;
  int32_t group = 0;     // into Trace::flight_groups
  int64_t sequence = 0;  // of a message its number from src to dst, from 1
  bool is_p2p = false;
  int32_t src = -1, dst = -1;         // of a message; global
  StringId op = 0;                    // what most of those that made it call
  std::vector<int32_t> culprits;      // ranks that are missing or differ; empty where no side has more
  std::vector<int32_t> waiting;       // ranks that made the call and for which it is not through
  std::vector<int32_t> not_started;   // of these, those that have only enqueued it
  std::vector<int32_t> without_dump;  // members nobody can tell of
  std::string expected, found;        // of a difference: "[[10]]" and "rank 3: [[12]]"
  int64_t since_ns = 0;               // when the first of those that wait made it; its host's clock
  int32_t part = -1;                  // of the first culprit, else of the first that waits; −1: no dump
  uint32_t slice = kNoSliceIndex;     // of its call; of a culprit without one its last call
};

// What a rank waits in: its oldest call that is not through.
struct FlightWait {
  int32_t rank = 0, part = 0;
  uint32_t slice = 0;
  size_t call = 0;                 // into Part::flight_calls
  std::vector<int32_t> for_ranks;  // members that never made it
};

struct FlightGroupSum {
  int32_t group = 0;
  int64_t calls = 0, collectives = 0, messages = 0;
  int64_t last_through = -1;  // sequence of the last collective that is through for all members; −1: none
  int64_t last_made = -1;     // … that anybody made
};

struct FlightReport {
  std::vector<FlightProblem> problems;  // those that block others first; then by group and sequence
  std::vector<FlightWait> waits;        // by rank
  std::vector<FlightGroupSum> groups;   // by group
  std::vector<int32_t> cycle;           // ranks that wait for each other in a ring, in that order; empty: none do
  std::vector<int32_t> roots;           // ranks that others wait for and that wait in no call themselves
  int64_t calls = 0, judged = 0;        // calls; collectives and messages that could be judged
  int64_t overwritten = 0;              // that could not: the ring of a member had begun anew
};

// O(calls log calls).
FlightReport match_flight(const Trace& trace);

// The call of a rank for people: "all_reduce 7 of default_pg", "send 3 to rank 1 of pipeline".
std::string flight_call_text(const Trace& trace, const FlightCall& call);
std::string flight_group_text(const FlightGroup& group);
// "train_step (train.py:40)": the innermost frame that is no file of torch's own, of those of a slice; "" without.
std::string flight_frame_text(const Trace& trace, int32_t part, uint32_t slice);

}  // namespace stageline
