// One cause: what it is, where, how sure, and what it costs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"
#include "pipeline/sums/course.h"

namespace stageline {

enum class CauseKind : uint8_t {
#define CAUSE(kind, name, finding, suspicion) kind,
#include "diagnosis/causes/causes.def"
#undef CAUSE
};

// What causes.def says of a cause.
struct CauseInfo {
  std::string_view name, finding, suspicion;
};
const CauseInfo& cause_info(CauseKind kind);

// Times of one kind of cell, or of messages (kOther).
struct CauseTimes {
  CellKind kind;
  double own_ns, others_ns;  // mean time of one of them
};

// How late the late messages of a link are. Such delays follow Pareto's law from the shortest one on, as delays by
// retransmission do.
//
//     late by 8 … 60 ms, thirteen of them        320 ms: one of fourteen by the same law in one run of eight
class LateLengths {
 public:
  LateLengths() = default;
  explicit LateLengths(const std::vector<double>& late_ns);
  // Whether a message that is late by `ns` may be of the same kind as these: that among so many one is as late, or
  // later, happens in at least one run of a hundred.
  bool may_hold(double ns) const;

 private:
  // spread_: mean logarithm of the ratios to the shortest one (Hill's estimator).
  double min_ns_ = 0, spread_ = 0, count_ = 0;
};

struct Cause {
  CauseKind kind = CauseKind::kSlowStage;
  int32_t stage = kUnknown;  // of a link: the receiving stage
  // Of a stage: the one that holds the same layers for the other direction and is slow as well.
  int32_t mirror = kUnknown;
  int32_t chunk = kUnknown;             // of a stage: its slow chunk, where it has several and one is slow
  int32_t from_stage = kUnknown;        // of a link: the sending stage
  int32_t micro_batch = kUnknown;       // of a position: its micro-batch; with stage kUnknown it is long on most stages
  int32_t last_micro_batch = kUnknown;  // of a position: the last of several neighbours that are equally long
  bool every_stage = false;             // of a position on most stages: it is long on all of them
  Course within;                        // of a position: the shape that times of all micro-batches of a step follow
  double correlation = 0;               // of routing: correlation of forwards with the backwards of the same work
  std::vector<int32_t> parts;           // of a slow group: the ranks that are slow together
  bool whole_replica = false;           // of a slow group or worker: all ranks of its replica are slow
  bool graded = false;                  // of a slow group: no two replicas are alike, so none of them is the usual one
  int32_t fastest = kUnknown;           // of a graded group: the replica that the others are compared with
  // lost_ns by another reading of what is normal; of a graded group, compared with the median replica.
  double otherwise_ns = 0;
  // Of routing: replicas that have more work all along. The same data may cause that, so they are told together with
  // it, and `joint_ns` is the price of both.
  std::vector<int32_t> replicas;
  bool merged_into_data_cause = false;  // of a slow group or worker: the routing cause tells it
  Course course;                        // of a stage, worker, group, or of all ranks: their ratio by step
  Course lost_course;                   // what the cause costs by step, in ns, where that follows a shape in time
  // Of a message tail, late starts, and pauses that may be messages: nobody recorded messages, so host and message
  // cannot be told apart. Of time between steps: no optimizer was recorded, so it may be part of that time. Of routing:
  // the price is an estimate from how much the work scatters (CellTimes::Routing::shared).
  bool guessed = false;
  // Of a slow link: nobody recorded its messages, and work that starts late tells of them.
  bool unrecorded = false;
  // Of a link, and of pauses that may be messages: nobody can tell which direction is slow; then from_stage < stage.
  bool both_ways = false;
  int32_t dp = kUnknown;    // of a worker; of a link that is slow in one replica
  int32_t part = kUnknown;  // of a worker: its first rank; of late starts: the rank that has most of them
  double ratio = 1;         // its time to the others'; of late starts: the share of late cells on the worst rank
  std::vector<CauseTimes> times;
  bool one_kind = false;  // of a stage: only its work of one kind takes longer than that of the other stages
  // Of late starts: cells that wait only for their own rank are not late, so no host is to blame.
  bool hosts_prompt = false;
  bool collector = false;  // of pauses: they are rare, long and on several ranks, as those of a garbage collector are
  std::string name;        // of time between steps, of a tail: its recorded name; "" if it has none
  // Of a tail that gathers what is scattered, or scatters what is gathered: the name of its counterpart, which moves as
  // many bytes between the same ranks and takes far less time.
  std::string twin;
  // Of a tail: kCollective, kOptimizer, or kOther for idle time before these; of a late worker: its only late
  // direction.
  CellKind cell_kind = CellKind::kOther;
  std::vector<int32_t> at_steps;  // of time between steps: the steps after the gaps; of one or two pauses: their steps
  std::map<int32_t, double> held_ns;  // of time between steps: its length before each of the run's steps
  int64_t count = 0;  // number of pauses, of late cells (late starts), of long sequences, or of lists (order)
  int64_t of = 0;     // out of how many
  // Of pauses at the same places of every step: one cell for each place, the most frequently late first.
  std::vector<uint32_t> at;
  // Of pauses of one rank: all are at its first cell of a step; `name` says what was recorded there.
  bool first_of_step = false;
  int64_t ranks = 0;     // of pauses and late starts: on how many ranks
  double pause_ns = 0;   // mean delay of one, beyond the usual delay
  LateLengths lengths;   // of late messages
  bool outside = false;  // of time between steps: it is in long gaps only, which are not part of CauseList::step_ns
  // Number of steps in which its ratio is 1.05 or more, and of steps that were looked at.
  int64_t slowest_in = 0, steps = 0;
  // Of time between steps: it comes before some steps only, beyond what is usual; of a worker or stage: it is slow in
  // `slowest_in` steps only, and `ratio` is of these.
  bool sometimes = false;
  // The cells by themselves put the cause beyond chance, even if what it costs differs much from step to step.
  bool certain = false;
  double lost_ns = 0;   // what it costs the mean step
  double error_ns = 0;  // standard error of lost_ns over steps; NaN with one step
  // Of several slow stages, of several slow links, and of routing: what all of them cost together. Removing only one
  // may save nothing, because the others still hold the step up. 0: there is no other.
  double joint_ns = 0, joint_error_ns = 0;
  // What evening out saves where work can only be moved: stages all at their mean, sequences dealt evenly.
  double saving_ns = 0;
  // Of a slow stage: it costs much, but spreading its work over all stages saves too little. Then saving_ns is 0.
  bool unmovable = false;
  // Of an unmovable stage: what spreading its work saves once all other causes are gone, where that is enough; else 0.
  double movable_ns = 0;
  // Of a slow stage, filled by price_in_layers(): layers per virtual stage in the best split into whole layers, and
  // what that split saves; empty and 0 before, and where no split gains.
  std::vector<int32_t> new_layers;
  double layers_ns = 0;
  // Moving whole layers saves less than half of what an even split would: most of the excess is the embedding's or the
  // head's.
  bool layers_bring_little() const { return layers_ns > 0 && layers_ns < 0.5 * saving_ns; }
  // What a fix saves: by whole layers where these bring little; else by evening out where that is known to save
  // something; else all that is lost.
  double price_ns() const { return layers_bring_little() ? layers_ns : saving_ns > 0 ? saving_ns : lost_ns; }
};

std::string_view finding_id(const Cause& cause);  // id of the finding that tells the cause

inline constexpr double kMinLost = 0.01;       // share of the step; a cause that costs less is not named
void sort_causes(std::vector<Cause>& causes);  // by price_ns(), equal ones by lost_ns

// One line of the account of a step: time that is neither compute nor the schedule's, and that no cause is named for.
struct AccountLine {
  // "imbalance", "jitter", "replica-jitter" (waits for the slowest replica of a step), "message", "late", "tail",
  // "between", "rest": what the replays do not return
  std::string_view id;
  std::string name;                  // of a tail or a gap: the collective, the phase
  CellKind kind = CellKind::kOther;  // of a tail
  double ns = 0;                     // of the mean step; below 0 as in the waterfall
  double error_ns = 0;               // its standard error over steps, where replays tell it; NaN for one step
};

}  // namespace stageline
