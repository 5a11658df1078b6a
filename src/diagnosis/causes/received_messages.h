// Decides by recorded receives, compared with the cells that waited for them, if the message was late or the host. It
// is part of causes.
//
//   producer  ▐▐▐▐|
//   receive        └────────── 25 ms ──────────┐            the message was under way until the cell began: its fault
//   cell                                        ▐▐▐▐
//   receive        └─┐
//   cell                                        ▐▐▐▐        it had come long before: the host's
#pragma once

#include "pipeline/replay/recorded_messages.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

class ReceivedMessages {
 public:
  // `trace` and `graph` must outlive it. O(cells).
  ReceivedMessages(const Trace& trace, const StepGraph& graph);
  bool any() const { return recorded_.any_received(); }
  // For how much of the time before a compute operation's start, at most `late_ns`, its message was still under way;
  // nothing where no receive of its micro-batch was recorded.
  std::optional<double> under_way_ns(uint32_t op, double late_ns) const;
  // The same without the time before its receive was called; 0 where none was recorded.
  double receiving_ns(uint32_t op, double late_ns) const;
  // The stage whose message, recorded or not, brings an operation's input; kUnknown where it waits for none.
  int32_t sender_of(uint32_t op) const;

 private:
  const RecordedMessages::Stamp* receive_of(uint32_t op) const;
  const Trace& trace_;
  const StepGraph& graph_;
  RecordedMessages recorded_;
};

}  // namespace stageline
