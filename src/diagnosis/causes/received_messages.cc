#include "diagnosis/causes/received_messages.h"

namespace stageline {

ReceivedMessages::ReceivedMessages(const Trace& trace, const StepGraph& graph)
    : trace_(trace), graph_(graph), recorded_(trace) {}

const RecordedMessages::Stamp* ReceivedMessages::receive_of(uint32_t op) const {
  if (!any() || graph_.cell[op] == kNoCell) return nullptr;
  const Cell cell = trace_.cells.at(graph_.cell[op]);
  return recorded_.received(
      {cell.part, cell.step, cell.kind == CellKind::kForward, std::max(cell.chunk, 0), cell.micro_batch});
}

std::optional<double> ReceivedMessages::under_way_ns(uint32_t op, double late_ns) const {
  const auto* received = receive_of(op);
  if (!received) return std::nullopt;
  // From the receive's end to the cell's start.
  const double before = trace_.cells.start_ns[graph_.cell[op]] - received->end_ns;
  return std::clamp(late_ns - std::max(before, 0.0), 0.0, late_ns);
}

double ReceivedMessages::receiving_ns(uint32_t op, double late_ns) const {
  const auto* received = receive_of(op);
  return received ? std::min<double>(*under_way_ns(op, late_ns), received->end_ns - received->start_ns) : 0;
}

int32_t ReceivedMessages::sender_of(uint32_t op) const {
  const StepGraph& g = graph_;
  for (const uint32_t on : g.waits(op)) {
    if (!is_message(g.kind[on])) continue;
    if (g.cell[on] == kNoCell)
      for (const uint32_t from : g.waits(on))
        if (g.stage(from) != g.stage(op)) return g.stage(from);
    if (g.group(on) == kNoGroup) continue;
    const GraphGroup& group = g.groups[g.group(on)];
    for (uint32_t i = group.begin; i < group.end && i < group.begin + 4; ++i)
      if (g.stage(i) != g.stage(op)) return g.stage(i);
  }
  return kUnknown;
}

}  // namespace stageline
