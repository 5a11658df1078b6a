// Uneven data: work varies with the data from stage to stage, as where experts get unequal shares of the tokens.
// Replicas that have more of it in every step are reported with it.
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct UnevenDataOwn {
  double correlation = 0;  // of forwards with the backwards of the same work
  double deviation = 0;    // relative standard deviation of a cell's work
};

}  // namespace

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

Telling tell_uneven_data(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<UnevenDataOwn>();
  Args args = context.args(c);
  args.set("by", percent(own.deviation)).set("correlation", fixed(own.correlation, 2)).flag("shared", c.estimated);
  // Replicas that have more work in every step: the same data may cause that.
  std::vector<std::string> replicas;
  double alone_ns = 0, ratio = 1;
  for (const Cause* with : causes.subspan(1)) {
    if (with->together.role == Together::Role::kPartOf) continue;
    alone_ns = std::max(alone_ns, with->price.lost_ns), ratio = std::max(ratio, with->figures.ratio);
    for (const Place& place : with->places) replicas.push_back(std::to_string(place.replica));
  }
  if (!replicas.empty()) {
    args.set("replicas", some_of(replicas, replicas.size()));
    args.set("more", words(replicas.size() > 1 ? "data.uneven.replicas" : "data.uneven.replica", args));
  }
  if (replicas.empty() && c.price.joint_ns > 0) args.set("lost", context.share(c.price.joint_ns));
  Telling telling = say_cause("data.uneven", "data.uneven", args);
  if (!replicas.empty() && c.price.joint_ns > 0) {
    args.set("ratio", words("times", Args().set("ratio", fixed(ratio, 2)))).set("alone", context.share(alone_ns));
    args.set("data", context.share(c.price.lost_ns)).set("joint", context.share(c.price.joint_ns));
    telling.more = words("data.uneven.joint", args);
  }
  telling.key = "routing";
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
