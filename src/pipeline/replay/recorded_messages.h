// Recorded sends and receives, found by the work that they are of.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "model/trace.h"

namespace stageline {

// One message is of a rank, a step, a direction, a chunk (0 where nobody said) and a micro-batch.
using MessagePlace = std::tuple<int32_t, int32_t, bool, int32_t, int32_t>;  // part, step, forward, chunk, micro-batch

class RecordedMessages {
 public:
  struct Stamp {
    MessagePlace place;
    int64_t start_ns, end_ns;  // the rank's own clock
  };

  // Those with a micro-batch. None where messages are calls of the host, which say nothing of when one arrived. O(cells
  // log cells).
  explicit RecordedMessages(const Trace& trace);
  bool any_received() const { return !received_.empty(); }
  // Null where none was recorded. O(log messages).
  const Stamp* received(const MessagePlace& place) const { return find(received_, place); }
  const Stamp* sent(const MessagePlace& place) const { return find(sent_, place); }

 private:
  static const Stamp* find(const std::vector<Stamp>& sorted, const MessagePlace& place);
  std::vector<Stamp> received_, sent_;  // by place
};

}  // namespace stageline
