// Where the time of a step went, as parts that add up to it.
//
// One pipeline (one step of one replica) is replayed in the order that ran, each time with more of the recorded times:
//
//   work   mean over its ranks of the time in which they compute                    compute
//   T0     every cell of a kind takes the pipeline's mean, messages no time    T0 − work   schedule bubble
//   T1     every (stage, chunk, kind) takes its own mean                       T1 − T0     stage imbalance
//   T2     every cell takes its own duration                                   T2 − T1     jitter
//   T3     and messages between ranks take their time                          T3 − T2  ┐
//   T4     and ranks sit in their receives though the input is there           T4 − T3  ┴  message latency
//   span   first start to last end of its compute cells, as recorded           span − T4   rest
//   step   the step around it                                                  step − span tail
//
// Parts may be negative and are kept so; docs/analyses/waterfall.md says what that means.
#pragma once

#include "pipeline/measure/step_tail.h"
#include "pipeline/replay/theory.h"

namespace stageline {

enum class WaterfallPart : uint8_t { kCompute, kSchedule, kImbalance, kJitter, kLatency, kRest, kTail };
inline constexpr size_t kWaterfallParts = 7;
inline constexpr size_t kPipelineParts = 6;  // the parts before the tail; they add up to the pipeline's span
std::string_view waterfall_part_name(WaterfallPart part);  // "compute", "schedule bubble", …

struct WaterfallStep {
  int32_t step = 0, dp = 0;
  bool outlier = false;                                      // in PipelineSums::outliers, so not part of the means
  ByEnum<WaterfallPart, double, kWaterfallParts> part_ns{};  // for each WaterfallPart; they add up to span_ns
  ByEnum<TailPart, double, kTailParts> tail_ns{};            // for each TailPart; NaN without a common clock
  double order_ns = 0;     // part of the schedule bubble: T0 minus T0 in the recognised schedule's order; NaN: unknown
  double held_ns = 0;      // part of the message latency: ranks sat in a receive whose input was there
  double span_ns = 0;      // of the step
  double pipeline_ns = 0;  // of this replica's compute cells
  // These are on every rank's own clock, the longest over the replica's ranks. They are the time from first start to
  // last end of compute cells, the same of all cells but messages, and the time in compute cells.
  double own_pipeline_ns = 0, own_span_ns = 0, busiest_ns = 0;
};

// Means over the ranks of one stage, over pipelines that are not outliers. The parts add up to pipeline_ns.
struct WaterfallStage {
  int32_t stage = 0;
  int64_t ranks = 0;                                        // number of (step, rank) in the mean
  ByEnum<WaterfallPart, double, kPipelineParts> part_ns{};  // kCompute: its own busy time; the others: its waits
  double pipeline_ns = 0;
};

// The number of directed pairs of ranks by the evidence for their message latency.
struct LatencyEvidence {
  int64_t by_messages = 0, by_gaps = 0, unknown = 0;  // unknown pairs take the median of the others
  double median_ns = 0;                               // over all pairs
};

struct Waterfall {
  Text why_not;                      // why there is no waterfall, in words; "" where there is one
  bool clock_free = false;           // ranks share no clock: spans are the longest of any rank, and latency is unknown
  std::vector<WaterfallStep> steps;  // by step, then replica
  std::vector<WaterfallStage> stages;  // by stage
  LatencyEvidence latency;
  int64_t unnumbered = 0, without_producer = 0, broken = 0;  // counts of units, over all pipelines; see OrderGraph
  int64_t units = 0;
  double overlap_ns = 0, busy_ns = 0;  // over all pipelines
  bool known() const { return why_not.empty(); }
};

// One stretch in which a rank waits: before one of its units, or after its last one until the pipeline ends. The same
// replays divide it among its causes, rank by rank; summed over a stage's ranks this gives the stage's row in `stages`.
struct WaterfallBubble {
  int32_t step = 0, part = 0;
  int64_t start_ns = 0, end_ns = 0;                 // common time; both are equal where only the replays wait
  std::array<float, kPipelineParts - 1> part_ns{};  // kSchedule … kRest, may be below 0; they add up to its duration
};

// The mean over pipelines that are not outliers; its step and dp are kUnknown. When there is none, its times are 0 and
// order_ns is NaN.
WaterfallStep mean_of(const Waterfall& waterfall);

// Expects sorted cells and drawn links; `theory` and `sums` of this trace. Never fails: why_not says so. O(cells), in
// parallel over pipelines; the same whatever the number of threads.
// `take` (if given) is called with the bubbles of one pipeline after the other, by step, replica, rank and time; with
// none where ranks share no clock. There are about as many as cells. `of_step` (if given) says which steps the answer
// has; the others add only to what messages usually take.
using TakeBubbles = std::function<void(const std::vector<WaterfallBubble>& of_pipeline)>;
using IsStep = std::function<bool(int32_t step)>;
Waterfall waterfall_of(const Trace& trace, const TheoryRun& theory, const PipelineSums& sums,
                       const TakeBubbles& take = nullptr, const IsStep& of_step = nullptr);

}  // namespace stageline
