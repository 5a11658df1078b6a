#include "diagnosis/causes/rank_sends.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stageline {
namespace {

constexpr double kAtOnce = 0.05;  // share of the median cell; a cell that starts this soon after a send waited for it
// Minimum share of the late time around a rank's sends in cells that start when the send ends.
constexpr double kBySend = 0.8;

struct Send {
  int32_t part, step;
  int64_t start_ns, end_ns;
  bool forward;
  auto place() const { return std::pair(part, step); }
};

// All sends, sorted by rank, step and end.
std::vector<Send> sorted_sends(const Cells& cells) {
  std::vector<Send> sends;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.kind[i] == CellKind::kSendForward || cells.kind[i] == CellKind::kSendBackward)
      sends.push_back(
          {cells.part[i], cells.step[i], cells.start_ns[i], cells.end_ns[i], cells.kind[i] == CellKind::kSendForward});
  std::ranges::sort(sends, {}, [](const Send& a) { return std::tuple(a.part, a.step, a.end_ns, a.start_ns); });
  return sends;
}

}  // namespace

// A send that does not block runs while its rank does something else, so few late cells start just when a send ends. If
// nearly all do, they waited for it.
std::shared_ptr<const RankSends> find_rank_sends(const CauseScene& scene, double cell_ns) {
  const StepGraph& graph = scene.graph;
  if (graph.source != GraphSource::kComputeCells) return nullptr;
  const std::vector<Send> sends = sorted_sends(scene.trace.cells);
  if (sends.empty()) return nullptr;
  auto found = std::make_shared<RankSends>();
  double late_ns = 0;  // delays of cells that started while a send of their rank ran, or just after its end
  scene.each_op([&](uint32_t op, size_t) {
    const double delay = graph.delay_ns[op];
    if (!scene.tells_delay(op) || graph.cell[op] == kNoCell || !(delay >= kLateWorker * cell_ns)) return;
    const Cell cell = scene.trace.cells.at(graph.cell[op]);
    const auto begin = cell.start_ns - static_cast<int64_t>(delay);
    const auto slack = static_cast<int64_t>(kAtOnce * cell_ns);
    // Finds the last send that ended by the cell's start, and whether one still ran then.
    auto at = std::ranges::partition_point(sends, [&](const Send& s) {
      return std::tuple(s.part, s.step, s.end_ns) <= std::tuple(cell.part, cell.step, cell.start_ns + slack);
    });
    if (at != sends.end() && at->place() == std::pair(cell.part, cell.step) && at->start_ns < cell.start_ns) {
      late_ns += delay;  // a send goes on, so this cell did not wait for it
      return;
    }
    if (at == sends.begin() || (--at)->place() != std::pair(cell.part, cell.step) || at->end_ns <= begin) return;
    late_ns += delay;
    if (cell.start_ns - at->end_ns > slack) return;
    const double blocked = std::min(at->end_ns, cell.start_ns) - std::max(begin, at->start_ns);
    if (!(blocked > 0)) return;
    found->ns += std::min(blocked, delay);
    found->blocked[op] = {std::min(blocked, delay), at->forward};
    ++found->count;
  });
  return found->count >= kMinLateCells && found->ns >= kBySend * late_ns ? found : nullptr;
}

}  // namespace stageline
