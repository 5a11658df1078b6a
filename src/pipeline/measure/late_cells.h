// Cells that start later than theory says, and what they waited for.
//
//                     ┌ its producer ends ┌ its message is here
//   stage 1  ▐▐ F3 ▐▐▐│                   │
//   stage 2  ▐ B0 ▐   │      transfer     │ gap   ▐▐ F3 ▐▐     the gap: both were ready, and nothing ran
//
// A cell could start when its rank was free, its producer had ended and its message had come. What was last is the
// reason, as far as the recording knows; of a wait with several parts the longest. What it waited for may itself be
// late: the chain of waits back from a step's last cell says where its time went.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pipeline/replay/theory.h"

namespace stageline {

enum class LateReason : uint8_t {
  kProducer,     // the cell whose result it needs ended late
  kRank,         // its own rank was busy
  kMessage,      // the result came late: a recorded receive, or send, ended after the producer and before the cell
  kBlocked,      // its own rank sat in a send or receive of other work, on the thread or stream that runs the cell
  kLaunch,       // the host launched it late: a recorded launch call began after all that
  kUnexplained,  // it could have started, and nothing recorded says why it did not
};
inline constexpr int kLateReasons = 6;
std::string_view late_reason_name(LateReason reason);  // "producer", "rank", "message", "blocked", …

struct LateCell {
  uint32_t cell = 0;
  uint32_t waited_for = UINT32_MAX;  // a cell: of kRank the one before it, else its producer; UINT32_MAX: none
  LateReason reason = LateReason::kUnexplained;
  int64_t late_ns = 0;                                    // its start minus theory's
  int64_t gap_ns = 0;                                     // of that after rank and producer were ready
  int64_t message_ns = 0, launch_ns = 0, blocked_ns = 0;  // of the gap
};

// One (stage, reason) over all cells with a place in theory.
struct LateSum {
  int64_t count = 0;
  double late_ns = 0, gap_ns = 0;
  int64_t max_ns = 0;
};

// Where the time went by which steps end after theory: sums over steps and replicas along the chain of waits that leads
// to the last cell. excess = longer + message + blocked + launch + unexplained − slack. Outlier steps
// (Theory::outliers) are left out, as in the means.
struct LateChain {
  int64_t steps = 0;                    // (step, replica)
  double actual_ns = 0, theory_ns = 0;  // sums of their spans
  double longer_ns = 0;                 // cells of the chain beyond their means (shorter ones count less)
  double message_ns = 0, launch_ns = 0, blocked_ns = 0, unexplained_ns = 0;  // gaps of the chain
  double slack_ns = 0;  // theory's longest chain is another one, longer by this
};

struct LateCells {
  std::vector<LateCell> cells;                 // at least `least_ns` late, in the order of lists
  int64_t found = 0;                           // as many were that late; at most kMostLateCells are kept
  std::vector<std::vector<LateSum>> by_stage;  // [stage][reason], cells that are late at all
  LateChain chain;
};
inline constexpr size_t kMostLateCells = 1'000'000;

// Nothing where ranks share no clock, or without theory. Cells that begin before what they need has ended (clocks that
// disagree) have no gap. O(cells), O(messages log messages), and per late cell with a gap O(device lanes log slices).
LateCells late_cells(const Trace& trace, const TheoryRun& run, int64_t least_ns);
// LateCells::chain alone, in parallel over steps and replicas.
LateChain late_chain(const Trace& trace, const TheoryRun& run);

}  // namespace stageline
