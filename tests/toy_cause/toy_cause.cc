// A cause for tests, with its own list of causes: all that the author of a new cause writes. The program is linked with
// this list instead of that of src/diagnosis/causes/cause_kind.cc; run.py runs it.
#include <algorithm>
#include <map>
#include <vector>

#include "diagnosis/causes/suspect.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

extern const CauseKind toy_cause;

namespace {

struct ToyOwn {
  double own_ns = 0, others_ns = 0;
};

// The stage whose mean compute cell is longest, if it is 1.2 times that of the next stage.
void suspect_toy(CauseScene& scene, std::vector<Suspect>& out) {
  struct Sum {
    double ns = 0, count = 0;
  };
  std::map<int32_t, Sum> stages;
  scene.each_op([&](uint32_t op, size_t) {
    if (!is_compute(scene.graph.kind[op])) return;
    Sum& sum = stages[scene.graph.stage(op)];
    sum.ns += scene.graph.dur_ns[op], ++sum.count;
  });
  std::vector<std::pair<double, int32_t>> means;
  for (const auto& [stage, sum] : stages) means.emplace_back(sum.ns / sum.count, stage);
  std::sort(means.rbegin(), means.rend());
  if (means.size() < 2 || means[0].first < 1.2 * means[1].first) return;
  const double ratio = means[0].first / means[1].first;
  const int32_t stage = means[0].second;
  Suspect suspect;
  suspect.cause.kind = &toy_cause;
  suspect.cause.places = {{.kind = PlaceKind::kStage, .stage = stage}};
  suspect.cause.figures = {.ratio = ratio, .stage = stage};
  suspect.cause.certain = true;
  suspect.cause.own = ToyOwn{means[0].first, means[1].first};
  suspect.without = [&graph = scene.graph, stage, ratio](uint32_t op, double& dur, double&) {
    if (is_compute(graph.kind[op]) && graph.stage(op) == stage) dur /= ratio;
  };
  out.push_back(std::move(suspect));
}

Telling tell_toy(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& cause = *causes.front();
  const auto& own = cause.own.as<ToyOwn>();
  Args args = context.args(cause);
  args.set("own", human_duration(own.own_ns)).set("others", human_duration(own.others_ns));
  return say_cause("toy.slow", "toy.slow", args);
}

}  // namespace

const CauseKind toy_cause = {.id = "toy", .name = "toy", .of_work = true, .suspect = suspect_toy, .tell = tell_toy};

std::span<const CauseKind* const> cause_kinds() {
  static constexpr const CauseKind* kKinds[] = {&toy_cause};
  return kKinds;
}

const std::vector<std::string_view>& finding_ids() {
  static const std::vector<std::string_view> ids = {"toy.slow"};
  return ids;
}

}  // namespace stageline
