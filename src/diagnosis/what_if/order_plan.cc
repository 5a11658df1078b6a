#include "diagnosis/what_if/order_plan.h"

#include "base/error_words.h"
#include "pipeline/order/check_order.h"
#include "pipeline/replay/schedule_numbers.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

enum : uint8_t { kF, kB, kI, kW };  // columns of a plan's slot costs

uint8_t column_of(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return kF;
    case CellKind::kInputGrad: return kI;
    case CellKind::kWeightGrad: return kW;
    default: return kB;
  }
}

// The schedule with the most frequent list of every stage; nothing where a stage has no whole list, or where the lists
// cannot run together.
std::optional<Schedule> as_it_ran(const RankLists& lists, Schedule schedule) {
  std::vector<const WorkList*> max(schedule.ranks.size(), nullptr);
  const WorkLists work = work_lists(lists);
  for (const WorkList& list : work.lists) {
    if (list.stage < 0 || static_cast<size_t>(list.stage) >= max.size() ||
        list.micro_batches != schedule.sizes.micro_batches)
      continue;
    const WorkList*& best = max[list.stage];
    if (!best || list.count > best->count) best = &list;
  }
  for (size_t stage = 0; stage < max.size(); ++stage) {
    if (!max[stage]) return std::nullopt;
    RankOrder order;
    const std::vector<WorkToken>& tokens = max[stage]->tokens;
    for (size_t t = 0; t < tokens.size(); ++t) {
      if (tokens[t].micro_batch < 0 || tokens[t].chunk < 0) return std::nullopt;
      const Action action{tokens[t].kind, tokens[t].micro_batch, tokens[t].chunk};
      if (tokens[t].fused && t + 1 < tokens.size() && tokens[t + 1].fused) {
        ++t;
        order.emplace_back(action, Action{tokens[t].kind, tokens[t].micro_batch, tokens[t].chunk});
      } else {
        order.emplace_back(action);
      }
    }
    schedule.ranks[stage] = std::move(order);
  }
  if (!check_order(schedule)) return std::nullopt;
  return schedule;
}

}  // namespace

Result<OrderPlan> compile_schedule(Schedule schedule) {
  size_t count = sum_over<size_t>(schedule.ranks, &RankOrder::size);
  OrderPlan plan;
  const int32_t m = schedule.sizes.micro_batches, v = schedule.sizes.chunks;
  const size_t stages = virtual_stage_count(schedule);
  std::vector<uint32_t> forward(stages * m, kNoCell), backward = forward;
  std::vector<size_t> next(schedule.ranks.size(), 0);
  std::vector<uint32_t> last(schedule.ranks.size(), kNoCell);
  const auto at = [&](int32_t stage, int32_t mb) { return stage * static_cast<size_t>(m) + mb; };
  ReplayCosts costs;
  // A replay asks for a cell's cost when everything that the cell waits for has run, which is the order that plans
  // need.
  costs.cell_ns = [&](int32_t rank, const ScheduleCell& cell) -> int64_t {
    const size_t r = rank;
    const auto index = static_cast<uint32_t>(plan.cells.size());
    OrderPlan::Cell c{{0, 0},  {0, 0}, static_cast<uint8_t>(cell.actions().size()), rank, last[r], {kNoCell, kNoCell},
                      {-1, -1}};
    for (size_t a = 0; a < 2; ++a) {
      const Action& action = cell.actions()[std::min(a, cell.actions().size() - 1)];
      c.slot[a] = static_cast<uint32_t>((rank * static_cast<size_t>(v) + action.chunk) * m + action.micro_batch);
      c.kind[a] = column_of(action.kind);
      if (a >= cell.actions().size()) continue;
      const int32_t stage = virtual_stage(schedule, rank, action.chunk);
      const bool down = action.kind == CellKind::kForward;
      uint32_t after = kNoCell;
      if (down) after = stage == 0 ? kNoCell : forward[at(stage - 1, action.micro_batch)];
      else if (action.kind == CellKind::kWeightGrad || static_cast<size_t>(stage) + 1 == stages)
        after = (action.kind == CellKind::kWeightGrad ? backward : forward)[at(stage, action.micro_batch)];
      else after = backward[at(stage + 1, action.micro_batch)];
      c.after[a] = after;
      if (after != kNoCell && plan.cells[after].stage != rank) c.edge[a] = 2 * rank + (down ? 0 : 1);
    }
    plan.cells.push_back(c);
    for (const Action& action : cell.actions()) {
      const size_t slot = at(virtual_stage(schedule, rank, action.chunk), action.micro_batch);
      if (action.kind == CellKind::kForward) forward[slot] = index;
      else if (action.kind != CellKind::kWeightGrad) backward[slot] = index;
    }
    last[r] = index;
    return UnitCosts{}.of(cell);
  };
  plan.cells.reserve(count);
  auto times = replay(schedule, costs);
  if (!times) return std::move(times).error();
  const double share = schedule.layout == ChunkLayout::kBidirectional ? 1 : 1.0 / v;
  for (const RankNumbers& rank : schedule_numbers(schedule, *times).ranks)
    plan.held.push_back(rank.activations * share);
  for (RankOrder& order : schedule.ranks) order = {};
  plan.schedule = std::move(schedule);
  return plan;
}

Result<Schedule> order_of(std::string_view name, const ScheduleSizes& sizes) {
  // The size is checked before the order is made: there are a forward and a backward for every chunk of every
  // micro-batch.
  const double min = 2.0 * sizes.stages * sizes.micro_batches * (name == "dualpipe" ? 1 : sizes.chunks);
  if (min > kMaxPlanCells)
    return worded_error(
        ErrorCode::kLimit, "order.too_many_cells",
        Args().set("schedule", std::string(name)).set("cells", fixed(min, 0)).set("max", int64_t{kMaxPlanCells}), {},
        "ask for fewer micro-batches or chunks");
  return make_schedule(name, sizes);
}

Result<OrderPlan> compile_order(std::string_view name, const ScheduleSizes& sizes) {
  TRY(made, order_of(name, sizes));
  return compile_schedule(std::move(*made));
}

std::optional<OrderPlan> compile_as_it_ran(const RankLists& lists, std::string_view name, const ScheduleSizes& sizes) {
  Result<Schedule> made = make_schedule(name, sizes);
  if (!made) return std::nullopt;
  std::optional<Schedule> ran = as_it_ran(lists, std::move(*made));
  if (!ran) return std::nullopt;
  Result<OrderPlan> plan = compile_schedule(std::move(*ran));
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

void add_order_cells(const OrderPlan& plan, int32_t dp, const std::vector<double>& start,
                     const std::vector<double>& end, std::vector<OrderCell>& out) {
  constexpr CellKind kKinds[] = {CellKind::kForward, CellKind::kBackward, CellKind::kInputGrad, CellKind::kWeightGrad};
  const uint32_t m = plan.schedule.sizes.micro_batches;
  const uint32_t v = plan.schedule.sizes.chunks;
  for (size_t c = 0; c < plan.cells.size(); ++c)
    for (size_t k = 0; k < plan.cells[c].count; ++k) {
      const uint32_t slot = plan.cells[c].slot[k];
      out.push_back({dp, plan.cells[c].stage, static_cast<int32_t>(slot / m % v), static_cast<int32_t>(slot % m),
                     kKinds[plan.cells[c].kind[k]], start[c], end[c]});
    }
}

}  // namespace stageline
