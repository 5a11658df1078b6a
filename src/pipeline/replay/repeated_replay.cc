#include "pipeline/replay/replay.h"

namespace stageline {
namespace {

ScheduleCell without_micro_batch(const ScheduleCell& cell) {
  Action first = cell.actions().front(), last = cell.actions().back();
  first.micro_batch = last.micro_batch = 0;
  return cell.overlapped() ? ScheduleCell(first, last) : ScheduleCell(first);
}

}  // namespace

Result<RepeatedReplay> RepeatedReplay::of(const Schedule& schedule) {
  RepeatedReplay out(schedule.ranks.size());
  const int32_t stages = virtual_stage_count(schedule);
  std::vector<Wait> sent(2 * static_cast<size_t>(stages) * schedule.sizes.micro_batches);
  const auto slot = [&](bool forward, int32_t micro_batch, int32_t stage) -> Wait& {
    return sent[(2 * static_cast<size_t>(micro_batch) + (forward ? 1 : 0)) * stages + stage];
  };
  const auto wait_of = [&](int32_t rank, const Action& action) {
    const bool forward = action.kind == CellKind::kForward;
    const int32_t from = virtual_stage(schedule, rank, action.chunk) + (forward ? -1 : 1);
    const bool none = action.kind == CellKind::kWeightGrad || from < 0 || from >= stages;
    return none ? Wait() : slot(forward, action.micro_batch, from);
  };
  std::vector<std::vector<uint32_t>> alike_of(out.ranks_);
  // A replay takes cells in an order in which each follows what it waits for. A rank needs no wait for its own
  // cells, which run one after another.
  ReplayCosts costs;
  costs.cell_ns = [&](int32_t rank, const ScheduleCell& cell) -> int64_t {
    const ScheduleCell any = without_micro_batch(cell);
    std::vector<uint32_t>& known = alike_of[rank];
    auto at = std::ranges::find_if(known, [&](uint32_t a) { return out.alike_[a].cell == any; });
    if (at == known.end()) {
      out.alike_.push_back({rank, any});
      at = known.insert(at, static_cast<uint32_t>(out.alike_.size() - 1));
    }
    Step step{static_cast<uint32_t>(rank), *at, {}};
    for (size_t a = 0; a < cell.actions().size(); ++a) step.waits[a] = wait_of(rank, cell.actions()[a]);
    out.steps_.push_back(step);
    return 0;
  };
  costs.arrival_ns = [&](int32_t from, int32_t to, const Action& action, int64_t now) {
    const auto at = std::ranges::find(out.links_, Link{from, to});
    const auto link = static_cast<uint32_t>(at - out.links_.begin());
    if (at == out.links_.end()) out.links_.push_back({from, to});
    slot(action.kind == CellKind::kForward, action.micro_batch, virtual_stage(schedule, from, action.chunk)) = {
        static_cast<uint32_t>(out.steps_.size() - 1), link};
    return now;
  };
  TRY(cells, replay(schedule, costs));
  return out;
}

int64_t RepeatedReplay::span_ns(const std::function<int64_t(int32_t rank, const ScheduleCell& cell)>& cell_ns,
                                const std::function<int64_t(int32_t from, int32_t to)>& message_ns) const {
  std::vector<int64_t> times, messages, ends(steps_.size()), free_at(ranks_, 0);
  for (const Alike& alike : alike_) times.push_back(cell_ns(alike.rank, alike.cell));
  for (const Link& link : links_) messages.push_back(message_ns(link.from, link.to));
  messages.push_back(0);  // for cell 0 where no rank sends
  ends[0] = INT64_MIN / 2;
  for (size_t i = 1; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    int64_t& now = free_at[step.rank];
    for (const Wait& wait : step.waits) now = std::max(now, ends[wait.cell] + messages[wait.link]);
    ends[i] = now += times[step.alike];
  }
  return std::ranges::max(free_at);
}

}  // namespace stageline
