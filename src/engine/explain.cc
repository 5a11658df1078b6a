#include "engine/explain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/number.h"
#include "engine/cause_words.h"
#include "engine/engine.h"
#include "model/pipeline_sums.h"
#include "model/run_extent.h"
#include "pipeline/causes.h"
#include "pipeline/step_graph.h"
#include "pipeline/theory.h"
#include "pipeline/waterfall.h"
#include "pipeline/whole_graph.h"

namespace stageline {
namespace {

// Findings that the priced causes say better, or that say how long ranks wait and not why.
bool is_replaced(const Finding& f, bool priced, const std::set<std::string>& said) {
  static constexpr std::array<const char*, 9> kByCauses = {"stage.slow",     "rank.slow",      "bubble",
                                                           "outside",        "none",           "schedule.late",
                                                           "schedule.order", "replica.uneven", "schedule.late_start"};
  if (!priced) return f.id == "none";
  if (said.contains(f.id)) return true;
  return std::any_of(kByCauses.begin(), kByCauses.end(), [&](const char* id) { return f.id == id; });
}

void say_run(const Trace& trace, const Recognition& recognition, Explanation& e) {
  const Extent extent = extent_of(trace);
  const auto count = [](int64_t number, const char* one, const char* many) {
    return grouped(number) + " " + (number == 1 ? one : many);
  };
  if (recognition.recognised) e.run_en = e.run_zh = recognition.best().name + " · ";
  e.run_en += count(extent.stage_count, "stage", "stages");
  e.run_zh += grouped(extent.stage_count) + " 级";
  if (extent.dp_count > 1) {
    e.run_en += " × " + grouped(extent.dp_count) + " replicas";
    e.run_zh += " × " + grouped(extent.dp_count) + " 个副本";
  }
  const int32_t micro_batches =
      recognition.recognised ? recognition.best().sizes.micro_batches : micro_batches_per_step(trace);
  e.run_en += " · " + count(micro_batches, "micro-batch", "micro-batches") + " · " + count(e.steps, "step", "steps") +
              " · " + human_duration(e.step_ns) + " a step";
  e.run_zh +=
      " · " + grouped(micro_batches) + " 个微批 · " + grouped(e.steps) + " 步 · 每步 " + human_duration(e.step_ns);
}

void say_parts(const Waterfall& waterfall, Explanation& e) {
  if (!waterfall.known()) return;
  const WaterfallStep mean = mean_of(waterfall);
  struct Name {
    WaterfallPart part;
    const char *id, *en, *zh;
  };
  static constexpr std::array<Name, kWaterfallParts> kNames = {
      {{WaterfallPart::kCompute, "compute", "compute", "计算"},
       {WaterfallPart::kSchedule, "bubble", "schedule bubble", "调度气泡"},
       {WaterfallPart::kImbalance, "imbalance", "stage imbalance", "各级不均"},
       {WaterfallPart::kJitter, "jitter", "uneven cells", "单元抖动"},
       {WaterfallPart::kLatency, "latency", "messages", "消息"},
       {WaterfallPart::kRest, "rest", "rest", "其余"},
       {WaterfallPart::kTail, "tail", "after the pipeline", "流水线之后"}}};
  if (!(mean.span_ns > 0)) return;
  for (const Name& name : kNames)
    e.parts.push_back({name.id, name.en, name.zh, mean.part_ns[static_cast<size_t>(name.part)] / mean.span_ns});
}

}  // namespace

Explanation explain(const Trace& trace, const std::vector<Table>& tables) {
  Explanation e;
  Findings known = findings_of(trace, tables);
  e.headline = known.headline;
  std::set<std::string> said;
  bool priced = false;
  if (trace.cells.size() > 0) {
    Diagnostics notes;
    const Result<StepGraph> graph = build_whole_graph(trace, notes);
    if (graph) {
      const TheoryRun theory = theory_of(trace);
      const CauseList causes = find_causes(trace, *graph, theory);
      priced = true;
      e.step_ns = causes.step_ns;
      e.steps = causes.steps;
      e.lost_ns = causes.together_ns;
      e.lost_error_ns = std::isnan(causes.together_error_ns) ? 0 : causes.together_error_ns;
      e.findings = cause_findings(trace, causes, theory.recognition);
      for (const Finding& f : e.findings) said.insert(f.id);
      say_run(trace, theory.recognition, e);
      say_parts(waterfall_of(trace, theory, pipeline_sums(trace)), e);
    } else {
      e.why_not = graph.error().what;
    }
  }
  for (Finding& f : known.list) {
    if (is_replaced(f, priced, said)) continue;
    if (f.lost_ns_per_step <= 0) f.lost_ns_per_step = f.weight * e.step_ns;
    e.findings.push_back(std::move(f));
  }
  std::stable_sort(e.findings.begin(), e.findings.end(), [](const Finding& a, const Finding& b) {
    return a.lost_ns_per_step != b.lost_ns_per_step ? a.lost_ns_per_step > b.lost_ns_per_step : a.weight > b.weight;
  });
  if (e.findings.size() > kMostFindings) e.findings.resize(kMostFindings);
  return e;
}

Findings explained_findings(const Explanation& e) {
  Findings findings{e.headline, e.findings};
  if (!findings.list.empty()) return findings;
  Finding none;
  none.id = "none";
  none.title_en = "Nothing stands out";
  none.title_zh = "没有突出的问题";
  none.detail_en = "No stage, rank, link or step costs more than a hundredth of the step beyond its own uncertainty.";
  none.detail_zh = "没有哪一级、哪个 rank、哪条链路或哪一步的代价超过每步的百分之一且超出其不确定度。";
  findings.list.push_back(std::move(none));
  return findings;
}

}  // namespace stageline
