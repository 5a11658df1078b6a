#include "pipeline/causes.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "model/pipeline_sums.h"
#include "model/statistics.h"
#include "pipeline/beyond_noise.h"
#include "pipeline/cause_drafts.h"
#include "pipeline/order_cause.h"

namespace stageline {
namespace {

constexpr int64_t kLeastPauses = 3;  // so many are no chance, however they fall on steps
constexpr size_t kMostHidden = 16;   // suspicions that are tried again without what was found

std::vector<CauseDraft> drafts_of(CauseScene& scene) {
  std::vector<CauseDraft> drafts;
  draft_sequences(scene, drafts);
  draft_slow_workers(scene, drafts);
  draft_slow_stages(scene, drafts);
  const LateWorkers late = draft_delays(scene, drafts);
  draft_slow_links(scene, late, drafts);
  return drafts;
}

// What is lost is less than it is worth saying; or evening out, where nothing more can be done, brings less than that.
bool costs_little(const Cause& c, const CauseList& list, bool evened) {
  const double least = kLeastLost * list.step_ns;
  return !(c.lost_ns >= least) || (evened && c.saving_ns < least);
}

// A pause is none by chance: its length is far beyond what cells differ by, and only how many fall into a step varies.
// Nor are long sequences, of which forwards and backwards agree on every stage, or what its own search found certain.
bool may_be_chance(const Cause& c, const CauseList& list) {
  const bool counted =
      c.kind == CauseKind::kPauses || c.kind == CauseKind::kLateStarts || c.kind == CauseKind::kLongSequences;
  if ((c.certain || (counted && c.count >= kLeastPauses)) && c.lost_ns > c.error_ns) return false;
  return !beyond_noise(c.lost_ns, c.error_ns, list.steps);
}

// What becomes of a suspicion: one of the list, perhaps chance, or too little to say.
enum class Verdict : uint8_t { kTaken, kDoubtful, kLittle };

Verdict take(Cause& cause, CauseList& list, bool evened) {
  if (costs_little(cause, list, evened)) return Verdict::kLittle;
  const bool sure = !may_be_chance(cause, list);
  (sure ? list.causes : list.doubtful).push_back(std::move(cause));
  return sure ? Verdict::kTaken : Verdict::kDoubtful;
}

}  // namespace

std::string_view cause_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kSlowStage: return "slow stage";
    case CauseKind::kSlowWorker: return "slow worker";
    case CauseKind::kSlowLink: return "slow link";
    case CauseKind::kLongSequences: return "long sequences";
    case CauseKind::kPauses: return "pauses";
    case CauseKind::kLateWorker: return "late launches";
    case CauseKind::kLateStarts: return "late starts";
    case CauseKind::kOrder: return "wrong order";
    case CauseKind::kUnsplit: return "unsplit backwards";
  }
  return "";
}

void sort_causes(std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
    return a.price_ns() != b.price_ns() ? a.price_ns() > b.price_ns() : a.lost_ns > b.lost_ns;
  });
}

namespace {

CauseList search(const Trace& trace, const StepGraph& graph, const TheoryRun& theory, const RunCoverage& coverage,
                 bool links_alone) {
  const std::vector<int32_t> outliers = outlier_steps(trace, pipeline_sums(trace));
  std::vector<bool> counts;
  std::vector<double> recorded;
  for (const GraphStep& step : graph.steps) {
    counts.push_back(!std::binary_search(outliers.begin(), outliers.end(), step.step));
    if (counts.back()) recorded.push_back(static_cast<double>(step.span_ns));
  }
  CauseList list;
  list.steps = static_cast<int64_t>(recorded.size());
  list.step_ns = mean_of(recorded);
  list.error_ns = sample_std(recorded) / std::sqrt(static_cast<double>(recorded.size()));
  list.untold = coverage.untold();
  if (list.untold) return list;
  // Without work that takes time every gap would look like a slow message.
  bool works = false;
  for (size_t i = 0; i < graph.size() && !works; ++i) works = is_compute(graph.kind[i]) && graph.dur_ns[i] > 0;
  if (!works) return list;
  CauseScene scene{trace, graph, counts, coverage, CellTimes(trace, graph, counts)};
  scene.two_ways = theory.recognition.recognised && theory.recognition.best().layout == ChunkLayout::kBidirectional;
  std::vector<CauseDraft> drafts = drafts_of(scene);
  if (links_alone) std::erase_if(drafts, [](const CauseDraft& d) { return d.cause.kind != CauseKind::kSlowLink; });
  if (links_alone && drafts.empty()) return list;
  // Worlds: as it was, then without each cause, then those evened out.
  std::vector<std::vector<const CauseWorld*>> worlds(1);
  for (const CauseDraft& draft : drafts) worlds.push_back({&draft.without});
  std::vector<size_t> evened(drafts.size(), 0);
  for (size_t d = 0; d < drafts.size(); ++d)
    if (drafts[d].evened) evened[d] = worlds.size(), worlds.push_back({&drafts[d].evened});
  const std::vector<double> launch_ns = launch_delays(graph);
  const auto replay_all = [&] {
    return replay_worlds(
        graph, worlds.size(), [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
          for (size_t i = 0; i < dur.size(); ++i) {
            dur[i] = graph.dur_ns[op];
            delay[i] = is_compute(graph.kind[op]) ? graph.delay_ns[op]
                                                  : std::min(graph.delay_ns[op], launch_ns[graph.type[op]]);
            for (const CauseWorld* world : worlds[first + i]) (*world)(op, dur[i], delay[i]);
          }
        });
  };
  WorldTimes replayed = drafts.empty() ? WorldTimes{} : replay_all();
  const auto gain = [&](size_t from, size_t world) {
    std::vector<double> gains;
    for (size_t s = 0; s < graph.steps.size(); ++s)
      if (counts[s]) gains.push_back(replayed.ns(s, from) - replayed.ns(s, world));
    return std::pair(mean_of(gains), sample_std(gains) / std::sqrt(static_cast<double>(gains.size())));
  };
  std::vector<const CauseWorld*> all;
  std::vector<std::pair<Cause, const CauseWorld*>> little;
  for (size_t d = 0; d < drafts.size(); ++d) {
    Cause cause = std::move(drafts[d].cause);
    std::tie(cause.lost_ns, cause.error_ns) = gain(0, d + 1);
    if (evened[d] > 0) cause.saving_ns = gain(0, evened[d]).first;
    const bool hidden = cause.lost_ns < kLeastLost * list.step_ns;
    switch (take(cause, list, evened[d] > 0)) {
      case Verdict::kTaken: all.push_back(&drafts[d].without); break;
      case Verdict::kDoubtful: break;
      case Verdict::kLittle:
        if (hidden && little.size() < kMostHidden) little.emplace_back(std::move(cause), &drafts[d].without);
    }
  }
  if (!all.empty()) {
    worlds = {{}, all};
    for (const auto& [cause, without] : little) {
      worlds.push_back(all);
      worlds.back().push_back(without);
    }
    replayed = replay_all();
    std::tie(list.together_ns, list.together_error_ns) = gain(0, 1);
    for (size_t i = 0; i < little.size(); ++i) {
      Cause& cause = little[i].first;
      std::tie(cause.lost_ns, cause.error_ns) = gain(1, i + 2);
      if (cause.lost_ns >= kLeastLost * list.step_ns && !may_be_chance(cause, list))
        list.hidden.push_back(std::move(cause));
    }
  }
  std::vector<Cause> of_order;
  if (!links_alone) add_order_causes(trace, graph, theory, counts, of_order);
  for (Cause& cause : of_order) {
    const double lost_ns = cause.lost_ns, error_ns = cause.error_ns;
    if (take(cause, list, false) != Verdict::kTaken) continue;
    list.together_ns += lost_ns;
    list.together_error_ns = std::hypot(list.together_error_ns, error_ns);
  }
  sort_causes(list.causes);
  for (std::vector<Cause>* others : {&list.doubtful, &list.hidden})
    std::stable_sort(others->begin(), others->end(),
                     [](const Cause& a, const Cause& b) { return a.lost_ns > b.lost_ns; });
  return list;
}

}  // namespace

CauseList find_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory,
                      const RunCoverage& coverage) {
  return search(trace, graph, theory, coverage, false);
}

CauseList find_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory) {
  return search(trace, graph, theory, RunCoverage(trace, theory), false);
}

CauseList find_slow_links(const Trace& trace, const StepGraph& graph, const TheoryRun& theory) {
  return search(trace, graph, theory, RunCoverage(trace, theory), true);
}

}  // namespace stageline
