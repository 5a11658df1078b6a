// Finds recorded sends and receives by the work they belong to.
#pragma once

#include "model/trace.h"

namespace stageline {

// Identifies a message: rank, step, direction, chunk (0 when not known) and micro-batch.
using MessagePlace = std::tuple<int32_t, int32_t, bool, int32_t, int32_t>;  // part, step, forward, chunk, micro-batch

class RecordedMessages {
 public:
  struct Stamp {
    MessagePlace place;
    int64_t start_ns, end_ns;  // on the rank's own clock
  };

  // Holds the messages that have a micro-batch; none if messages are calls of the host, whose times do not show when a
  // message arrived. O(cells log cells).
  explicit RecordedMessages(const Trace& trace);
  bool any_received() const { return !received_.empty(); }
  // Returns nullptr when no such message was recorded. O(log messages).
  const Stamp* received(const MessagePlace& place) const { return find(received_, place); }
  const Stamp* sent(const MessagePlace& place) const { return find(sent_, place); }

 private:
  static const Stamp* find(const std::vector<Stamp>& sorted, const MessagePlace& place);
  std::vector<Stamp> received_, sent_;  // ordered by place
};

}  // namespace stageline
