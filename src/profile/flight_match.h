// Finds calls of a flight recorder that belong together, calls that did not finish, and the ranks that caused it.
//
//   rank 0   all_reduce 6 ✓   all_reduce 7 …            calls of one group with one sequence number are one collective;
//   rank 1   all_reduce 6 ✓   all_reduce 7 …            the k-th send from a to b and the k-th receive of b from a are
//   rank 2   all_reduce 6 ✓                             one message: sequence numbers do not tell pairs of ranks apart
//
// Here rank 2 never made all_reduce 7, and ranks 0 and 1 wait for it there. Whether calls agree in operation, sizes and
// types is judged by what most members say, and not by the first one. The rules of torch's own analyser, and where this
// differs and why: docs/analyses/flight-recorder.md.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class FlightVerdict : uint8_t {
  kMissing,     // members never made the call that others wait in
  kType,        // members made another operation
  kSizes,       // they made the same operation with sizes that do not fit
  kDtype,       // they made it with another data type
  kStuck,       // all made it; it is finished for some and not for others
  kUnfinished,  // all made it and it is finished for none: it was in flight when the dump was taken, or it is stuck
};
std::string_view flight_verdict_name(
    FlightVerdict verdict);  // "missing", "type", "sizes", "dtype", "stuck", "unfinished"

// One collective or message that went wrong.
struct FlightProblem {
  FlightVerdict verdict = FlightVerdict::kMissing;
  int32_t group = 0;     // index into Trace::flight_groups
  int64_t sequence = 0;  // for a message its number from src to dst, counted from 1
  bool is_p2p = false;
  int32_t src = -1, dst = -1;         // for a message; global ranks
  StringId op = 0;                    // the operation by most of those that made the call
  std::vector<int32_t> culprits;      // ranks that are missing or differ; empty when no side has a majority
  std::vector<int32_t> waiting;       // ranks that made the call and for which it is not finished
  std::vector<int32_t> not_started;   // those of them that have only enqueued it
  std::vector<int32_t> without_dump;  // members of which nothing is known
  std::string expected, found;        // for a difference: "[[10]]", and "rank 3: [[12]]"
  int64_t since_ns = 0;               // when the first of those that wait made it, on its host's clock
  int32_t part = -1;                  // of the first culprit, else of the first that waits; −1 when it has no dump
  uint32_t slice = kNoSliceIndex;     // the call of that part; for a culprit that did not make it, its last call
};

// The call that blocks a rank: its oldest unfinished call.
struct FlightWait {
  int32_t rank = 0, part = 0;
  uint32_t slice = 0;
  size_t call = 0;                 // index into Part::flight_calls
  std::vector<int32_t> for_ranks;  // members that never made it
};

struct FlightGroupSum {
  int32_t group = 0;
  int64_t calls = 0, collectives = 0, messages = 0;
  // Sequence number of the last collective that is finished for all members; −1 when there is none.
  int64_t last_through = -1;
  int64_t last_made = -1;  // sequence number of the last one that any member made
};

struct FlightReport {
  std::vector<FlightProblem> problems;  // those that block others first; then by group and sequence
  std::vector<FlightWait> waits;        // ordered by rank
  std::vector<FlightGroupSum> groups;   // for each group
  std::vector<int32_t> cycle;           // ranks that wait for each other in a ring, in that order; empty when none do
  std::vector<int32_t> roots;           // ranks that others wait for and that wait in no call themselves
  int64_t calls = 0, judged = 0;        // all calls; collectives and messages that could be judged
  // Collectives and messages that could not, since the ring of a member no longer has the call.
  int64_t overwritten = 0;
};

// Returns true when the trace is a flight recorder's, whose parts hold calls but no times of work.
bool has_flight_calls(const Trace& trace);

// O(calls log calls).
FlightReport match_flight(const Trace& trace);

// Returns a call of a rank in words: "all_reduce 7 of default_pg", "send 3 to rank 1 of pipeline".
std::string flight_call_text(const Trace& trace, const FlightCall& call);
std::string flight_group_text(const FlightGroup& group);
// Returns the innermost frame of a slice that is in none of torch's own files, "train_step (train.py:40)"; "" when
// there is none.
std::string flight_frame_text(const Trace& trace, int32_t part, uint32_t slice);

}  // namespace stageline
