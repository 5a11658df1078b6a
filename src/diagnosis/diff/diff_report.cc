#include "diagnosis/diff/diff_report.h"

#include "diagnosis/causes/place_text.h"
#include "diagnosis/diff/diff_parts.h"

namespace stageline {
namespace {

constexpr double kMinOfChange = 0.6;  // minimum share of the change that is called most of it
constexpr size_t kMaxReportedCount = 12;
constexpr double kSameMean = 0.005;  // means that differ by a smaller share are called the same
// Share of A's step; for a change this large that may be noise, more steps should be recorded.
constexpr double kLargeChange = 0.05;
constexpr int64_t kManySteps = 20;  // with this many steps, recording more would not help

Text stage_words(int32_t stage) { return place_text({.kind = PlaceKind::kStage, .stage = stage}); }

Text link_words(const DiffGroup& g) {
  return place_text({.kind = PlaceKind::kLink, .stage = g.stage, .from_stage = g.from_stage});
}

// Returns ", 10.0 ms in A": A's value, or that the mean is the same. Example: 32 operations of 0.2 ms each can explain
// 6.4 ms. If the effect is more than twice that, the change is in few of them, or comes from elsewhere, and the text
// reports it.
Text against(const DiffGroup& g) {
  constexpr double kBeyondMean = 2;
  const double longer_ns = g.b_ns - g.a_ns;
  Args args;
  args.flag("uneven", g.per_rank > 0 && std::abs(g.effect_ns) > kBeyondMean * std::abs(longer_ns) * g.per_rank);
  args.set("a", human_duration(g.a_ns)).set("b", human_duration(g.b_ns));
  const bool same = std::abs(longer_ns) <= kSameMean * std::max(std::abs(g.a_ns), 1.0);
  return words(same ? "diff.against.same" : "diff.against", args);
}

// Where two parts of a profile's bar make up most of the change, both are its cause. Waiting for a rank is not: that
// rank is.
Text parts_cause(const RunDiff& diff) {
  std::vector<Text> parts;
  double ns = 0;
  for (const DiffGroup& g : diff.groups) {
    if (!g.sure || g.effect_ns / diff.change_ns <= 0) continue;
    ns += g.effect_ns;
    const DiffItem* item = g.behind.empty() ? nullptr : &g.behind.front();
    const bool one = item && item->effect_ns / g.effect_ns >= kMinOfChange;
    parts.push_back(g.late != kUnknown
                        ? g.why
                        : words("diff.cause.part", Args().set("part", g.what).set("item", one ? item->name : Text())));
    if (ns / diff.change_ns >= kMinOfChange) return joined(parts, words("list.comma"));
    if (parts.size() == 2) break;
  }
  return {};
}

}  // namespace

const char* cause_id(DiffCause cause) {
  static constexpr auto kTexts =
      texts_by<DiffCause::kRest, const char*>({"schedule", "compute", "messages", "launch-delay", "tail",
                                               "between-steps", "long-steps", "part", "more", "rest"});
  return kTexts[cause];
}

std::vector<Place> places_of(const DiffGroup& g) {
  if (g.late != kUnknown) return {{.kind = PlaceKind::kRanks, .ranks = {g.late}}};
  if (g.cause == DiffCause::kPart && !g.behind.empty()) return g.behind.front().places;
  if (g.from_stage != kUnknown && g.stage != kUnknown)
    return {{.kind = PlaceKind::kLink, .stage = g.stage, .from_stage = g.from_stage}};
  if (g.rank != kUnknown) return {{.kind = PlaceKind::kRanks, .ranks = {g.rank}}};
  if (g.stage != kUnknown) return {{.kind = PlaceKind::kStage, .stage = g.stage}};
  return {};
}

std::string signed_duration(double ns) {
  if (std::abs(ns) < 0.5) return "0 ns";
  return (ns < 0 ? "−" : "+") + human_duration(std::abs(ns));
}
std::string signed_percent(double share) {
  if (!std::isfinite(share)) return "";  // the step took no time
  const std::string text = percent(std::abs(share)), none = percent(0);
  return text == none ? text : (share < 0 ? "−" : "+") + text;
}

Text run_line(const DiffRun& run) {
  Args args;
  if (run.profile) {
    args.set("time", human_duration(run.step_ns)).count("ranks", run.ranks).count("steps", run.steps);
    return words(run.steps > 0 ? "diff.run.profile" : "diff.run.recording", args);
  }
  const auto some = [&](const char* name, int64_t count, int64_t min) {
    if (count >= min) args.count(name, count);
  };
  args.set("schedule", run.schedule).count("stages", run.stages).count("steps", run.steps);
  some("replicas", run.replicas, 2);
  some("pipelines", run.context_parallel, 2);
  std::vector<Text> sizes = {words("diff.run.sizes", args)};
  const auto item = [&](const char* name, int64_t count, int64_t min) {
    if (count >= min) sizes.push_back(words(name, Args().count("n", count)));
  };
  item("diff.run.chunks", run.chunks, 2);
  item("chart.micro_batches", run.micro_batches, 1);
  some("left_out", run.left_out, 1);
  args.set("long", run.left_out > 0 ? words("diff.run.long", args) : Text());
  args.set("sizes", joined(sizes, {" · ", " · "})).set("time", human_duration(run.step_ns));
  return words("diff.run", args);
}

Text headline(const RunDiff& diff) {
  const std::string error = std::isnan(diff.error_ns) || diff.error_ns == 0 ? "" : human_duration(diff.error_ns);
  const std::string noise = error.empty() || !diff.sure ? "" : " ± " + error;
  Args args;
  args.set("error", error);
  args.set("with_error", error.empty() ? Text{} : words("diff.with_error", args));
  args.set("step", human_duration(diff.b.step_ns)).set("by", human_duration(std::abs(diff.change_ns)) + noise);
  args.set("share", diff.a.step_ns > 0 ? percent(std::abs(diff.change_ns) / diff.a.step_ns) : "");
  const bool whole = diff.a.profile && (diff.a.steps == 0 || diff.b.steps == 0);
  args.set("per", words(whole ? "diff.per_recording" : "diff.per_step"));
  args.flag("slower", diff.change_ns > 0).set("change", signed_duration(diff.change_ns) + noise);
  if (diff.sure) return words("diff.sure", args);
  // A change this large may be real, so the text must not deny it.
  if (std::abs(diff.change_ns) >= kLargeChange * diff.a.step_ns && diff.a.step_ns > 0)
    return words("diff.perhaps", args.count("steps", diff.independent).flag("few", diff.independent < kManySteps));
  const bool none = std::ranges::none_of(diff.groups, [](const DiffGroup& g) { return g.sure; });
  return words(none ? "diff.none" : "diff.otherwise", args.flag("same", diff.change_ns == 0));
}

bool other_size(const RunDiff& diff) {
  const int32_t a = diff.a.micro_batches, b = diff.b.micro_batches;
  return a != b && a > 0 && b > 0;
}

bool slower_by_more(const RunDiff& diff, double share) {
  if (diff.a.profile)
    return diff.certain_ns >= kMinDiffShare * diff.a.step_ns && diff.certain_ns > share * diff.a.step_ns;
  // B's step is scaled to A's number of micro-batches, and so is its noise.
  const double scale = other_size(diff) ? diff.a.micro_batches / static_cast<double>(diff.b.micro_batches) : 1;
  const double change_ns = diff.b.step_ns * scale - diff.a.step_ns;
  if (!(change_ns > share * diff.a.step_ns)) return false;
  if (scale == 1) return diff.sure;
  return change_ns >= kMinDiffShare * diff.a.step_ns &&
         beyond_noise(change_ns, std::hypot(diff.a.error_ns, diff.b.error_ns * scale), diff.independent);
}

Text per_micro_batch(const RunDiff& diff) {
  const DiffRun &a = diff.a, &b = diff.b;
  if (!other_size(diff)) return {};
  const double in_a = a.step_ns / a.micro_batches, in_b = b.step_ns / b.micro_batches;
  Args args;
  args.set("a", human_duration(in_a)).set("b", human_duration(in_b));
  return words("diff.micro_batch", args.set("change", in_a > 0 ? signed_percent(in_b / in_a - 1) : ""));
}

bool is_most_of(const RunDiff& diff, double ns) { return ns / diff.change_ns >= kMinOfChange; }

// Names the stage whose compute is most of the change. Most of a change that all stages share is that of the stage
// which paces the pipeline. So a stage is named alone only where the others changed by at most half as much.
Text stage_cause(const RunDiff& diff) {
  struct Compute {
    double effect_ns = 0, a_ns = 0, b_ns = 0;  // a_ns, b_ns: all of it with the times of A, and of B
    double growth() const { return a_ns > 0 ? b_ns / a_ns - 1 : 0; }
  };
  std::map<int32_t, Compute> by_stage;
  for (const DiffGroup& g : diff.groups) {
    if (g.cause != DiffCause::kCompute || !g.what.empty()) continue;
    Compute& own = by_stage[g.stage];
    own.effect_ns += g.effect_ns, own.a_ns += g.a_ns * g.count, own.b_ns += g.b_ns * g.count;
  }
  for (const auto& [stage, compute] : by_stage) {
    const auto follows = [own = stage, growth = compute.growth()](const auto& other) {
      return other.first != own && other.second.growth() / growth > 0.5;
    };
    if (!is_most_of(diff, compute.effect_ns) || std::ranges::any_of(by_stage, follows)) continue;
    // Says whether one kind of the stage's work changed or all of it, and on one rank or on all.
    std::vector<const DiffGroup*> own;
    for (const DiffGroup& g : diff.groups)
      if (g.cause == DiffCause::kCompute && g.stage == stage && g.sure) own.push_back(&g);
    if (own.empty()) continue;
    const bool one_rank = own[0]->part != kUnknown &&
                          std::ranges::all_of(own, [&](const DiffGroup* g) { return g->part == own[0]->part; });
    Args args;
    args.set("kind", own.size() == 1 ? kind_words(own[0]->kind) : words("diff.kind.all"));
    args.set("rank", one_rank ? std::to_string(own[0]->rank) : "").set("stage", stage_words(stage));
    return words("diff.cause.stage", args);
  }
  return {};
}

// Names the place of one group; empty where it has no words of its own.
Text group_cause(const DiffGroup& group) {
  Args args;
  args.set("link", link_words(group)).set("stage", stage_words(group.stage)).set("type", group.type);
  args.flag("several", group.stage == kUnknown);
  switch (group.cause) {
    case DiffCause::kCompute: return group.what;
    case DiffCause::kMessages: return words("diff.cause.link", args);
    case DiffCause::kDelay:
      if (!group.type.empty()) return words("diff.cause.waiting", args);
      if (group.from_stage != kUnknown && !group.guessed) return words("diff.cause.link", args);
      return words(group.paused > 0 ? "diff.cause.pauses" : "diff.cause.late", args);
    case DiffCause::kTail: return {group.type, group.type};
    case DiffCause::kBetween: return words("diff.cause.between");
    case DiffCause::kLong: return words("diff.cause.long");
    default: return {};
  }
}

Text main_cause(const RunDiff& diff) {
  if (!diff.sure) return {};
  std::map<DiffCause, double> by_cause;
  const DiffGroup* top = nullptr;
  for (const DiffGroup& g : diff.groups) {
    if (!g.sure || g.cause == DiffCause::kRest || g.cause == DiffCause::kMore) continue;
    by_cause[g.cause] += g.effect_ns;  // the others have no line
    if (!top || g.effect_ns / diff.change_ns > top->effect_ns / diff.change_ns) top = &g;
  }
  if (!top) return {};
  const auto is_most = [&](double ns) { return is_most_of(diff, ns); };
  if (top->cause == DiffCause::kSchedule && is_most(top->effect_ns)) return words("diff.cause.schedule");
  if (diff.b.stages >= 2)
    if (Text stage = stage_cause(diff); !stage.empty()) return stage;
  if (top->cause == DiffCause::kPart) return parts_cause(diff);
  if (is_most(top->effect_ns))
    if (Text group = group_cause(*top); !group.empty()) return group;
  if (is_most(by_cause[DiffCause::kCompute])) return words("diff.cause.compute");
  if (is_most(by_cause[DiffCause::kMessages])) return words("diff.cause.messages");
  if (is_most(by_cause[DiffCause::kDelay])) return words("diff.cause.late", Args().flag("several"));
  if (is_most(by_cause[DiffCause::kTail])) return words("diff.cause.tail");
  return {};
}

Text group_line(const RunDiff& diff, const DiffGroup& g) {
  Args args;
  args.set("times", against(g)).set("stage", stage_words(g.stage)).set("link", link_words(g)).set("type", g.type);
  args.set("only", g.part == kUnknown ? Text() : words("diff.only", Args().set("rank", int64_t{g.rank})));
  args.set("some", g.paused > 0 ? g.paused : g.count).set("all", g.count);
  args.set("by", human_duration(g.paused > 0 ? g.pause_ns : g.b_ns - g.a_ns)).flag("several", g.stage == kUnknown);
  switch (g.cause) {
    case DiffCause::kSchedule:
      if (diff.changes.empty()) return words("diff.group.order");
      return words("diff.group.schedule", args.set("changes", joined(diff.changes, words("list.semicolon"))));
    case DiffCause::kCompute:
      if (!g.what.empty()) return words("diff.group.named", args.set("what", g.what));
      return words("diff.group.compute", args.set("kind", kind_words(g.kind)));
    case DiffCause::kMessages: return words(g.paused > 0 ? "diff.late_messages" : "diff.group.messages", args);
    case DiffCause::kDelay:
      if (!g.type.empty()) return words("diff.group.waiting", args);
      args.flag("guessed", g.guessed);
      if (g.from_stage != kUnknown)
        return words(g.paused > 0 ? "diff.group.few_late_messages" : "diff.group.late_messages", args);
      return words(g.paused > 0 ? "diff.group.pauses" : "diff.group.late", args);
    case DiffCause::kTail: return words("diff.group.tail", args);
    case DiffCause::kBetween: return words("diff.group.between", args.flag("few", g.sometimes));
    case DiffCause::kLong: return words("diff.group.long", args.set("why", g.why).set("step", int64_t{g.step}));
    case DiffCause::kPart: {
      args.set("a", human_duration(g.a_ns)).set("b", human_duration(g.b_ns));
      if (g.rank != kUnknown) args.set("only", words("diff.only", Args().set("rank", int64_t{g.rank})));
      return words("diff.group.part", args.set("part", g.what).set("why", g.why));
    }
    case DiffCause::kMore: return words("diff.group.more");
    default: return words("diff.group.rest");
  }
}

Text item_line(const DiffItem& item) {
  Args args;
  args.set("name", item.name).set("kernels", item.kernels).set("at", item.at);
  args.set("only", item.rank == kUnknown ? Text() : words("diff.only", Args().set("rank", int64_t{item.rank})));
  args.set("times", words(item.a_ns <= 0   ? "diff.item.new"
                          : item.b_ns <= 0 ? "diff.item.gone"
                                           : "diff.against",
                          Args().set("a", human_duration(item.a_ns)).set("b", human_duration(item.b_ns))));
  return words("diff.item", args);
}

std::vector<DiffGroup> merged_groups(const RunDiff& diff) {
  std::vector<DiffGroup> reported;
  DiffGroup rest;
  rest.error_ns = std::nan("");
  for (const DiffGroup& g : diff.groups)
    if ((g.sure || g.cause == DiffCause::kSchedule) && reported.size() < kMaxReportedCount) reported.push_back(g);
    else rest.effect_ns += g.effect_ns;
  reported.push_back(rest);
  return reported;
}

}  // namespace stageline
