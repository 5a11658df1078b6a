#include "diagnosis/causes/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/number.h"
#include "diagnosis/causes/finding_facts.h"
#include "diagnosis/causes/headline.h"
#include "diagnosis/causes/schedule_findings.h"
#include "facts/period_facts.h"
#include "model/statistics.h"
#include "pipeline/cells/early_links.h"
#include "pipeline/measure/slow_rank.h"
#include "pipeline/replay/schedule_ideal.h"

namespace stageline {
namespace {

constexpr double kSlowRatio = 1.1;     // stage against the median stage, rank against its peers
constexpr double kSlowKind = 1.05;     // of a slow stage's median cell against the others', to be named
constexpr double kComputeShare = 0.1;  // of the step, below which no stage's compute is what is waited for
constexpr double kSavedShare = 0.01;   // of the step that a finding about compute must be worth
constexpr double kSavedOfWait = 0.05;  // the same, of all that is not compute
constexpr double kOutsideShare = 0.1;
constexpr double kBubbleShare = 0.05;
constexpr double kReplicaShare = 0.05;
constexpr double kAbsurdSteps = 100;  // median steps that no cell takes
constexpr size_t kMostFewSteps = 3;   // of more there is a usual one: PipelineSums::outliers

// What no run takes: shown as that.
std::string times(double ratio) {
  if (ratio >= 1e6) return "> 1 000 000×";
  return (ratio >= 1000 ? grouped(static_cast<int64_t>(ratio)) : fixed(ratio, 2)) + "×";
}
std::string number(int64_t n) { return grouped(n); }

std::vector<StageCost> usual_costs(const FindingFacts& f, int32_t without_part = -1) {
  const Cells& cells = f.trace.cells;
  return stage_costs(f.trace,
                     [&](size_t i) { return cells.part[i] != without_part && !f.sums.is_outlier(cells.step[i]); });
}

FindingFacts collect(const Run& run) {
  FindingFacts f{run.trace(), coverage_of(run), extent_of(run.trace()), sums_of(run), {}, {}, 0, 0, 0, 0, 0, 0};
  std::vector<double> spans;
  for (const StepSums& step : f.sums.steps) spans.push_back(static_cast<double>(step.span_ns()));
  f.median_step_ns = median_of(spans);
  spans.clear();
  for (const StepSums& step : f.sums.steps)
    if (!f.sums.is_outlier(step.step)) spans.push_back(static_cast<double>(step.span_ns()));
  f.mean_step_ns = mean_of(spans);
  f.gap_ns = periods_of(run).usual_ns;
  f.costs = usual_costs(f);
  f.loads = stage_loads(f.costs);
  double whole = 0, busy = 0, waiting = 0;
  size_t s = 0;
  for (const RankSums& rank : f.sums.ranks) {
    while (f.sums.steps[s].step != rank.step) ++s;
    if (f.sums.is_outlier(rank.step)) continue;
    whole += static_cast<double>(f.sums.steps[s].span_ns());
    busy += static_cast<double>(rank.busy_ns);
    waiting += static_cast<double>(rank.span_bubble_ns);
  }
  if (whole > 0) {
    f.compute = busy / whole;
    f.bubble = waiting / whole;
    f.outside = std::max(0.0, 1 - f.compute - f.bubble);
  }
  return f;
}

const StageLoad* slowest(const FindingFacts& f) {
  const auto it = std::max_element(f.loads.begin(), f.loads.end(), [](const StageLoad& a, const StageLoad& b) {
    return a.per_micro_batch_ns < b.per_micro_batch_ns;
  });
  return it == f.loads.end() ? nullptr : &*it;
}

// In how many steps a stage has the largest compute time per rank, and of how many.
struct Persistence {
  int64_t slowest_in = 0, steps = 0;
};
Persistence persistence_of(const FindingFacts& f, int32_t stage) {
  Persistence p;
  size_t r = 0;
  for (const StepSums& step : f.sums.steps) {
    if (f.sums.is_outlier(step.step)) {
      while (r < f.sums.ranks.size() && f.sums.ranks[r].step == step.step) ++r;
      continue;
    }
    std::map<int32_t, std::pair<double, int>> busy;  // stage → (time, ranks)
    for (; r < f.sums.ranks.size() && f.sums.ranks[r].step == step.step; ++r) {
      auto& [time, ranks] = busy[f.trace.parts[static_cast<size_t>(f.sums.ranks[r].part)].stage];
      time += static_cast<double>(f.sums.ranks[r].busy_ns);
      ++ranks;
    }
    int32_t worst = kUnknown;
    double most = -1;
    for (const auto& [s, sum] : busy)
      if (sum.first / sum.second > most) {
        most = sum.first / sum.second;
        worst = s;
      }
    ++p.steps;
    p.slowest_in += worst == stage;
  }
  return p;
}

// Median over the other stages; with two stages the median of all would hide half the difference.
double median_of_other_stages(const std::vector<StageLoad>& loads, int32_t stage) {
  std::vector<double> values;
  for (const StageLoad& load : loads)
    if (load.stage != stage) values.push_back(load.per_micro_batch_ns);
  return median_of(values);
}
double median_of_other_stages(const std::vector<StageCost>& costs, int32_t stage, CellKind kind) {
  std::vector<double> values;
  for (const StageCost& cost : costs)
    if (cost.stage != stage && cost.kind == kind) values.push_back(cost.p50_ns);
  return median_of(values);
}

void add_slow_stage(const FindingFacts& f, std::vector<Finding>& out) {
  const StageLoad* slow = slowest(f);
  if (!slow || f.loads.size() < 2 || slow->stage == kUnknown) return;
  // Two stages are judged against each other: their median would hide half of the difference.
  const double others = median_of_other_stages(f.loads, slow->stage);
  if (!(others > 0 && slow->per_micro_batch_ns >= kSlowRatio * others)) return;
  // One hiccup makes no slow stage: its usual cells must be slow too.
  std::vector<double> usual;
  for (const StageLoad& load : f.loads)
    if (load.stage != slow->stage) usual.push_back(load.usual_ns);
  if (!(slow->usual_ns >= kSlowRatio * median_of(usual))) return;
  const Persistence p = persistence_of(f, slow->stage);
  if (p.slowest_in == 0) return;
  double mean = 0;
  for (const StageLoad& load : f.loads) mean += load.per_micro_batch_ns / static_cast<double>(f.loads.size());
  // What evening the stages out would save; too little of the step, or of what is waited for, to send anyone moving
  // layers.
  const double saved = f.compute * (1 - mean / slow->per_micro_batch_ns);
  if (f.compute < kComputeShare || saved < kSavedShare || saved < kSavedOfWait * (1 - f.compute)) return;
  std::string en, zh;
  for (const StageCost& cost : f.costs) {
    if (cost.stage != slow->stage) continue;
    const double theirs = median_of_other_stages(f.costs, slow->stage, cost.kind);
    if (!(cost.p50_ns >= kSlowKind * theirs)) continue;
    en += (en.empty() ? "Its " : ", its ") + std::string(kind_name(cost.kind)) + " takes " +
          human_duration(cost.p50_ns) + " against " + human_duration(theirs) + " elsewhere";
    zh += (zh.empty() ? "其 " : "，") + std::string(kind_code(cost.kind)) + " 用时 " + human_duration(cost.p50_ns) +
          "（其他级 " + human_duration(theirs) + "）";
  }
  std::string also_en, also_zh;
  for (const StageLoad& load : f.loads) {
    if (load.stage == slow->stage || load.ratio_to_median < kSlowRatio) continue;
    also_en += (also_en.empty() ? " Slow too: stage " : ", stage ") + std::to_string(load.stage) + " (" +
               times(load.ratio_to_median) + ")";
    also_zh += (also_zh.empty() ? "同样偏慢：第 " : "、第 ") + std::to_string(load.stage) + " 级（" +
               times(load.ratio_to_median) + "）";
  }
  if (!also_en.empty()) {
    also_en += ".";
    also_zh += "。";
  }
  const std::string stage = std::to_string(slow->stage);
  Finding finding;
  finding.id = "stage.slow";
  finding.weight = saved;
  finding.value = times(slow->ratio_to_median);
  finding.value_note_en = "the median stage";
  finding.value_note_zh = "相对中位级";
  finding.title_en = "Stage " + stage + " is the slowest; the others wait for it";
  finding.title_zh = "第 " + stage + " 级最慢，其余各级都在等它";
  if (en.empty()) {
    en = "Its micro-batches take " + human_duration(slow->usual_ns);
    zh = "其每个微批用时 " + human_duration(slow->usual_ns);
  }
  finding.detail_en = en + "; slowest in " + number(p.slowest_in) + " of " + number(p.steps) + " steps." + also_en +
                      " Move layers away from it, or split what only it has (embedding, output head).";
  finding.detail_zh = zh + "；" + number(p.steps) + " 步中有 " + number(p.slowest_in) + " 步最慢。" + also_zh +
                      "可把它的层移到别的级，或拆分它独有的部分（词嵌入、输出头）。";
  if (p.slowest_in * 2 < p.steps) {
    finding.detail_en += " It changes from step to step: look at data-dependent costs such as sequence length first.";
    finding.detail_zh += "最慢的级逐步变化：请先看与数据有关的开销，例如序列长度。";
  }
  out.push_back(std::move(finding));
}

void add_bubble(const FindingFacts& f, const Recognition& recognition, std::vector<Finding>& out) {
  if (f.bubble < kBubbleShare) return;
  const double in_pipeline = f.bubble / (f.bubble + f.compute);
  Finding finding;
  finding.id = "bubble";
  finding.weight = f.bubble;
  finding.value = percent(in_pipeline);
  finding.value_note_en = "of the pipeline's span";
  finding.value_note_zh = "占流水线跨度";
  finding.title_en = "Ranks wait " + percent(in_pipeline) + " of the pipeline's span (span bubble)";
  finding.title_zh = "各 rank 有 " + percent(in_pipeline) + " 的流水线跨度在等待（跨度气泡）";
  const auto steps = static_cast<int64_t>(f.sums.steps.size());
  const Text compared = bubble_words(f.trace, f.costs, steps, in_pipeline, recognition);
  finding.detail_en = compared.en;
  finding.detail_zh = compared.zh;
  out.push_back(std::move(finding));
}

// A rank that is slower than the others of its own stage: a straggler rather than an imbalance.
// When it alone makes its stage the slowest, that stage's finding is withdrawn.
void add_slow_rank(const FindingFacts& f, std::vector<Finding>& out) {
  const auto found = slow_rank(f.trace, f.sums, f.sums.outliers, kSlowRatio);
  if (!found) return;
  const size_t worst = found->part;
  const double worst_ratio = found->ratio;
  const Part& part = f.trace.parts[worst];
  const StageLoad* slow = slowest(f);
  if (slow && slow->stage == part.stage) {
    FindingFacts without = f;
    without.costs = usual_costs(f, static_cast<int32_t>(worst));
    without.loads = stage_loads(without.costs);
    const StageLoad* then = slowest(without);
    if (!then || then->per_micro_batch_ns < kSlowRatio * median_of_other_stages(without.loads, then->stage))
      std::erase_if(out, [](const Finding& x) { return x.id == "stage.slow"; });
  }
  const std::string rank = std::to_string(part.rank), stage = std::to_string(part.stage);
  const std::string machine = part.machine_name.empty() ? "" : " (" + part.machine_name + ")";
  Finding finding;
  finding.id = "rank.slow";
  finding.weight = f.compute * (1 - 1 / worst_ratio);
  finding.value = times(worst_ratio);
  finding.value_note_en = "its peers";
  finding.value_note_zh = "相对同级";
  finding.title_en = "Rank " + rank + machine + " is slower than the others of stage " + stage;
  finding.title_zh = "rank " + rank + machine + " 比第 " + stage + " 级的其他 rank 慢";
  finding.detail_en = "The same work takes it " + times(worst_ratio) +
                      " the median of its peers, over all steps. Look at that device: clocks, heat, neighbours.";
  finding.detail_zh =
      "同样的计算，它在全部步中的用时是同级中位数的 " + times(worst_ratio) + "。请检查该设备：频率、温度、同机负载。";
  out.push_back(std::move(finding));
}

// Too few steps to say which is usual, and they differ.
void add_uneven_steps(const FindingFacts& f, std::vector<Finding>& out) {
  const std::vector<StepSums>& steps = f.sums.steps;
  if (steps.size() < 2 || steps.size() > kMostFewSteps) return;
  const auto [least, most] = std::minmax_element(
      steps.begin(), steps.end(), [](const StepSums& a, const StepSums& b) { return a.span_ns() < b.span_ns(); });
  const auto shortest = static_cast<double>(least->span_ns()), longest = static_cast<double>(most->span_ns());
  if (!(shortest > 0) || longest < kOutlierStep * shortest) return;
  const std::string l = std::to_string(most->step), s = std::to_string(least->step);
  const bool first = most == steps.begin();
  Finding finding;
  finding.id = "step.uneven";
  finding.weight = (f.mean_step_ns - shortest) / f.mean_step_ns;
  finding.value = times(longest / shortest);
  finding.value_note_en = "the shortest step";
  finding.value_note_zh = "相对最短步";
  finding.title_en = "Steps differ: step " + l + " takes " + times(longest / shortest) + " the time of step " + s;
  finding.title_zh = "各步用时不同：第 " + l + " 步是第 " + s + " 步的 " + times(longest / shortest);
  finding.detail_en = human_duration(longest) + " against " + human_duration(shortest) + ". Of " +
                      number(static_cast<int64_t>(steps.size())) +
                      " steps nobody can say which is the usual one, so all count in what is said here. Record four or "
                      "more, or choose with --steps" +
                      (first ? "; the first of a run is often warm-up." : ".");
  finding.detail_zh = human_duration(longest) + "，最短步为 " + human_duration(shortest) + "。只有 " +
                      number(static_cast<int64_t>(steps.size())) +
                      " 步，无法判断哪一步正常，因此全部计入。请记录四步以上，或用 --steps 选择" +
                      (first ? "；首步往往是预热。" : "。");
  out.push_back(std::move(finding));
}

// Of a step that lasts longer than anything a step does: the cell that makes it so, as a sentence; "" of others.
void say_absurd_cell(const FindingFacts& f, const StepSums& step, Finding& finding) {
  const Cells& cells = f.trace.cells;
  if (static_cast<double>(step.span_ns()) < kAbsurdSteps * f.median_step_ns) return;
  size_t longest = SIZE_MAX;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.step[i] == step.step && is_compute(cells.kind[i]) &&
        (longest == SIZE_MAX || cells.dur_ns(i) > cells.dur_ns(longest)))
      longest = i;
  if (longest == SIZE_MAX || static_cast<double>(cells.dur_ns(longest)) < kAbsurdSteps * f.median_step_ns) return;
  const Cell cell = cells.at(longest);
  const std::string label = cell_label(cell, cell.chunk > 0),
                    rank = std::to_string(f.trace.parts[static_cast<size_t>(cell.part)].rank);
  const std::string takes = human_duration(static_cast<double>(cells.dur_ns(longest)));
  finding.detail_en += " In it " + label + " of rank " + rank + " is said to last " + takes +
                       ": a hang, or a duration that was written wrongly; look at that row.";
  finding.detail_zh +=
      "其中 rank " + rank + " 的 " + label + " 记录为 " + takes + "：可能是挂起，也可能是写错的用时，请检查该行。";
}

void add_outlier_steps(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.sums.outliers.empty()) return add_uneven_steps(f, out);
  const auto count = static_cast<int64_t>(f.sums.outliers.size());
  double lost = 0, total = 0;
  const StepSums* worst = nullptr;
  for (const StepSums& step : f.sums.steps) {
    total += static_cast<double>(step.span_ns());
    if (!f.sums.is_outlier(step.step)) continue;
    lost += static_cast<double>(step.span_ns()) - f.median_step_ns;
    if (!worst || step.span_ns() > worst->span_ns()) worst = &step;
  }
  const std::string n = number(count), of = number(static_cast<int64_t>(f.sums.steps.size()));
  const bool warm_up = count == 1 && worst == &f.sums.steps.front() &&
                       static_cast<double>(worst->span_ns()) < kAbsurdSteps * f.median_step_ns;
  Finding finding;
  finding.id = "step.outlier";
  finding.weight = lost / total;
  finding.value = times(static_cast<double>(worst->span_ns()) / f.median_step_ns);
  finding.value_note_en = "the median step";
  finding.value_note_zh = "相对中位步";
  finding.title_en = n + " of " + of + (count == 1 ? " steps takes" : " steps take") + " over 1.3× the median step";
  finding.title_zh = of + " 步中有 " + n + " 步超过中位步的 1.3 倍";
  finding.detail_en = "The longest is step " + std::to_string(worst->step) + " with " +
                      human_duration(static_cast<double>(worst->span_ns())) + " against " +
                      human_duration(f.median_step_ns) + (count == 1 ? ". It costs " : ". They cost ") +
                      percent(lost / total) + " of the time and " + (count == 1 ? "is" : "are") +
                      " left out of the other findings." +
                      (warm_up ? " It is the first: often warm-up, which --steps leaves out." : "");
  finding.detail_zh = "最长的是第 " + std::to_string(worst->step) + " 步，" +
                      human_duration(static_cast<double>(worst->span_ns())) + "，中位步为 " +
                      human_duration(f.median_step_ns) + "；合计多用总时间的 " + percent(lost / total) +
                      "，其他结论不计入这些步。" + (warm_up ? "它是首步，往往是预热，可用 --steps 排除。" : "");
  finding.step = worst->step;
  say_absurd_cell(f, *worst, finding);
  out.push_back(std::move(finding));
}

void add_outside(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.outside < kOutsideShare) return;
  Finding finding;
  finding.id = "outside";
  finding.weight = f.outside;
  finding.value = percent(f.outside);
  finding.value_note_en = "of a step";
  finding.value_note_zh = "占每步";
  finding.title_en = percent(f.outside) + " of a step lies before or after the pipeline";
  finding.title_zh = "每步有 " + percent(f.outside) + " 在流水线之前或之后";
  finding.detail_en =
      "Optimizer, gradient exchange, parameter gathering and whatever else the source recorded outside "
      "the first forward and the last backward.";
  finding.detail_zh = "优化器、梯度同步、参数聚合，以及来源在首个前向之前、末个反向之后记录的其他部分。";
  out.push_back(std::move(finding));
}

void add_causality(const FindingFacts& f, std::vector<Finding>& out) {
  const Cells& cells = f.trace.cells;
  if (f.coverage.repeats()) return;         // which of the same work waits for which nobody knows
  constexpr int64_t kToleranceNs = 50'000;  // stamps of one machine differ by tens of microseconds
  constexpr int64_t kFewOf = 20;  // one in so many is no clock's doing: a clock that is off spoils all of a pair
  const auto [violations, worst, first] = early_links(f.trace, kToleranceNs);
  if (violations == 0 || !f.trace.comparable()) return;
  const std::string most = human_duration(static_cast<double>(worst));
  const std::string of = number(static_cast<int64_t>(f.trace.links.size()));
  const bool one_machine = f.trace.clock == ClockState::kShared;
  const bool few = violations * kFewOf <= static_cast<int64_t>(f.trace.links.size());
  Finding finding;
  finding.id = "clock.causality";
  finding.weight = 0.5 * static_cast<double>(violations) / static_cast<double>(f.trace.links.size());
  finding.value = most;
  finding.value_note_en = "at most";
  finding.value_note_zh = "最多";
  finding.title_en = one_machine || few ? "Cells begin before what they wait for has ended" : "The clocks disagree";
  finding.title_zh = one_machine || few ? "有单元在其前驱结束前就开始" : "时钟不一致";
  finding.detail_en = number(violations) + " of " + of + " dependencies are too early, by up to " + most + ". ";
  finding.detail_zh = of + " 个依赖中有 " + number(violations) + " 个过早开始，最多提前 " + most + "。";
  if (few) {
    const Cell cell = cells.at(first->to_cell);
    const std::string which = cell_label(cell, true) + " of rank " +
                              std::to_string(f.trace.parts[static_cast<size_t>(cell.part)].rank) + ", step " +
                              std::to_string(cell.step);
    finding.detail_en += "So few speak of cells under the wrong label rather than of clocks; the first is " + which +
                         ". Look at the order of that rank's micro-batches.";
    finding.detail_zh +=
        "数量这么少，更可能是单元标签有误，而不是时钟问题；首个：" + which + "。请检查该 rank 的微批顺序。";
  } else if (one_machine) {
    finding.detail_en +=
        "All stamps come from one machine, so the stages may be assigned wrongly (--pp; where there are replicas, "
        "--order), "
        "or logs of different runs were mixed.";
    finding.detail_zh +=
        "所有时间戳来自同一台机器，因此可能是级的归属有误（--pp；有副本时 --order），或混入了不同运行的日志。";
  } else {
    finding.detail_en +=
        std::string(f.trace.alignment == AlignState::kRaw || clock_summary(f.trace).by.empty()
                        ? "Times are shown as recorded"
                        : "So they are on the clocks that were measured, where ranks could be tied") +
        "; bubbles that compare ranks may be off by as much. Synchronise the machines' clocks before the next run.";
    finding.detail_zh += std::string(f.trace.alignment == AlignState::kRaw || clock_summary(f.trace).by.empty()
                                         ? "时间按原始记录显示"
                                         : "这是时钟对齐之后（就能对齐的 rank 而言）的结果") +
                         "；跨 rank 比较的气泡可能偏差这么多。下次运行前请先同步各机时钟。";
  }
  out.push_back(std::move(finding));
}

// Replicas meet at the gradient exchange: those that finish early wait for the last one.
void add_replicas(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.extent.dp_count < 2 || !f.trace.comparable()) return;
  double waited = 0, whole = 0;
  size_t r = 0;
  for (const StepSums& step : f.sums.steps) {
    std::map<int32_t, int64_t> last;  // replica → end of its last compute cell
    for (; r < f.sums.ranks.size() && f.sums.ranks[r].step == step.step; ++r) {
      int64_t& end = last[f.trace.parts[static_cast<size_t>(f.sums.ranks[r].part)].dp];
      end = std::max(end, f.sums.ranks[r].last_ns);
    }
    if (f.sums.is_outlier(step.step)) continue;
    for (const auto& [dp, end] : last) {
      waited += static_cast<double>(step.pipeline_end_ns - end);
      whole += static_cast<double>(step.pipeline_span_ns());
    }
  }
  if (whole <= 0 || waited / whole < kReplicaShare) return;
  Finding finding;
  finding.id = "replica.uneven";
  finding.weight = f.bubble > 0 ? (f.bubble + f.compute) * waited / whole : 0;
  finding.value = percent(waited / whole);
  finding.value_note_en = "of the pipeline's span";
  finding.value_note_zh = "占流水线跨度";
  const bool replicas = f.trace.context_parallel <= 1;  // else one may be several pipelines
  finding.title_en = replicas ? "The replicas do not finish together" : "The pipelines do not finish together";
  finding.title_zh = replicas ? "各副本不同时结束" : "各流水线不同时结束";
  finding.detail_en =
      (replicas ? "On average a replica waits " : "On average a pipeline waits ") + percent(waited / whole) +
      " of the span for the last one before the gradient exchange; this is part of the span bubble. Even out "
      "what they are given (sequence lengths, packing), or look for a slow device.";
  finding.detail_zh = std::string(replicas ? "平均每个副本" : "平均每条流水线") + "在梯度同步前要等最后一个 " +
                      percent(waited / whole) +
                      " 的跨度，这部分计入跨度气泡。请均衡各副本的数据（序列长度、打包），或查找慢设备。";
  out.push_back(std::move(finding));
}

void add_per_rank_clock(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.trace.comparable()) return;
  Finding finding;
  finding.id = "clock.per_rank";
  finding.weight = 0;
  finding.title_en = "Every rank counts from its own zero; ranks are not on one clock";
  finding.title_zh = "每个 rank 都从自己的零点计时，彼此不在同一时钟上";
  finding.detail_en = "Durations and inner bubbles are right; spans and span bubbles over several ranks are not.";
  finding.detail_zh = "时长与内部气泡是正确的；跨多个 rank 的跨度与跨度气泡则不然。";
  out.push_back(std::move(finding));
}

}  // namespace

Findings find_findings(const Run& run) {
  const Trace& trace = run.trace();
  const TheoryRun& theory = theory_of(run);
  const RunCoverage& coverage = coverage_of(run);
  const FindingFacts facts = collect(run);
  Findings result;
  if (facts.sums.ranks.empty()) {
    result.headline.title_en = "No forward or backward work was recorded.";
    result.headline.title_zh = "没有记录到前向或反向计算。";
    return result;
  }
  add_slow_stage(facts, result.list);
  const Recognition& recognition = theory.recognition;
  add_bubble(facts, recognition, result.list);
  add_slow_rank(facts, result.list);
  add_outlier_steps(facts, result.list);
  add_outside(facts, result.list);
  add_causality(facts, result.list);
  add_replicas(facts, result.list);
  add_schedule_findings(trace, theory, facts.compute + facts.bubble, result.list, coverage.whole());
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  // What is slow comes before what follows from it: a stage that everyone waits for explains the bubble.
  std::stable_partition(result.list.begin(), result.list.end(),
                        [](const Finding& x) { return x.id == "stage.slow" || x.id == "rank.slow"; });
  add_per_rank_clock(facts, result.list);
  if (result.list.empty()) {
    Finding none;
    none.id = "none";
    none.title_en = "Nothing stands out";
    none.title_zh = "没有突出的问题";
    none.detail_en = "No stage, rank or step is slower than its peers by a tenth, and little time is spent waiting.";
    none.detail_zh = "没有哪一级、哪个 rank 或哪一步明显慢于同类，等待时间也很少。";
    result.list.push_back(std::move(none));
  }
  result.headline = headline_of(facts, recognition, waterfall_of(run));
  return result;
}

}  // namespace stageline
