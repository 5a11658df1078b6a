#include "pipeline/cells/range_rows.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr int32_t kMaxChunksTried = 8;
constexpr int64_t kMaxRows = int64_t{1} << 20;  // limit on the forwards of one hypothesis, over all stages
constexpr int64_t kMaxPlanned = 1 << 14;

CellKind shown_kind(const ScheduleCell& cell) {
  if (cell.overlapped()) return CellKind::kForwardBackward;
  const CellKind kind = cell.actions()[0].kind;
  return kind == CellKind::kInputGrad ? CellKind::kBackward : kind;
}

CellKind shown_kind(CellKind kind) { return kind == CellKind::kInputGrad ? CellKind::kBackward : kind; }

bool number_fits(int32_t stated, const Action& action, bool offset, int32_t micro_batches) {
  if (stated == kUnknown) return true;
  return int64_t{stated} == int64_t{action.micro_batch} + (offset ? int64_t{action.chunk} * micro_batches : 0);
}

// The kinds of work of the run, to skip schedules that have others.
struct Kinds {
  bool overlaps = false, weights = false;
};
Kinds kinds_of(const std::vector<std::vector<ExpectedRow>>& stages) {
  Kinds kinds;
  for (const auto& rows : stages)
    for (const ExpectedRow& row : rows) {
      kinds.overlaps |= row.kind == CellKind::kForwardBackward;
      kinds.weights |= row.kind == CellKind::kWeightGrad;
    }
  return kinds;
}

}  // namespace

int32_t chunks_of_a_micro_batch(const Schedule& schedule) {
  return schedule.layout == ChunkLayout::kBidirectional ? 1 : schedule.sizes.chunks;
}

std::vector<ExpectedRow> expected_rows(const RowHypothesis& hypothesis, int32_t stage) {
  const Schedule& schedule = hypothesis.schedule;
  std::vector<ExpectedRow> rows;
  for (const ScheduleCell& cell : schedule.ranks[stage]) {
    if (hypothesis.apart && cell.overlapped()) {
      for (const Action& action : cell.actions()) rows.push_back({.kind = action.kind, .actions = {action, {}}});
      continue;
    }
    ExpectedRow row{.kind = shown_kind(cell), .action_count = 0};
    for (const Action& action : cell.actions()) {
      row.actions[row.action_count++] = action;
      const bool backward = is_backward(action.kind);
      if (!hypothesis.logits || stage != 0 || !backward || action.chunk != schedule.sizes.chunks - 1) continue;
      ExpectedRow head{.kind = CellKind::kBackward, .head = true};
      head.actions[0] = {CellKind::kBackward, action.micro_batch, action.chunk};
      rows.push_back(head);
    }
    rows.push_back(row);
  }
  return rows;
}

bool can_be(const RangeRow& found, const ExpectedRow& expected, bool offset, int32_t micro_batches) {
  if (shown_kind(found.kind) != expected.kind) return false;
  if (!number_fits(found.micro_batch, expected.actions[0], offset, micro_batches)) return false;
  if (found.chunk != kUnknown && found.chunk != expected.actions[0].chunk) return false;
  if (expected.action_count < 2) return true;
  return number_fits(found.other_micro_batch, expected.actions[1], offset, micro_batches) &&
         (found.other_chunk == kUnknown || found.other_chunk == expected.actions[1].chunk);
}

std::vector<RowHypothesis> row_hypotheses(const HypothesisFacts& facts) {
  std::vector<RowHypothesis> out;
  const auto add = [&](const char* name, const ScheduleSizes& sizes, bool logits, bool apart) {
    const int64_t size = int64_t{sizes.stages} * sizes.micro_batches * sizes.chunks;
    // The order of this schedule is found by a search, which takes longer.
    const bool planned = std::string_view(name) == "zbvpp";
    if (size > (planned ? kMaxPlanned : kMaxRows) || (planned && !facts.weights)) return;
    Result<Schedule> made = make_schedule(name, sizes);
    if (!made) return;
    RowHypothesis one{.schedule = std::move(*made), .logits = logits, .apart = apart};
    one.offset = facts.largest != kUnknown && facts.largest >= one.schedule.sizes.micro_batches;
    for (int32_t stage = 0; stage < sizes.stages; ++stage) one.stages.push_back(expected_rows(one, stage));
    const Kinds kinds = kinds_of(one.stages);
    if (kinds.overlaps != facts.overlaps || (facts.weights && !kinds.weights)) return;
    out.push_back(std::move(one));
  };
  for (const ScheduleDef* def : schedules()) {
    const int32_t min = def->default_chunks == def->max_chunks ? def->max_chunks : 2;
    for (int32_t chunks = min; chunks <= std::min(def->max_chunks, std::max(min, kMaxChunksTried)); ++chunks) {
      if (facts.forwards % chunks != 0 || (facts.chunks_known > 0 && facts.chunks_known > chunks)) continue;
      ScheduleSizes sizes{.stages = facts.stages, .micro_batches = facts.forwards / chunks, .chunks = chunks};
      // Each micro-batch passes a rank in one direction only, so it has one forward there.
      if (std::string_view(def->name) == "dualpipe") sizes.micro_batches = facts.forwards;
      const bool mindspeed = std::string_view(def->name) == "dualpipe-v-mindspeed";
      for (const bool detach : {false, true}) {
        if (detach && !mindspeed) continue;
        sizes.dw_detach = detach;
        if (mindspeed) add(def->name, sizes, true, false);
        add(def->name, sizes, false, mindspeed && !facts.overlaps);
      }
    }
  }
  sort_stably(out, [&](const RowHypothesis& a, const RowHypothesis& b) {
    return (a.schedule.name == facts.named) > (b.schedule.name == facts.named);
  });
  return out;
}

std::string row_text(const ExpectedRow& row, bool with_chunk) {
  if (row.head) return "the loss's backward of " + std::to_string(row.actions[0].micro_batch);
  return cell_text(row.action_count == 2 ? ScheduleCell(row.actions[0], row.actions[1]) : ScheduleCell(row.actions[0]),
                   with_chunk);
}

}  // namespace stageline
