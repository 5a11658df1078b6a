#include "diagnosis/diff/diff_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "base/number.h"
#include "base/words.h"
#include "diagnosis/causes/beyond_noise.h"

namespace stageline {
namespace {

constexpr double kMostOf = 0.6;  // of the change, to be called what most of it is
constexpr size_t kMostTold = 12;
constexpr double kSameMean = 0.005;    // two means that differ by less are called the same
constexpr double kLargeChange = 0.05;  // of A's step: worth more steps where these cannot tell it from chance
constexpr int64_t kManySteps = 20;     // more of them would tell no more

DiffLine kind_words(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return {"forward", "前向"};
    case CellKind::kBackward: return {"backward", "反向"};
    case CellKind::kInputGrad: return {"input gradient", "输入梯度"};
    case CellKind::kWeightGrad: return {"weight gradient", "权重梯度"};
    case CellKind::kForwardBackward: return {"overlapped forward and backward", "重叠的前向与反向"};
    default: return {std::string(kind_name(kind)), std::string(kind_code(kind))};
  }
}

std::string stage_en(int32_t stage) {
  return stage == kUnknown ? "an unknown stage" : "stage " + std::to_string(stage);
}
std::string stage_zh(int32_t stage) { return stage == kUnknown ? "未知的级" : "第 " + std::to_string(stage) + " 级"; }

std::string joined(const std::vector<std::string>& parts, const char* by) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : by) + part;
  return all;
}

// ", 10.0 ms in A": what A had, or that the mean is the same. Operations of one rank that became longer by 0.2 ms each,
// 32 in a step, cost it 6.4 ms at most: what costs twice that became longer in few of them, or elsewhere.
DiffLine against(const DiffGroup& g) {
  constexpr double kBeyondMean = 2;
  const double longer_ns = g.b_ns - g.a_ns;
  Args args;
  args.flag("same", std::abs(longer_ns) <= kSameMean * std::max(std::abs(g.a_ns), 1.0));
  args.flag("uneven", g.per_rank > 0 && std::abs(g.effect_ns) > kBeyondMean * std::abs(longer_ns) * g.per_rank);
  args.set("a", human_duration(g.a_ns)).set("b", human_duration(g.b_ns));
  const Text text = words("diff.against", args);
  return {text.en, text.zh};
}

}  // namespace

const char* cause_id(DiffCause cause) {
  switch (cause) {
    case DiffCause::kSchedule: return "schedule";
    case DiffCause::kCompute: return "compute";
    case DiffCause::kMessages: return "messages";
    case DiffCause::kDelay: return "launch-delay";
    case DiffCause::kTail: return "tail";
    case DiffCause::kBetween: return "between-steps";
    case DiffCause::kLong: return "long-steps";
    case DiffCause::kMore: return "more";
    default: return "rest";
  }
}

std::string signed_duration(double ns) {
  if (std::abs(ns) < 0.5) return "0 ns";
  return (ns < 0 ? "−" : "+") + human_duration(std::abs(ns));
}
std::string signed_percent(double share) {
  if (!std::isfinite(share)) return "";  // of a step that took no time
  const std::string text = percent(std::abs(share)), none = percent(0);
  return text == none ? text : (share < 0 ? "−" : "+") + text;
}

DiffLine run_line(const DiffRun& run) {
  const auto n = [](int64_t count, const char* one, const char* many) {
    return grouped(count) + " " + (count == 1 ? one : many);
  };
  DiffLine line;
  if (!run.schedule.empty()) line.en = line.zh = run.schedule + " · ";
  line.en += n(run.stages, "stage", "stages");
  line.zh += grouped(run.stages) + " 级";
  if (run.replicas > 1) {
    line.en += " × " + grouped(run.replicas) + " replicas";
    line.zh += " × " + grouped(run.replicas) + " 个副本";
  }
  if (run.context_parallel > 1) {
    line.en += " × " + grouped(run.context_parallel) + " context-parallel pipelines";
    line.zh += " × " + grouped(run.context_parallel) + " 条上下文并行流水线";
  }
  if (run.chunks > 1) {
    line.en += " · " + grouped(run.chunks) + " chunks a rank";
    line.zh += " · 每 rank " + grouped(run.chunks) + " 个分块";
  }
  if (run.micro_batches > 0) {
    line.en += " · " + n(run.micro_batches, "micro-batch", "micro-batches");
    line.zh += " · " + grouped(run.micro_batches) + " 个微批";
  }
  line.en += " · " + n(run.steps, "step", "steps");
  line.zh += " · " + grouped(run.steps) + " 步";
  if (run.left_out > 0) {
    line.en += " (and " + n(run.left_out, "long one", "long ones") + ")";
    line.zh += "（另有 " + grouped(run.left_out) + " 个特别长的步）";
  }
  line.en += " · " + human_duration(run.step_ns) + " a step";
  line.zh += " · 每步 " + human_duration(run.step_ns);
  return line;
}

DiffLine headline(const RunDiff& diff) {
  const std::string step = human_duration(diff.b.step_ns);
  const std::string noise =
      std::isnan(diff.error_ns) || diff.error_ns == 0 ? "" : " ± " + human_duration(diff.error_ns);
  // A change as large as this may be one, and nobody should read that there is none.
  if (!diff.sure && std::abs(diff.change_ns) >= kLargeChange * diff.a.step_ns && diff.a.step_ns > 0) {
    const bool slower = diff.change_ns > 0;
    const std::string by = human_duration(std::abs(diff.change_ns)) + noise + " (" +
                           percent(std::abs(diff.change_ns) / diff.a.step_ns) + ")";
    const bool few = diff.independent < kManySteps;
    return {"A step of B took " + by + (slower ? " longer" : " less") + ", which " +
                counted(diff.independent, "step", "steps") + " cannot tell from chance" + (few ? ": record more" : ""),
            "B 每步" + std::string(slower ? "多" : "少") + "用 " + by + "，但只有 " + grouped(diff.independent) +
                " 步，无法与偶然区分" + (few ? "：请多记录几步" : "")};
  }
  if (!diff.sure) {
    const bool none = std::none_of(diff.groups.begin(), diff.groups.end(), [](const DiffGroup& g) { return g.sure; });
    if (none)
      return {"No difference beyond noise: " + step + " a step" +
                  (diff.change_ns == 0 ? " in both" : ", " + signed_duration(diff.change_ns) + noise),
              "没有超出噪声的差异：每步 " + step +
                  (diff.change_ns == 0 ? "，两次相同" : "，" + signed_duration(diff.change_ns) + noise)};
    return {"No difference beyond noise in a step (" + step + ", " + signed_duration(diff.change_ns) + noise +
                "), but it is made up otherwise",
            "每步用时没有超出噪声的差异（" + step + "，" + signed_duration(diff.change_ns) + noise + "），但构成不同"};
  }
  const std::string by = human_duration(std::abs(diff.change_ns)) + noise;
  const std::string share = diff.a.step_ns > 0 ? " (" + percent(std::abs(diff.change_ns) / diff.a.step_ns) + ")" : "";
  const bool slower = diff.change_ns > 0;
  return {std::string("B is ") + (slower ? "slower" : "faster") + ": a step takes " + by + share + " " +
              (slower ? "longer" : "less"),
          std::string("B 更") + (slower ? "慢" : "快") + "：每步" + (slower ? "多" : "少") + "用 " + by + share};
}

bool other_size(const RunDiff& diff) {
  const int32_t a = diff.a.micro_batches, b = diff.b.micro_batches;
  return a != b && a > 0 && b > 0;
}

bool slower_by_more(const RunDiff& diff, double share) {
  // What a step of A takes with B's micro-batches, which is what the noise is a part of too.
  const double scale =
      other_size(diff) ? static_cast<double>(diff.a.micro_batches) / static_cast<double>(diff.b.micro_batches) : 1;
  const double change_ns = diff.b.step_ns * scale - diff.a.step_ns;
  if (!(change_ns > share * diff.a.step_ns)) return false;
  if (scale == 1) return diff.sure;
  return change_ns >= kLeastDiffShare * diff.a.step_ns &&
         beyond_noise(change_ns, std::hypot(diff.a.error_ns, diff.b.error_ns * scale), diff.independent);
}

DiffLine per_micro_batch(const RunDiff& diff) {
  const DiffRun &a = diff.a, &b = diff.b;
  if (!other_size(diff)) return {};
  const double in_a = a.step_ns / a.micro_batches, in_b = b.step_ns / b.micro_batches;
  const std::string change = in_a > 0 ? " (" + signed_percent(in_b / in_a - 1) + ")" : "";
  return {"A micro-batch takes " + human_duration(in_b) + " of the step, in A " + human_duration(in_a) + change,
          "平均每个微批 " + human_duration(in_b) + "，A 中为 " + human_duration(in_a) + change};
}

DiffLine main_cause(const RunDiff& diff) {
  if (!diff.sure) return {};
  std::map<int32_t, double> by_stage;
  std::map<int32_t, std::pair<double, double>> totals;  // stage → all its compute with A's times, and with B's
  std::map<DiffCause, double> by_cause;
  const DiffGroup* top = nullptr;
  for (const DiffGroup& g : diff.groups) {
    if (g.cause == DiffCause::kRest || g.cause == DiffCause::kMore) continue;
    by_cause[g.cause] += g.effect_ns;
    if (g.cause == DiffCause::kCompute) {
      by_stage[g.stage] += g.effect_ns;
      totals[g.stage].first += g.a_ns * static_cast<double>(g.count);
      totals[g.stage].second += g.b_ns * static_cast<double>(g.count);
    }
    if (g.sure && (!top || g.effect_ns / diff.change_ns > top->effect_ns / diff.change_ns)) top = &g;
  }
  const auto most = [&](double ns) { return ns / diff.change_ns >= kMostOf; };
  if (!top) return {};
  if (top->cause == DiffCause::kSchedule && most(top->effect_ns)) return {"its schedule and sizes", "调度与规模的变化"};
  // The stage that paces the pipeline carries most of a change that all have alike: it alone is named where the others
  // changed by less than half as much.
  const auto growth = [&](int32_t stage) {
    const auto it = totals.find(stage);
    return it == totals.end() || !(it->second.first > 0) ? 0.0 : it->second.second / it->second.first - 1;
  };
  const auto stands_out = [&](int32_t stage) {
    return std::none_of(totals.begin(), totals.end(), [&](const auto& other) {
      return other.first != stage && growth(other.first) / growth(stage) > 0.5;
    });
  };
  for (const auto& [stage, ns] : by_stage) {
    if (!most(ns) || diff.b.stages < 2 || !stands_out(stage)) continue;
    // A stage's own: one kind of its work, or all of it; on one rank, or on all.
    std::vector<const DiffGroup*> own;
    for (const DiffGroup& g : diff.groups)
      if (g.cause == DiffCause::kCompute && g.stage == stage && g.sure) own.push_back(&g);
    if (own.empty()) continue;
    const bool one_rank = own[0]->part != kUnknown && std::all_of(own.begin(), own.end(), [&](const DiffGroup* g) {
                            return g->part == own[0]->part;
                          });
    const DiffLine kind = own.size() == 1 ? kind_words(own[0]->kind) : DiffLine{"compute", "计算"};
    const std::string rank = one_rank ? std::to_string(own[0]->rank) : "";
    return {one_rank ? "the " + kind.en + " of rank " + rank + " (" + stage_en(stage) + ")"
                     : "the " + kind.en + " of " + stage_en(stage),
            one_rank ? "rank " + rank + "（" + stage_zh(stage) + "）的" + kind.zh : stage_zh(stage) + "的" + kind.zh};
  }
  if (most(top->effect_ns)) {
    switch (top->cause) {
      case DiffCause::kMessages:
        return {"the messages from " + stage_en(top->from_stage) + " to " + stage_en(top->stage),
                stage_zh(top->from_stage) + "到" + stage_zh(top->stage) + "的消息"};
      case DiffCause::kDelay:
        if (!top->type.empty()) return {"waiting before " + top->type, top->type + " 之前的等待"};
        if (top->paused > 0)
          return top->stage == kUnknown
                     ? DiffLine{"pauses, on several stages", "多个级的停顿"}
                     : DiffLine{"pauses of " + stage_en(top->stage), stage_zh(top->stage) + "的停顿"};
        if (top->stage == kUnknown) return {"late starts, on several stages", "多个级的启动延迟"};
        return {"late starts of " + stage_en(top->stage), stage_zh(top->stage) + "的启动延迟"};
      case DiffCause::kTail: return {top->type, top->type};
      case DiffCause::kBetween: return {"the time between steps", "步间时间"};
      case DiffCause::kLong: return {"its long steps", "特别长的步"};
      default: break;
    }
  }
  if (most(by_cause[DiffCause::kCompute])) return {"compute, over several stages", "多个级的计算"};
  if (most(by_cause[DiffCause::kMessages])) return {"messages, between several stages", "多个级之间的消息"};
  if (most(by_cause[DiffCause::kDelay])) return {"late starts, on several stages", "多个级的启动延迟"};
  if (most(by_cause[DiffCause::kTail])) return {"what follows the pipeline", "流水线之后的部分"};
  return {};
}

DiffLine group_line(const RunDiff& diff, const DiffGroup& g) {
  const DiffLine times = against(g);
  const std::string only_en = g.part == kUnknown ? "" : ", only rank " + std::to_string(g.rank);
  const std::string only_zh = g.part == kUnknown ? "" : "（仅 rank " + std::to_string(g.rank) + "）";
  switch (g.cause) {
    case DiffCause::kSchedule:
      if (diff.changes_en.empty()) return {"the order of work", "工作顺序"};
      return {"schedule and sizes: " + joined(diff.changes_en, "; "), "调度与规模：" + joined(diff.changes_zh, "；")};
    case DiffCause::kCompute: {
      const DiffLine kind = kind_words(g.kind);
      return {stage_en(g.stage) + "'s " + kind.en + only_en + ": " + times.en,
              stage_zh(g.stage) + "的" + kind.zh + only_zh + "：" + times.zh};
    }
    case DiffCause::kMessages:
      if (g.paused > 0) {
        Args args;
        args.set("from", Text{stage_en(g.from_stage), stage_zh(g.from_stage)});
        args.set("to", Text{stage_en(g.stage), stage_zh(g.stage)}).set("only", Text{only_en, only_zh});
        args.set("some", g.paused).set("all", g.count).set("by", human_duration(g.pause_ns));
        const Text text = words("diff.late_messages", args);
        return {text.en, text.zh};
      }
      return {"messages from " + stage_en(g.from_stage) + " to " + stage_en(g.stage) + only_en + ": " + times.en,
              stage_zh(g.from_stage) + "到" + stage_zh(g.stage) + "的消息" + only_zh + "：" + times.zh};
    case DiffCause::kDelay: {
      if (!g.type.empty())
        return {"waiting before " + g.type + only_en + ": " + times.en,
                g.type + " 之前的等待" + only_zh + "：" + times.zh};
      const bool several = g.stage == kUnknown;
      if (g.from_stage != kUnknown) {
        const std::string some = std::to_string(g.paused > 0 ? g.paused : g.count),
                          by = human_duration(g.paused > 0 ? g.pause_ns : g.b_ns - g.a_ns);
        return {"late messages from " + stage_en(g.from_stage) + " to " + stage_en(g.stage) + only_en + ": " + some +
                    " of " + std::to_string(g.count) + " operations wait " + by + " longer than in A",
                stage_zh(g.from_stage) + "到" + stage_zh(g.stage) + "的迟到消息" + only_zh + "：" +
                    std::to_string(g.count) + " 个操作中有 " + some + " 个比 A 多等 " + by};
      }
      if (g.paused > 0) {
        const std::string some = std::to_string(g.paused), all = std::to_string(g.count),
                          by = human_duration(g.pause_ns);
        return {"pauses" + (several ? " on several stages" : " of " + stage_en(g.stage)) + only_en + ": " + some +
                    " of " + all + " operations start " + by + " later than in A",
                (several ? std::string("多个级") : stage_zh(g.stage)) + "的停顿" + only_zh + "：" + all +
                    " 个操作中有 " + some + " 个比 A 晚 " + by + " 启动"};
      }
      if (several) return {"work starts late on several stages: " + times.en, "多个级启动延迟：" + times.zh};
      return {stage_en(g.stage) + " starts its work late" + only_en + ": " + times.en,
              stage_zh(g.stage) + "启动延迟" + only_zh + "：" + times.zh};
    }
    case DiffCause::kTail: return {g.type + only_en + ": " + times.en, g.type + only_zh + "：" + times.zh};
    case DiffCause::kBetween: {
      const std::string named = g.type.empty() ? "" : " (" + g.type + ")",
                        named_zh = g.type.empty() ? "" : "（" + g.type + "）";
      const std::string few = g.sometimes ? ", what a few steps wait beyond the others, as a mean" : "";
      return {"time between steps" + named + few + ": " + times.en,
              "步间时间" + named_zh + (g.sometimes ? "（少数步多等的部分，取平均）" : "") + "：" + times.zh};
    }
    case DiffCause::kLong:
      return {"long steps, what they take beyond the others as a mean over all: " + times.en +
                  (g.why_en.empty() ? "" : "; in the longest " + g.why_en),
              "特别长的步，超出部分平摊到全部步：" + times.zh + (g.why_zh.empty() ? "" : "；最长的一步中" + g.why_zh)};
    case DiffCause::kMore: return {"all smaller groups together", "其余各组合计"};
    default: return {"rest, and groups of less effect", "其余，以及影响更小的各组"};
  }
}

std::vector<DiffGroup> told_groups(const RunDiff& diff) {
  std::vector<DiffGroup> told;
  DiffGroup rest;
  rest.error_ns = std::nan("");
  for (const DiffGroup& g : diff.groups) {
    if ((g.sure || g.cause == DiffCause::kSchedule) && told.size() < kMostTold)
      told.push_back(g);
    else
      rest.effect_ns += g.effect_ns;
  }
  told.push_back(rest);
  return told;
}

std::vector<Table> diff_tables(const RunDiff& diff) {
  using enum ColumnType;
  Table runs("runs", "The two runs",
             {{"run", "run", kText, "a: the first path, b: the second"},
              {"schedule", "schedule", kText, "the schedule recognised; empty when none is"},
              {"stages", "stages", kInteger, "pipeline stages"},
              {"replicas", "replicas", kInteger, "data-parallel replicas"},
              {"ranks", "ranks", kInteger, "ranks that were read"},
              {"chunks", "chunks", kInteger, "model chunks a rank"},
              {"micro_batches", "micro-batches", kInteger, "micro-batches a step"},
              {"steps", "steps", kInteger, "steps that are compared"},
              {"outliers", "outliers", kInteger, "long steps, told apart: at least 1.3 × the median step"},
              {"step_ns", "step", kDuration, "mean period: from a step's start to the next one's"},
              {"error_ns", "±", kDuration, "standard error of that mean over the steps; empty for one step"}});
  for (const auto& [name, run] : {std::pair{"a", &diff.a}, std::pair{"b", &diff.b}})
    runs.add_row({std::string(name), run->schedule, int64_t{run->stages}, int64_t{run->replicas}, int64_t{run->ranks},
                  int64_t{run->chunks}, int64_t{run->micro_batches}, run->steps, run->left_out, whole_ns(run->step_ns),
                  whole_ns(run->error_ns)});
  Table groups(
      "groups", "What the change of the mean step is made of",
      {{"cause", "cause", kText,
        "schedule, compute, messages, launch-delay, tail, between-steps, long-steps, more (small groups together), "
        "rest"},
       {"stage", "stage", kInteger, "of compute and delays; of messages who receives"},
       {"from_stage", "from", kInteger, "of messages: who sends"},
       {"kind", "kind", kText, "F, B, I, W, F&B; of a tail its type of operation"},
       {"rank", "rank", kInteger, "the one rank of B that at least four fifths of the change is in; else empty"},
       {"count", "operations", kInteger, "of B, in the steps compared; of the rest those without a counterpart in A"},
       {"a_ns", "in A", kDuration, "mean time of one operation with A's times"},
       {"b_ns", "in B", kDuration, "mean time of one operation in B"},
       {"effect_ns", "effect", kDuration,
        "what a step becomes longer by when this group's times turn from A's to B's, after the groups above"},
       {"effect_share", "share", kShare, "effect ÷ mean step of A"},
       {"error_ns", "±", kDuration, "standard error of the effect over pairs of steps"},
       {"sure", "sure", kText, "yes: beyond its uncertainty (99 %) and at least 0.2 % of A's step"},
       {"paused", "pauses", kInteger,
        "of launch delays: operations that hold nearly all of what starts became later by, where they are few"},
       {"pause_ns", "of", kDuration, "what their mean start is later by than in A"}});
  // Rounded rows add up to the rounded change: the rest takes what rounding leaves.
  int64_t left = whole_ns(diff.change_ns);
  for (const DiffGroup& g : diff.groups) {
    const bool timed = g.cause != DiffCause::kSchedule && g.cause != DiffCause::kMore && g.cause != DiffCause::kRest;
    const auto place = [](int32_t value) { return value == kUnknown ? kNullInteger : int64_t{value}; };
    const bool rest = g.cause == DiffCause::kRest;
    const int64_t effect = rest ? left : whole_ns(g.effect_ns);
    if (effect != kNullInteger) left = sum_or_limit(left, -effect);
    const double share =
        diff.a.step_ns > 0 ? (rest ? static_cast<double>(effect) : g.effect_ns) / diff.a.step_ns : std::nan("");
    groups.add_row({std::string(cause_id(g.cause)), place(g.stage), place(g.from_stage),
                    g.cause == DiffCause::kCompute ? std::string(kind_code(g.kind)) : g.type,
                    g.part == kUnknown ? kNullInteger : int64_t{g.rank}, g.count,
                    timed ? whole_ns(g.a_ns) : kNullInteger, timed ? whole_ns(g.b_ns) : kNullInteger, effect, share,
                    whole_ns(g.error_ns), std::string(g.sure ? "yes" : "no"), g.paused > 0 ? g.paused : kNullInteger,
                    g.paused > 0 ? whole_ns(g.pause_ns) : kNullInteger});
  }
  return {std::move(runs), std::move(groups)};
}

}  // namespace stageline
