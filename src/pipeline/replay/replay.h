// Replays a schedule: finds when every cell runs, given what each costs.
//
// The dependencies (docs/schedules/README.md), with s as the virtual stage: F(mb, s) follows F(mb, s−1). I and B (mb,
// s) follow I or B (mb, s+1), at the last virtual stage F. W(mb, s) follows its I. A rank runs its list in order; an
// overlapped cell starts when both its actions may.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
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
  // NOLINTBEGIN(readability-redundant-member-init): GCC wants them
  // Returns the time that a given cell loses between the moment it could start and its start; called before cell_ns.
  // When empty, cells lose nothing.
  std::function<int64_t(int32_t rank, const ScheduleCell& cell)> delay_ns = {};
  // Replaces latency_ns: returns when the result of an action that ends at sent_ns arrives at another rank. It is
  // called once per message; the messages of one rank come in the rank's order.
  std::function<int64_t(int32_t from, int32_t to, const Action& sent, int64_t sent_ns)> arrival_ns = {};
  // NOLINTEND(readability-redundant-member-init)
};

// Returns start and end of every cell, [rank][index]; the rank that can start first starts at 0. Expects an order that
// check_order() accepts (those of make_schedule are accepted), so that every slot it keeps is used. Errors: kBadInput
// when the order deadlocks, naming rank and cell. O(cells).
Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const ReplayCosts& costs);

}  // namespace stageline
