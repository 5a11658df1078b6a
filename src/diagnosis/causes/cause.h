// One cause: what it is, where, how sure, and what it costs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/course.h"
#include "model/trace.h"

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

struct CauseTimes {  // of one kind of cell, or of messages (kOther)
  CellKind kind;
  double own_ns, others_ns;  // means of one
};

// How long late messages are, beyond the usual: as lengths of retransmissions are, by Pareto's law from the shortest
// on.
//
//     late by 8 … 60 ms, thirteen of them        320 ms: one of fourteen by the same law in one run of eight
class LateLengths {
 public:
  LateLengths() = default;
  explicit LateLengths(const std::vector<double>& late_ns);
  // Whether one that is late by `ns` may be of the same kind as these: among so many one as long, or longer, is no
  // matter of one run in a hundred.
  bool may_hold(double ns) const;

 private:
  double least_ns_ = 0, spread_ = 0, count_ = 0;  // spread: mean logarithm of their ratios to the shortest (Hill)
};

struct Cause {
  CauseKind kind = CauseKind::kSlowStage;
  int32_t stage = kUnknown;        // of a link: who receives
  int32_t mirror = kUnknown;       // of a stage: the one with the same layers for the other direction, slow as well
  int32_t chunk = kUnknown;        // of a stage with several of which one is slow
  int32_t from_stage = kUnknown;   // of a link
  int32_t micro_batch = kUnknown;  // of a position: always that one; stage kUnknown: on most stages
  int32_t last_micro_batch = kUnknown;  // of a position: the last of several in a row that are long alike
  bool every_stage = false;             // of a position on most stages: on all of them
  Course within;                        // of a position: the shape that all micro-batches of a step have
  double correlation = 0;               // of routing: of forwards with backwards of the same cells
  std::vector<int32_t> parts;           // of a slow group: the ranks that are slow together
  bool whole_replica = false;           // of a slow group or worker: all ranks of its replica are
  bool graded = false;         // of a slow group: no two replicas are alike, so that none of them is the usual one
  int32_t fastest = kUnknown;  // of a graded one: the replica that the others are measured by
  double otherwise_ns = 0;     // what it costs by another reading of what is normal; of a graded one by the median
  // Of routing: replicas that have more work all along, which the same data may be. They are told with it: `joint_ns`.
  std::vector<int32_t> replicas;
  bool told_with_data = false;  // of a slow group or worker: routing tells it
  Course course;                // of a stage, worker, group or all of them: their ratio by step
  Course lost_course;           // what it costs by step, in ns, where that has a shape in time
  // Of time between steps: no optimizer was recorded, which then is part of it.
  // Of routing: its price is an estimate from how much the work scatters (CellTimes::Routing::shared).
  bool guessed = false;  // of a message tail: nobody recorded messages, so the host may be it as well
  // Of a link, and of pauses that may be messages: nobody can tell which way is slow; from_stage < stage.
  bool both_ways = false;
  int32_t dp = kUnknown;    // of a worker; of a link that is slow in one replica
  int32_t part = kUnknown;  // of a worker: its first rank; of late starts: the worst rank
  double ratio = 1;         // its time to the others'; of late starts: share of the worst rank's cells
  std::vector<CauseTimes> times;
  bool one_kind = false;      // of a stage: its work of other kinds takes no longer than the other stages'
  bool hosts_prompt = false;  // late starts: what waits for its own rank alone is not late, so that no host is to blame
  bool collector = false;     // pauses: rare, long and on several ranks, as a garbage collector's are
  std::string name;           // between steps, tail: what it is called; "" of what nobody named
  // Of a gathering of what is scattered, or the other way round: the other one, which moves as many bytes between the
  // same ranks and takes far less.
  std::string twin;
  CellKind cell_kind = CellKind::kOther;  // of a tail: collective or optimizer
  std::vector<int32_t> at_steps;          // between steps: those that it comes before; of one or two pauses: theirs
  std::map<int32_t, double> held_ns;      // between steps: how long before each of the run's steps
  int64_t count = 0;                      // pauses, late starts: late cells; long sequences: long ones; order: lists
  int64_t of = 0;                         // all of them
  std::vector<uint32_t> at;  // pauses that stand at the same places of every step: one cell each, most late first
  bool first_of_step =
      false;             // pauses of one rank: all at its first cell of a step; `name`: of what was recorded there
  int64_t ranks = 0;     // pauses, late starts: on so many
  double pause_ns = 0;   // mean delay of one, beyond the usual
  LateLengths lengths;   // late messages: of all of them
  bool outside = false;  // between steps: of long gaps, which are no part of CauseList::step_ns
  int64_t slowest_in = 0, steps = 0;  // steps in which it is beyond 1.05 × the others, of those looked at
  bool sometimes = false;  // between steps: before some steps, beyond the usual; a worker or stage that is slow in
                           // `slowest_in` steps and like the others else; `ratio` is of these
  // Beyond chance by the cells themselves, whatever it costs: how much that is may still differ from step to step.
  bool certain = false;
  double lost_ns = 0;   // of the mean step
  double error_ns = 0;  // standard error of lost_ns over steps; NaN for one
  // Of several slow stages, of several slow links, and of routing, what all of them cost together: each alone may bring
  // nothing, for the others still hold the step up. 0: it is the only one.
  double joint_ns = 0, joint_error_ns = 0;
  double saving_ns = 0;  // of evening out, where work can only be moved: stages at their mean, sequences dealt evenly
  // Of a slow stage: it costs much, and its work spread over all stages would cost as much. Then saving_ns is 0.
  bool unmovable = false;
  // Of a slow stage, by price_in_layers(): the best split into whole layers (by virtual stage) and what it brings;
  // empty and 0 before, and where none gains.
  std::vector<int32_t> new_layers;
  double layers_ns = 0;
  // Layers cannot even it out, for most of it is the embedding's or the head's: they bring less than half of that.
  bool layers_bring_little() const { return layers_ns > 0 && layers_ns < 0.5 * saving_ns; }
  // What a fix brings: whole layers where these cannot even it out; of evening out where that is known to bring
  // something; else all that is lost.
  double price_ns() const { return layers_bring_little() ? layers_ns : saving_ns > 0 ? saving_ns : lost_ns; }
};

std::string_view finding_id(const Cause& cause);  // of the finding that tells it

inline constexpr double kLeastLost = 0.01;     // of the step: what costs less is not named
void sort_causes(std::vector<Cause>& causes);  // by price_ns(), of equal ones by lost_ns

}  // namespace stageline
