#include "diagnosis/explain.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/chinese.h"
#include "base/counted.h"
#include "base/number.h"
#include "diagnosis/cause_words.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/long_step_words.h"
#include "diagnosis/doubt_words.h"
#include "diagnosis/merge_findings.h"
#include "diagnosis/share_findings.h"
#include "diagnosis/training_findings.h"
#include "diagnosis/what_if/layer_price.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "model/pipeline_words.h"
#include "model/run_extent.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

bool is_one_of(const Finding& f, std::initializer_list<const char*> ids) {
  return std::any_of(ids.begin(), ids.end(), [&](const char* id) { return f.id == id; });
}

void say_run(const Trace& trace, const Recognition& recognition, const RunCoverage& coverage, Explanation& e) {
  const Extent extent = extent_of(trace);
  // The schedule of a part is no run's.
  if (recognition.recognised && !coverage.by_warm_up()) e.run_en = e.run_zh = recognition.best().name + " · ";
  e.run_en += coverage.part().empty() ? counted(coverage.stages(), "stage", "stages") : coverage.part().en;
  e.run_zh += coverage.part().empty() ? grouped(coverage.stages()) + " 级" : coverage.part().zh;
  if (extent.dp_count > 1) {
    const Text pipelines = pipelines_text(trace, extent.dp_count);
    e.run_en += " × " + pipelines.en;
    e.run_zh += " × " + pipelines.zh;
  }
  const int32_t micro_batches =
      recognition.recognised ? recognition.best().sizes.micro_batches : micro_batches_per_step(trace);
  e.run_en += " · " + counted(micro_batches, "micro-batch", "micro-batches") + " · " +
              counted(extent.step_count, "step", "steps") + " · " + human_duration(e.step_ns) + " a step on average" +
              (e.steps < extent.step_count ? " over " + grouped(e.steps) + " of them" : "");
  e.run_zh += " · " + grouped(micro_batches) + " 个微批 · " + grouped(extent.step_count) + " 步 · " +
              (e.steps < extent.step_count ? "其中 " + grouped(e.steps) + " 步" : "") + "平均每步 " +
              human_duration(e.step_ns);
}

void say_coverage(const RunCoverage& coverage, Explanation& e) {
  const Text notes = coverage.notes(), why_not = coverage.why_untold();
  e.note_en = notes.en;
  e.note_zh = notes.zh;
  if (!coverage.untold()) return;
  e.why_not = why_not.en;
  e.note_en = "Nothing is said of causes: " + e.why_not + ".";
  e.note_zh = "没有给出原因：" + why_not.zh + "。";
}

// The best other schedule and the best other number of micro-batches, each by itself, from what-if's replays.
void make_offers(WhatIf model, Explanation& e) {
  FixOptions orders;
  orders.only_orders = true;
  const FixList list = price_fixes(model, orders);
  for (const char* id : {"schedule", "micro-batches"}) {
    const auto best = std::find_if(list.fixes.begin(), list.fixes.end(), [&](const Fix& fix) { return fix.id == id; });
    if (best == list.fixes.end() || !best->price.gains() || best->price.share() < kLeastLost) continue;
    Finding f;
    f.id = std::string("offer.") + id;
    f.weight = best->price.share();
    f.value = "−" + percent(best->price.share());
    const bool other_size = best->id == "micro-batches";  // a step is longer then, and does more
    f.value_note_en = other_size ? "per micro-batch" : "a step";
    f.value_note_zh = other_size ? "每个微批" : "每步";
    f.price.per_token = other_size;
    f.title_en = best->name.en;
    f.title_zh = best->name.zh;
    f.detail_en = best->how.en;
    f.detail_zh = best->how.zh;
    f.price.fix_en = best->name.en;
    f.price.fix_zh = best->name.zh;
    f.price.saving_ns = best->price.saving_ns;
    f.price.assumption_en = best->assumes.en;
    f.price.assumption_zh = best->assumes.zh;
    f.uncertainty_ns = std::isnan(best->price.error_ns) ? 0 : best->price.error_ns;
    e.offers.push_back(std::move(f));
  }
  std::stable_sort(e.offers.begin(), e.offers.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
}

// "Stage 2 takes 1.40× the time of the other stages: move layers away": what is so, without what to do about it.
std::string first_clause(const std::string& title, const char* colon) { return title.substr(0, title.find(colon)); }

// The first words of a page are the culprit and what it costs, or that the run is healthy; what a step takes, and how
// much of it computes, stands below. Where nothing is sure the step's time stays the headline.
void say_culprit(bool cells, bool cut_off, Explanation& e) {
  constexpr double kMostlyComputing = 0.9;  // of a profile's devices, to be called healthy
  Headline& h = e.headline;
  // Of a recording that is cut off its own headline says so first.
  if (h.title_en.empty() || !e.why_not.empty() || cut_off) return;
  std::string en, zh;
  if (!e.findings.empty()) {
    const Finding& f = e.findings.front();
    const bool priced = f.value.starts_with("−");
    if (!(f.weight > 0) && !priced) return;
    if (cells) {
      en = first_clause(f.title_en, ": ") + ": " +
           (priced ? f.value.substr(std::string("−").size()) + " of each step." : percent(f.weight) + " of the time.");
      zh = first_clause(f.title_zh, "：") +
           (priced ? "：占每步的 " + f.value.substr(std::string("−").size()) : "：占全部时间的 " + percent(f.weight)) +
           "。";
    } else {
      en = f.title_en + ", " + f.value + " " + f.value_note_en + ".";
      zh = f.title_zh + "，" + f.value_note_zh + " " + f.value + "。";
    }
  } else {
    const auto computing =
        std::find_if(e.parts.begin(), e.parts.end(), [](const SpanPart& p) { return p.id == "compute"; });
    if (!e.doubt_en.empty() || computing == e.parts.end()) return;
    // What no finding names may still be much.
    const bool much_is_left = std::any_of(e.account.parts.begin(), e.account.parts.end(), [&](const AccountPart& part) {
      return part.id != "schedule" && part.id != "named" && part.ns >= kLargePart * e.step_ns;
    });
    if (much_is_left) return;
    if (!cells && computing->share < kMostlyComputing) return;
    const std::string share = percent(computing->share);
    en = "Healthy: no fault was found; " + share +
         (cells ? " of a step is computing." : " of the devices' time is computing.");
    zh = "运行健康：没有发现故障，" + std::string(cells ? "每步" : "设备时间") + "的 " + share + " 在计算。";
  }
  h.lead_en = h.title_en + (h.lead_en.empty() ? "" : " ") + h.lead_en;
  h.lead_zh = h.title_zh + h.lead_zh;
  h.title_en = std::move(en);
  h.title_zh = std::move(zh);
}

}  // namespace

Explanation explain(const Run& run, const std::vector<Table>& tables, bool with_offers) {
  const Trace& trace = run.trace();
  if (const TrainingTime training = training_time(trace); training.told) return explain_training(training);
  Explanation e;
  const bool cells = trace.cells.size() > 0;
  Findings known = findings_of(run, tables);
  e.headline = known.headline;
  e.parts = known.headline.parts;
  if (!cells) e.step_ns = known.headline.step_ns, e.wall_ns = known.headline.step_ns, e.steps = known.headline.steps;
  std::set<std::string> said;
  bool priced = false, long_told = false;
  if (cells) {
    const TheoryRun& theory = theory_of(run);
    const RunCoverage& coverage = coverage_of(run);
    const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
    say_coverage(coverage, e);
    if (made.graph) {
      long_told = !causes_of(run).untold;
      CauseList causes = causes_of(run);  // price_in_layers() adds to it
      priced = true;
      e.step_ns = causes.step_ns;
      e.steps = causes.steps;
      e.lost_ns = causes.together_ns;
      e.gap_ns = causes.gap_ns;
      e.wall_ns = causes.wall_ns;
      e.lost_error_ns = std::isnan(causes.together_error_ns) ? 0 : causes.together_error_ns;
      const Text doubt = doubt_words(causes);
      e.doubt_en = doubt.en, e.doubt_zh = doubt.zh;
      const Text next = hidden_words(causes);
      e.next_en = next.en, e.next_zh = next.zh;
      const bool whole = !causes.untold && coverage.whole();
      ShareFindings shares;
      if (whole) {
        shares = share_findings(trace, known.headline, causes, *made.graph);
        std::set<std::string_view> told;
        for (const Finding& f : shares.list) {
          if (f.id == "messages.slow") told.insert("message");
          if (f.id == "unexplained") told.insert({"late", "rest"});
        }
        e.account = account_of(causes, told);
      }
      if (whole && (with_offers || has_slow_stage(causes))) {
        if (const RunGraph& free = graph_of(run, LaunchRule::kFree); free.graph) {
          Diagnostics notes;
          WhatIf model = WhatIf::of(run, free.graph, notes, WhatIfUse::kOrders);
          price_in_layers(model, causes);
          if (with_offers) make_offers(std::move(model), e);
        }
      }
      e.findings = cause_findings(trace, causes, theory.recognition);
      for (Finding& f : long_step_findings(trace, causes)) e.findings.push_back(std::move(f));
      add_share_findings(std::move(shares), e.findings);
      for (const Finding& f : e.findings) said.insert(f.id);
      say_run(trace, theory.recognition, coverage, e);
    } else if (!coverage.untold()) {
      e.why_not = made.error->what;
      e.note_en = "Causes have no price here: " + e.why_not + ".";
      e.note_zh = "这里无法给出各原因的代价：" + in_chinese(e.why_not) + "。";
    }
  }
  for (Finding& f : known.list) {
    if (f.id == "none" || said.contains(f.id)) continue;
    // Of these a replay has said what they cost: too little.
    if (priced && is_one_of(f, {"stage.slow", "rank.slow", "schedule.order"})) continue;
    if (long_told && f.id == "step.outlier") continue;
    // These say that ranks wait, and not whose fault it is.
    if (priced && is_one_of(f, {"bubble", "outside", "schedule.late", "schedule.late_start", "replica.uneven"})) {
      e.others.push_back(std::move(f));
      continue;
    }
    if (f.lost_ns_per_step <= 0) f.lost_ns_per_step = f.weight * e.step_ns;
    e.findings.push_back(std::move(f));
  }
  // By the price that stands beside them; by what is lost where there is none.
  const auto price = [](const Finding& f) { return f.price.saving_ns > 0 ? f.price.saving_ns : f.lost_ns_per_step; };
  std::stable_sort(e.findings.begin(), e.findings.end(), [&](const Finding& a, const Finding& b) {
    return price(a) != price(b) ? price(a) > price(b) : a.weight > b.weight;
  });
  if (e.findings.size() > kMostFindings) e.findings.resize(kMostFindings);
  say_culprit(cells, trace.diagnostics.count("kineto.truncated") > 0, e);
  if (e.run_en.empty() && !e.headline.sizes_en.empty()) {  // no line above says them
    e.headline.lead_en = e.headline.sizes_en + (e.headline.lead_en.empty() ? "" : " ") + e.headline.lead_en;
    e.headline.lead_zh = e.headline.sizes_zh + e.headline.lead_zh;
    e.headline.sizes_en.clear(), e.headline.sizes_zh.clear();
  }
  // What a profile's findings name may be the same time twice: no less than the largest of them is lost.
  if (!cells)
    for (const Finding& f : e.findings) e.lost_ns = std::max(e.lost_ns, f.lost_ns_per_step);
  return e;
}

Findings explained_findings(const Explanation& e) {
  Findings findings{e.headline, e.findings, e.offers, e.others};
  if (Headline& h = findings.headline; !h.sizes_en.empty()) {
    h.lead_en = h.sizes_en + (h.lead_en.empty() ? "" : " ") + h.lead_en;
    h.lead_zh = h.sizes_zh + h.lead_zh;
  }
  if (!e.note_en.empty()) {
    findings.headline.lead_en += " " + e.note_en;
    findings.headline.lead_zh += e.note_zh;
  }
  if (!findings.list.empty()) {
    if (!e.doubt_en.empty()) findings.headline.lead_en += " " + e.doubt_en, findings.headline.lead_zh += e.doubt_zh;
    if (!e.next_en.empty()) findings.headline.lead_en += " " + e.next_en, findings.headline.lead_zh += e.next_zh;
    return findings;
  }
  Finding none;
  none.id = "none";
  none.title_en = "Nothing stands out";
  none.title_zh = "没有突出的问题";
  none.detail_en = "No stage, rank, link or step costs more than a hundredth of the step beyond its own uncertainty.";
  none.detail_zh = "没有哪一级、哪个 rank、哪条链路或哪一步的代价超过每步的百分之一且超出其不确定度。";
  if (!e.doubt_en.empty()) {
    none.title_en = "Nothing is sure";
    none.title_zh = "没有可以确定的结论";
    none.detail_en = e.doubt_en;
    none.detail_zh = e.doubt_zh;
  }
  if (!e.why_not.empty()) {
    none.title_en = "What costs time cannot be told from waits";
    none.title_zh = "无法从等待中判断时间花在哪里";
    none.detail_en = e.note_en;
    none.detail_zh = e.note_zh;
  }
  findings.list.push_back(std::move(none));
  return findings;
}

}  // namespace stageline
