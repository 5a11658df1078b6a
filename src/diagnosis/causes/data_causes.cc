// Causes in what cells are given: places of a step that are always long, and work that varies with the data (experts).
#include <algorithm>
#include <cmath>
#include <map>

#include "diagnosis/causes/cause_drafts.h"

namespace stageline {

void draft_positions(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const CellPositions& positions = scene.times.positions();
  for (size_t i = 0; i < std::min(positions.list.size(), kMaxWorkerCauses); ++i) {
    const CellPosition& position = positions.list[i];
    CauseDraft draft;
    draft.cause.kind = CauseKind::kPosition;
    draft.cause.stage = position.stage;
    draft.cause.chunk = position.chunk;
    draft.cause.cell_kind = position.kind;
    draft.cause.micro_batch = position.micro_batch;
    draft.cause.last_micro_batch = position.last_micro_batch;
    draft.cause.every_stage = position.every_stage;
    draft.cause.within = position.within;
    draft.cause.ratio = position.ratio;
    draft.cause.times = {{position.kind, position.own_ns, position.usual_ns}};
    draft.cause.certain = true;
    draft.without = [&positions, number = static_cast<uint8_t>(i + 1)](uint32_t op, double& dur, double&) {
      if (positions.of[op] == number) dur /= static_cast<double>(positions.factor[op]);
    };
    out.push_back(std::move(draft));
  }
}

void draft_routing(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const CellTimes::Routing& routing = scene.times.routing();
  if (!routing.known()) return;
  CauseDraft draft;
  draft.cause.kind = CauseKind::kRouting;
  draft.cause.ratio = routing.deviation;
  draft.cause.correlation = routing.correlation;
  draft.cause.count = draft.cause.of = routing.cells;
  draft.cause.certain = true;
  draft.without = [&routing](uint32_t op, double& dur, double&) { dur /= static_cast<double>(routing.factor[op]); };
  draft.evened = draft.without;
  draft.cause.guessed = routing.shared;
  draft.otherwise = [&routing](uint32_t op, double& dur, double&) {
    dur /= static_cast<double>(routing.own_factor[op]);
  };
  out.push_back(std::move(draft));
}

}  // namespace stageline
