// Replays a schedule: finds when every cell runs, given what each costs.
//
// The dependencies (docs/schedules/README.md), with s as the virtual stage: F(mb, s) follows F(mb, s−1). I and B (mb,
// s) follow I or B (mb, s+1), at the last virtual stage F. W(mb, s) follows its I. A rank runs its list in order; an
// overlapped cell starts when both its actions may.
#pragma once

#include "model/schedule.h"

namespace stageline {

struct ReplayedCell {
  int64_t start_ns, end_ns;
};

struct ReplayCosts {
  // Returns the duration of one cell of a rank in nanoseconds; called once for each cell, in the rank's order.
  std::function<int64_t(int32_t rank, const ScheduleCell& cell)> cell_ns;
  // The time of a message between two different ranks, in nanoseconds.
  int64_t latency_ns = 0;
  // Returns the time that a given cell loses between the moment it could start and its start; called before cell_ns.
  // When empty, cells lose nothing.
  std::function<int64_t(int32_t rank, const ScheduleCell& cell)> delay_ns;
  // Replaces latency_ns: returns when the result of an action that ends at sent_ns arrives at another rank. It is
  // called once per message; the messages of one rank come in the rank's order.
  std::function<int64_t(int32_t from, int32_t to, const Action& sent, int64_t sent_ns)> arrival_ns;
};

// Returns start and end of every cell, [rank][index]; the rank that can start first starts at 0. Expects an order that
// check_order() accepts (those of make_schedule are accepted), so that every slot it keeps is used. Errors: kBadInput
// when the order deadlocks, naming rank and cell. O(cells).
Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const ReplayCosts& costs);

// A schedule prepared for many replays, for a search that changes costs and nothing else.
class RepeatedReplay {
 public:
  // Expects what replay() expects. Errors: those of replay(). O(cells).
  static Result<RepeatedReplay> of(const Schedule& schedule);

  // Returns the end of the last cell in nanoseconds, as replay() would find it. `cell_ns` is asked once for all cells
  // of a rank that differ in nothing but their micro-batches, and `message_ns` once for each pair of ranks that
  // exchange messages. O(cells).
  int64_t span_ns(const std::function<int64_t(int32_t rank, const ScheduleCell& cell)>& cell_ns,
                  const std::function<int64_t(int32_t from, int32_t to)>& message_ns) const;

 private:
  // A cell waits for the end of another one and for the message from there. Cell 0 ends before everything else.
  struct Wait {
    uint32_t cell = 0, link = 0;
  };
  struct Step {
    uint32_t rank, alike;
    std::array<Wait, 2> waits;  // of each action
  };
  struct Alike {  // the cells of a rank that differ in nothing but their micro-batches
    int32_t rank;
    ScheduleCell cell;  // of micro-batch 0
  };
  struct Link {
    int32_t from, to;
    bool operator==(const Link&) const = default;
  };
  explicit RepeatedReplay(size_t ranks) : ranks_(ranks), steps_(1) {}

  size_t ranks_;
  std::vector<Step> steps_;  // each behind those that it waits for; the first is cell 0
  std::vector<Alike> alike_;
  std::vector<Link> links_;
};

}  // namespace stageline
