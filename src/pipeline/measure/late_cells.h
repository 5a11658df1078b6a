// Cells that start later than theory says, and what they waited for.
//
//                     ┌ its producer ends ┌ its message is here
//   stage 1  ▐▐ F3 ▐▐▐│                   │
//   stage 2  ▐ B0 ▐   │      transfer     │ gap   ▐▐ F3 ▐▐     the gap: both were ready, and nothing ran
//
// A cell could start when its rank was free, its producer had ended and its message had arrived. The one that came last
// is the reason, as far as it was recorded; if a wait has several parts, the longest one is. The producer may itself be
// late: the chain of waits from a step's last cell backwards explains the step's time.
#pragma once

#include "pipeline/replay/theory.h"

namespace stageline {

enum class LateReason : uint8_t {
  kProducer,     // the cell whose result it needs ended late
  kRank,         // its own rank was busy
  kMessage,      // the result came late: a recorded receive, or send, ended after the producer and before the cell
  kBlocked,      // its own rank sat in a send or receive of other work, on the thread or stream that runs the cell
  kLaunch,       // the host launched it late: a recorded launch call began after everything else was ready
  kUnexplained,  // it could have started; the reason for the delay was not recorded
};
inline constexpr int kLateReasons = 6;
std::string_view late_reason_name(LateReason reason);  // "producer", "rank", "message", "blocked", …

struct LateCell {
  uint32_t cell = 0;
  // A cell: for kRank the one before it on its rank, else its producer; UINT32_MAX: none.
  uint32_t waited_for = UINT32_MAX;
  LateReason reason = LateReason::kUnexplained;
  int64_t late_ns = 0;  // its start minus its start in theory
  int64_t gap_ns = 0;   // the part of late_ns after its rank and its producer were ready
  int64_t message_ns = 0, launch_ns = 0, blocked_ns = 0;  // parts of gap_ns
};

// Sums for one stage and one reason over all cells that theory places.
struct LateSum {
  int64_t count = 0;
  double late_ns = 0, gap_ns = 0;
  int64_t max_ns = 0;
};

// Explains how late steps end compared with the theory. It sums over steps and replicas along the chain of waits to
// each step's last cell: actual − theory = longer + message + blocked + launch + unexplained − slack. Outlier steps
// (Theory::outliers) are left out, as in the means.
struct LateChain {
  int64_t steps = 0;                    // number of (step, replica)
  double actual_ns = 0, theory_ns = 0;  // sums of their spans
  double longer_ns = 0;  // durations of the chain's cells minus those in theory; a shorter cell subtracts
  double message_ns = 0, launch_ns = 0, blocked_ns = 0, unexplained_ns = 0;  // gaps of the chain
  double slack_ns = 0;  // how much longer theory's own longest chain is than this one takes in theory
};

struct LateCells {
  std::vector<LateCell> cells;  // those at least `min_ns` late, in the order of the lists
  int64_t found = 0;            // number of cells that were that late; at most kMaxLateCells of them are kept
  std::vector<ByEnum<LateReason, LateSum, kLateReasons>>
      by_stage;  // [stage][reason], over all cells that are late at all
  LateChain chain;
};
inline constexpr size_t kMaxLateCells = 1'000'000;

// The result is empty where ranks share no clock, or without theory. A cell that begins before what it needs has ended
// (its clock disagrees with the other's) has no gap. O(cells), O(messages log messages), and for each late cell with a
// gap O(device lanes log slices).
LateCells late_cells(const Trace& trace, const TheoryRun& run, int64_t min_ns);
// Finds only LateCells::chain, in parallel over steps and replicas.
LateChain late_chain(const Trace& trace, const TheoryRun& run);

}  // namespace stageline
