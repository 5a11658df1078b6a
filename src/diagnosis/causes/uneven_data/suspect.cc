#include "diagnosis/causes/suspect.h"

#include "diagnosis/causes/uneven_data/uneven_data.h"

namespace stageline {

extern const CauseKind uneven_data_cause;

namespace {

void suspect_uneven_data(CauseScene& scene, std::vector<Suspect>& out) {
  const CellTimes::Routing& routing = scene.times.routing();
  if (!routing.known()) return;
  Suspect suspect;
  suspect.cause.kind = &uneven_data_cause;
  suspect.cause.own = UnevenDataOwn{routing.correlation, routing.deviation};
  suspect.cause.figures = {.count = routing.cells, .of = routing.cells};
  suspect.cause.certain = true;
  // Where all replicas have the same work at the same time, even work has to be estimated.
  suspect.cause.estimated = routing.shared;
  if (!routing.shared) suspect.cause.together = {"uneven_data", Together::Role::kLeads};
  suspect.without = [&routing](uint32_t op, double& dur, double&) { dur /= routing.factor[op]; };
  suspect.evened = suspect.without;
  suspect.otherwise = [&routing](uint32_t op, double& dur, double&) { dur /= routing.own_factor[op]; };
  out.push_back(std::move(suspect));
}

constexpr std::string_view kLines[] = {"replica-jitter"};

}  // namespace

const CauseKind uneven_data_cause = {.id = "uneven_data",
                                     .name = "uneven data",
                                     .takes_from = kLines,
                                     .of_work = true,
                                     .suspect = suspect_uneven_data,
                                     .tell = tell_uneven_data};

}  // namespace stageline
