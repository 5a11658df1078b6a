#include "pipeline/replay/recorded_messages.h"

namespace stageline {

RecordedMessages::RecordedMessages(const Trace& trace) {
  if (trace.messages_are_calls) return;
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellKind kind = cells.kind[i];
    if (!is_message(kind) || cells.micro_batch[i] == kUnknown) continue;
    (is_receive(kind) ? received_ : sent_)
        .push_back(
            {{cells.part[i], cells.step[i], is_of_forward(kind), std::max(cells.chunk[i], 0), cells.micro_batch[i]},
             cells.start_ns[i],
             cells.end_ns[i]});
  }
  for (std::vector<Stamp>* stamps : {&received_, &sent_})
    std::stable_sort(stamps->begin(), stamps->end(), [](const Stamp& a, const Stamp& b) { return a.place < b.place; });
}

const RecordedMessages::Stamp* RecordedMessages::find(const std::vector<Stamp>& sorted, const MessagePlace& place) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), place,
                                   [](const Stamp& stamp, const MessagePlace& wanted) { return stamp.place < wanted; });
  return at != sorted.end() && at->place == place ? &*at : nullptr;
}

}  // namespace stageline
