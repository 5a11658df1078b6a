// A schedule prepared for many replays, for a search that changes costs and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"

namespace stageline {

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
