#include "diagnosis/causes/long_step_words.h"

#include "diagnosis/causes/place_text.h"
#include "diagnosis/causes/rank_windows.h"

namespace stageline {
namespace {

constexpr double kMaxUsualSteps = 100;  // a cell of more than this many usual steps is absurd
constexpr int64_t kMaxListed = 6;       // maximum steps listed for one reason

class LongStepWords {
 public:
  explicit LongStepWords(const Trace& trace) : trace_(trace) {}

  LongReason of(const LongStep& step) const {
    const int32_t rank = step.part == kUnknown ? kUnknown : trace_.parts[step.part].rank;
    const std::string what = label(step);
    Args args;
    args.set("from", int64_t{step.from_stage}).set("stage", int64_t{step.stage}).set("what", what);
    args.set("rank", rank == kUnknown ? "" : std::to_string(rank));
    args.set("own", human_duration(step.own_ns)).set("others", human_duration(step.others_ns));
    args.set("late", human_duration(step.late_ns)).set("count", grouped(step.count));
    args.set("more", step.replicas > 1 ? std::to_string(step.replicas - 1) : "");
    const Place link{.kind = PlaceKind::kLink, .stage = step.stage, .from_stage = step.from_stage};
    args.set("link", place_text(link));
    const Place host{.kind = PlaceKind::kHost, .ranks = {rank}}, device{.kind = PlaceKind::kRanks, .ranks = {rank}};
    if (const std::string name = recorded_before(step); !name.empty())
      return {words("long_step.named", args.set("name", name)),
              {host, {.kind = PlaceKind::kBetweenSteps, .ranks = {rank}, .name = name}},
              {},
              true};
    switch (step.by) {
      case LongBy::kMessage: return {words("long_step.message", args), {link}, {}, true};
      case LongBy::kPause: return {words("long_step.pause", args), {host}, {}, true};
      case LongBy::kLate: return {words("long_step.late", args), {link}, {host}, true};
      case LongBy::kUnread:
        if (step.from_stage == kUnknown) return {words("long_step.unread", args), {host}, {}, true};
        return {words("long_step.unread", args.flag("known", true)),
                {link},
                {host, {.kind = PlaceKind::kStage, .stage = step.from_stage}},
                true};
      case LongBy::kCell: return {words("long_step.cell", args), {device}, only_of_its_stage(step)};
      case LongBy::kTail: return {words("long_step.tail", args), {tail(step, what)}};
      case LongBy::kRank:
        if (step.by_host()) return {took(place_text(device), args, step), {host}, {}, true};
        return {took(place_text(device), args, step), {device}, only_of_its_stage(step)};
      case LongBy::kReplica: {
        const int32_t dp = trace_.parts[step.parts.front()].dp;
        args.set("replica", int64_t{dp}).set("list", Text{ranks_text(step, ", "), ranks_text(step, "、")});
        return {took(words("long_step.who.replica", args), args, step),
                {{.kind = PlaceKind::kReplicas, .ranks = ranks(step), .replica = dp}}};
      }
      case LongBy::kStage:
        return {took(words("long_step.who.stage", args), args, step),
                {{.kind = PlaceKind::kStage, .ranks = ranks(step), .stage = step.stage}}};
      case LongBy::kStages: {
        std::set<int32_t> stages;
        for (const int32_t part : step.parts) stages.insert(trace_.parts[part].stage);
        std::string list;
        std::vector<Place> places;
        for (const int32_t stage : stages) {
          list += (list.empty() ? "" : ", ") + std::to_string(stage);
          places.push_back({.kind = PlaceKind::kStage, .stage = stage});
        }
        return {took(words("long_step.who.stages", args.set("list", list)), args, step), places};
      }
      case LongBy::kMachine: {
        const std::string& machine = trace_.parts[step.parts.front()].machine_name;
        args.set("machine", machine).set("list", Text{ranks_text(step, ", "), ranks_text(step, "、")});
        return {took(words("long_step.who.machine", args), args, step),
                {{.kind = PlaceKind::kRanks, .ranks = ranks(step), .name = machine}}};
      }
      case LongBy::kLink: return {words("long_step.link", args), {link}};
      case LongBy::kHosts:
        args.set("ranks", grouped(step.parts.size()));
        return {words("long_step.hosts", args), {{.kind = PlaceKind::kHost}}};
      case LongBy::kAll: return {took(words("long_step.who.all", args), args, step), {{.kind = PlaceKind::kRun}}};
      case LongBy::kNothing: break;
    }
    return {};
  }

 private:
  // Says who took so long, and whether it was their cells or the time before these.
  static Text took(const Text& who, Args args, const LongStep& step) {
    args.flag("several", step.parts.size() > 1);
    args.set("ratio", fixed(step.own_ns / step.others_ns, 2)).set("who", who);
    return words(step.by_host() ? "long_step.started" : "long_step.took", args);
  }
  std::vector<int32_t> ranks(const LongStep& step) const {
    return mapped<int32_t>(step.parts, [&](const int32_t part) { return trace_.parts[part].rank; });
  }
  std::string ranks_text(const LongStep& step, std::string_view between) const {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(step.parts.size(), kShown); ++i)
      text += (i == 0 ? "" : std::string(between)) + std::to_string(trace_.parts[step.parts[i]].rank);
    return text + (step.parts.size() > kShown ? std::string(between) + "…" : "");
  }
  // Returns what was recorded on the rank while its cell could have started; "" for other reasons, and if there is no
  // such record.
  std::string recorded_before(const LongStep& step) const {
    if ((step.by != LongBy::kPause && step.by != LongBy::kLate && step.by != LongBy::kUnread) || step.cell == kNoCell)
      return {};
    const int64_t start = trace_.cells.start_ns[step.cell];
    return name_that_fills(trace_, {{trace_.cells.part[step.cell], start - static_cast<int64_t>(step.own_ns), start}});
  }
  // With one replica a slow rank and a heavy stage are the same thing.
  std::vector<Place> only_of_its_stage(const LongStep& step) const {
    const int32_t stage = trace_.parts[step.part].stage;
    const auto alike = std::ranges::count_if(trace_.parts, [&](const Part& p) { return p.stage == stage; });
    if (alike != 1) return {};
    return {{.kind = PlaceKind::kStage, .stage = stage}};
  }
  Place tail(const LongStep& step, const std::string& what) const {
    const bool optimizer = step.cell != kNoCell && trace_.cells.at(step.cell).kind == CellKind::kOptimizer;
    if (optimizer) return {.kind = PlaceKind::kOptimizer};
    return {.kind = PlaceKind::kCollective, .name = dashed(what)};
  }
  std::string label(const LongStep& step) const {
    if (step.cell == kNoCell) return "";
    const Cell cell = trace_.cells.at(step.cell);
    if (cell.kind == CellKind::kOptimizer) return "optimizer";
    if (cell.kind == CellKind::kCollective) return std::string(trace_.slice_name(cell));
    return cell_label(cell, cell.chunk > 0);
  }
  const Trace& trace_;
};

std::vector<Place> all_places(std::vector<Place> places, const std::vector<Place>& or_else) {
  places.insert(places.end(), or_else.begin(), or_else.end());
  return places;
}

bool same_reason(const LongReason& a, const LongReason& b) {
  if (a.single != b.single) return false;
  if (a.places.empty() || b.places.empty()) return a.places.empty() && b.places.empty();
  const std::vector<Place> of_b = all_places(b.places, b.or_else);
  return same_place(a.places.front(), b.places.front()) ||
         !shared_places(all_places(a.places, a.or_else), of_b).empty();
}

LongReason shared_reason(const LongReason& a, const LongReason& b) {
  LongReason shared = a;
  const std::vector<Place> of_b = all_places(b.places, b.or_else);
  std::vector<Place> places = shared_places(a.places, of_b), or_else = shared_places(a.or_else, of_b);
  if (places.empty() && or_else.empty()) return a;  // hosts without their ranks
  shared.places = places.empty() ? or_else : places;
  shared.or_else = places.empty() ? std::vector<Place>{} : or_else;
  return shared;
}

// Long steps that have the same reason.
struct Group {
  LongReason reason;
  const LongStep* worst = nullptr;
  int64_t count = 0;
  double lost_ns = 0, variance = 0, scatter = 0;  // variance and sum of how far single steps may be off by chance
  std::string steps;
  bool at_first = true;  // all ranks took long in these, and no step came before them but their own

  void add(const LongStep& step, const LongReason& its_reason, const CauseList& causes) {
    const bool first = !worst;
    if (first || step.excess_ns > worst->excess_ns) worst = &step, reason.text = its_reason.text;
    // The group keeps the places that all its steps share: the same link, whichever cell waited for its message.
    const Text text = reason.text;
    reason = first ? its_reason : shared_reason(reason, its_reason);
    reason.text = text;
    at_first = at_first && step.by == LongBy::kAll && step.step == causes.first_step + static_cast<int32_t>(count);
    variance += step.lost_scatter_ns * step.lost_scatter_ns;
    scatter += step.lost_scatter_ns;
    if (++count <= kMaxListed) append_item(steps, std::to_string(step.step));
    lost_ns += step.lost_ns / std::max<int64_t>(causes.all_steps, 1);
  }
};

std::string times_text(double ratio) {
  if (ratio >= 1e6) return "> 1 000 000";
  return ratio >= 1000 ? grouped(static_cast<int64_t>(ratio)) : fixed(ratio, 2);
}

void say_group(const Group& group, const Trace& trace, const CauseList& causes, Finding& f) {
  const LongStep& worst = *group.worst;
  const std::string times = times_text(worst.span_ns / worst.usual_ns);
  f.value = times + "×";
  Args args;
  args.set("reason", group.reason.text).set("step", int64_t{worst.step}).set("times", times);
  args.set("count", grouped(group.count)).set("all", grouped(causes.all_steps)).flag("one", group.count == 1);
  args.set("steps", group.steps).flag("cut", group.count > kMaxListed);
  args.set("span", human_duration(worst.span_ns)).set("usual", human_duration(worst.usual_ns));
  args.set("share", percent(std::min(1.0, worst.share)));
  args.set("lost", human_duration(group.lost_ns)).set("lost_share", percent(f.weight));
  args.flag("first", group.at_first);
  f.value_note = words("step.outlier.value");
  f.title = words("step.outlier.title", args);
  args.set("which", words(group.count == 1 ? "step.outlier.which" : "step.outlier.which.several", args));
  f.detail = words("step.outlier.detail", args);
  f.price.fix = words("step.outlier.fix");
  if (worst.by != LongBy::kCell || worst.own_ns < kMaxUsualSteps * worst.usual_ns) return;
  const Cell cell = trace.cells.at(worst.cell);
  args.set("cell", cell_label(cell, cell.chunk > 0)).set("time", human_duration(worst.own_ns));
  args.set("rank", int64_t{trace.parts[worst.part].rank});
  f.detail += words("step.outlier.hang", args);
}

Finding finding_of(const Group& group, const Trace& trace, const CauseList& causes) {
  const LongStep& worst = *group.worst;
  Finding f;
  f.id = "step.outlier";
  f.places = group.reason.places, f.or_else = group.reason.or_else;
  if (worst.by == LongBy::kAll) f.key = "all";
  f.step = worst.step;
  if (worst.part != kUnknown) f.rank = trace.parts[worst.part].rank;
  f.lost_ns_per_step = f.price.saving_ns = group.lost_ns;
  // Both the long steps and the usual ones that they are compared with scatter.
  const double usual = std::sqrt(std::max<int64_t>(causes.steps, 1));
  f.uncertainty_ns = half_interval(std::hypot(std::sqrt(group.variance), group.scatter / usual), causes.steps) /
                     std::max<int64_t>(causes.all_steps, 1);
  f.weight = group.lost_ns / causes.wall_ns;
  say_group(group, trace, causes, f);
  f.evidence = {"stragglers", ""};
  return f;
}

}  // namespace

LongReason long_reason(const Trace& trace, const LongStep& step) { return LongStepWords(trace).of(step); }

std::vector<LongStepFinding> long_step_findings(const Trace& trace, const CauseList& causes) {
  const LongStepWords words_of(trace);
  std::vector<Group> groups;
  for (const LongStep& step : causes.long_steps) {
    const LongReason reason = words_of.of(step);
    auto group = std::ranges::find_if(groups, [&](const Group& g) { return same_reason(g.reason, reason); });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{});
    group->add(step, reason, causes);
  }
  std::vector<LongStepFinding> findings;
  for (const Group& group : groups) {
    if (group.lost_ns < kMinLost * causes.wall_ns) continue;
    const LongStep& worst = *group.worst;
    const bool late = worst.by == LongBy::kMessage || worst.by == LongBy::kLate;
    findings.push_back({finding_of(group, trace, causes), group.reason.text, group.reason.single, group.count,
                        late ? worst.own_ns - worst.others_ns : 0, group.steps});
  }
  return findings;
}

void add_long_steps(const CauseList& causes, std::vector<LongStepFinding> long_steps, std::vector<Finding>& out) {
  for (LongStepFinding& steps : long_steps) {
    const Finding& own = steps.finding;
    const std::vector<Place> places = all_places(own.places, own.or_else);
    const auto is_there = [&](const std::vector<Place>& its, const std::vector<Place>& or_else) {
      return !shared_places(all_places(its, or_else), places).empty();
    };
    const auto same = std::ranges::find_if(out, [&](const Finding& f) {
      return steps.single && (f.id == "message.tail" || f.id == "host.pauses") && is_there(f.places, f.or_else);
    });
    // A single long step is a hang of its own, whatever else its link does, unless it may just be the longest of the
    // link's late messages.
    const bool longest =
        same != out.end() && steps.late_ns > 0 && std::ranges::any_of(causes.causes, [&](const Cause& cause) {
          return cause.events && cause.events->may_hold(steps.late_ns) && is_there(cause.places, {});
        });
    if (same == out.end() || (steps.count < 2 && !longest)) {
      out.push_back(std::move(steps.finding));
      continue;
    }
    Args args;
    args.set("count", grouped(steps.count)).set("steps", steps.steps).set("reason", steps.reason);
    args.flag("one", steps.count == 1);
    args.set("lost", human_duration(own.lost_ns_per_step));
    same->detail += words("step.outlier.beside", args);
    same->lost_ns_per_step += own.lost_ns_per_step;
    same->price.saving_ns += own.lost_ns_per_step;
    same->uncertainty_ns = std::hypot(same->uncertainty_ns, own.uncertainty_ns);
    same->weight = causes.step_ns > 0 ? same->lost_ns_per_step / causes.step_ns : 0;
    same->value = "−" + percent(same->weight);
  }
}

void explain_uneven(const Trace& trace, const CauseList& causes, std::vector<Finding>& findings) {
  const auto finding = std::ranges::find(findings, "step.uneven", &Finding::id);
  if (finding == findings.end()) return;
  if (causes.evens_out) findings.erase(finding);
  if (causes.uneven.empty()) return;
  const LongStep& step = causes.uneven.front();
  const LongReason reason = LongStepWords(trace).of(step);
  if (reason.text.empty()) return;
  Finding& f = *finding;
  f.places = reason.places, f.or_else = reason.or_else;
  if (step.by == LongBy::kAll) f.key = "all";
  f.step = step.step;
  if (step.part != kUnknown) f.rank = trace.parts[step.part].rank;
  f.lost_ns_per_step = step.excess_ns * std::min(1.0, step.share) / causes.all_steps;
  Args args;
  args.set("longest", int64_t{step.step}).set("shortest", int64_t{step.usual_step});
  args.set("ratio", f.value = times_text(step.span_ns / step.usual_ns) + "×");
  args.set("reason", reason.text).set("detail", f.detail).set("share", percent(std::min(1.0, step.share)));
  f.title = words("step.uneven.because", args);
  f.detail = words("step.uneven.detail", args);
}

}  // namespace stageline
