#include "diagnosis/causes/long_step_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/number.h"
#include "base/text.h"
#include "diagnosis/causes/step_begins.h"

namespace stageline {
namespace {

constexpr double kMaxUsualSteps = 100;  // a cell of more than this many usual steps is absurd
constexpr int64_t kMaxListed = 6;       // most steps that are listed for one reason

class LongStepWords {
 public:
  explicit LongStepWords(const Trace& trace) : trace_(trace) {}

  LongReason of(const LongStep& step) const {
    const std::string link = std::to_string(step.from_stage) + "-" + std::to_string(step.stage);
    const std::string rank = step.part == kUnknown ? "" : std::to_string(trace_.parts[step.part].rank);
    const std::string what = label(step);
    Args args;
    args.set("from", int64_t{step.from_stage}).set("stage", int64_t{step.stage}).set("rank", rank).set("what", what);
    args.set("own", human_duration(step.own_ns)).set("others", human_duration(step.others_ns));
    args.set("late", human_duration(step.late_ns)).set("count", grouped(step.count));
    args.set("more", step.replicas > 1 ? std::to_string(step.replicas - 1) : "");
    if (const std::string name = recorded_before(step); !name.empty())
      return {words("long_step.named", args.set("name", name)),
              "rank:" + rank + " host:" + rank + " between-steps:" + dashed(name)};
    switch (step.by) {
      case LongBy::kMessage: return {words("long_step.message", args), "hang:" + link + " message-tail:" + link};
      case LongBy::kPause: return {words("long_step.pause", args), "rank:" + rank + " host:" + rank + " host"};
      case LongBy::kLate:
        return {words("long_step.late", args),
                "hang:" + link + " message-tail:" + link + " rank:" + rank + " host:" + rank};
      case LongBy::kCell: return {words("long_step.cell", args), "rank:" + rank + only_of_its_stage(step)};
      case LongBy::kTail: return {words("long_step.tail", args), "tail:" + dashed(what) + " tail"};
      case LongBy::kRank:
        return {took("rank", args, step),
                "rank:" + rank + (step.by_host() ? " host:" + rank : only_of_its_stage(step))};
      case LongBy::kReplica: {
        const std::string dp = std::to_string(trace_.parts[step.parts.front()].dp);
        args.set("replica", dp).set("list", Text{ranks(step, ", "), ranks(step, "、")});
        return {took("replica", args, step), "replica:" + dp + " ranks:" + ranks(step, "+")};
      }
      case LongBy::kStage:
        return {took("stage", args, step), "stage:" + std::to_string(step.stage) + " ranks:" + ranks(step, "+")};
      case LongBy::kStages: {
        std::set<int32_t> stages;
        for (const int32_t part : step.parts) stages.insert(trace_.parts[part].stage);
        std::string list, keys;
        for (const int32_t stage : stages) {
          list += (list.empty() ? "" : ", ") + std::to_string(stage);
          keys += "stage:" + std::to_string(stage) + " ";
        }
        return {took("stages", args.set("list", list), step), keys + "ranks:" + ranks(step, "+")};
      }
      case LongBy::kMachine: {
        const std::string& machine = trace_.parts[step.parts.front()].machine_name;
        args.set("machine", machine).set("list", Text{ranks(step, ", "), ranks(step, "、")});
        return {took("machine", args, step), "node:" + machine + " ranks:" + ranks(step, "+")};
      }
      case LongBy::kLink: return {words("long_step.link", args), "link:" + link};
      case LongBy::kHosts:
        args.set("ranks", grouped(static_cast<int64_t>(step.parts.size())));
        return {words("long_step.hosts", args), "host"};
      case LongBy::kAll: return {took("all", args, step), "all"};
      case LongBy::kNothing: break;
    }
    return {};
  }

 private:
  // Who took so long, and whether it was their cells or the time before these.
  static Text took(const std::string& who, Args args, const LongStep& step) {
    args.flag("host", step.by_host()).flag("several", step.parts.size() > 1);
    args.set("ratio", fixed(step.own_ns / step.others_ns, 2)).set("who", words("long_step.who." + who, args));
    return words("long_step.took", args);
  }
  std::string ranks(const LongStep& step, std::string_view between) const {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(step.parts.size(), kShown); ++i)
      text += (i == 0 ? "" : std::string(between)) + std::to_string(trace_.parts[step.parts[i]].rank);
    return text + (step.parts.size() > kShown ? std::string(between) + "…" : "");
  }
  // What was recorded on the rank while its cell could have started; "" for other reasons, and where nothing was
  // recorded.
  std::string recorded_before(const LongStep& step) const {
    if ((step.by != LongBy::kPause && step.by != LongBy::kLate) || step.cell == kNoCell) return {};
    const int64_t start = trace_.cells.start_ns[step.cell];
    return name_that_fills(trace_, {{trace_.cells.part[step.cell], start - static_cast<int64_t>(step.own_ns), start}});
  }
  // With one replica a slow rank and a heavy stage are the same thing, so the stage is a key too.
  std::string only_of_its_stage(const LongStep& step) const {
    const int32_t stage = trace_.parts[step.part].stage;
    const auto alike =
        std::count_if(trace_.parts.begin(), trace_.parts.end(), [&](const Part& p) { return p.stage == stage; });
    return alike == 1 ? " stage:" + std::to_string(stage) : "";
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

}  // namespace

std::string shared_places(std::string_view some, std::string_view others) {
  std::string shared;
  bool rank_alone = true;  // a rank's device and its host are different places
  const std::string all = " " + std::string(others) + " ";
  for (size_t at = 0; at < some.size();) {
    const size_t end = std::min(some.find(' ', at), some.size());
    const std::string key(some.substr(at, end - at));
    if (key.find(':') != std::string::npos && all.find(" " + key + " ") != std::string::npos)
      shared += (shared.empty() ? "" : " ") + key, rank_alone = rank_alone && key.starts_with("rank:");
    at = end + 1;
  }
  return rank_alone ? "" : shared;
}

namespace {

std::string message_tail_keys(const Cause& cause) {
  return "message-tail:" + std::to_string(cause.place().from_stage) + "-" + std::to_string(cause.place().stage);
}

}  // namespace

LongReason long_reason(const Trace& trace, const LongStep& step) { return LongStepWords(trace).of(step); }

std::vector<LongStepFinding> long_step_findings(const Trace& trace, const CauseList& causes) {
  struct Group {
    LongReason reason;
    const LongStep* worst = nullptr;
    int64_t count = 0;
    double lost_ns = 0, variance = 0;
    std::string steps;
    bool at_first = true;  // all ranks took long in these, and no step came before them but their own
  };
  const LongStepWords words_of(trace);
  std::vector<Group> groups;
  for (const LongStep& step : causes.long_steps) {
    const LongReason reason = words_of.of(step);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.reason.keys == reason.keys || !shared_places(g.reason.keys, reason.keys).empty();
    });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{});
    // The group keeps the keys that all its steps share: the same link, whichever cell waited for its message.
    const std::string keys = group->worst && group->reason.keys != reason.keys
                                 ? shared_places(group->reason.keys, reason.keys)
                                 : reason.keys;
    if (!group->worst || step.excess_ns > group->worst->excess_ns)
      group->worst = &step, group->reason.text = reason.text;
    group->reason.keys = keys;
    group->at_first = group->at_first && step.by == LongBy::kAll &&
                      step.step == causes.first_step + static_cast<int32_t>(group->count);
    group->variance += step.lost_scatter_ns * step.lost_scatter_ns;
    if (++group->count <= kMaxListed) group->steps += (group->steps.empty() ? "" : ", ") + std::to_string(step.step);
    group->lost_ns += step.lost_ns / static_cast<double>(std::max<int64_t>(causes.all_steps, 1));
  }
  std::vector<LongStepFinding> findings;
  for (const Group& group : groups) {
    if (group.lost_ns < kMinLost * causes.wall_ns) continue;
    const LongStep& worst = *group.worst;
    const double ratio = worst.span_ns / worst.usual_ns;
    const std::string times = (ratio >= 1e6    ? "> 1 000 000"
                               : ratio >= 1000 ? grouped(static_cast<int64_t>(ratio))
                                               : fixed(ratio, 2));
    Finding f;
    f.id = "step.outlier";
    f.cause = group.reason.keys;
    f.step = worst.step;
    if (worst.part != kUnknown) f.rank = trace.parts[worst.part].rank;
    f.lost_ns_per_step = f.price.saving_ns = group.lost_ns;
    f.uncertainty_ns = std::sqrt(group.variance) / static_cast<double>(std::max<int64_t>(causes.all_steps, 1));
    f.weight = group.lost_ns / causes.wall_ns;
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
    f.detail = words("step.outlier.detail", args);
    f.price.fix = words("step.outlier.fix");
    if (worst.by == LongBy::kCell && worst.own_ns >= kMaxUsualSteps * worst.usual_ns) {
      const Cell cell = trace.cells.at(worst.cell);
      args.set("cell", cell_label(cell, cell.chunk > 0)).set("own", human_duration(worst.own_ns));
      args.set("rank", int64_t{trace.parts[worst.part].rank});
      f.detail += words("step.outlier.hang", args);
    }
    f.evidence = {"stragglers", ""};
    const bool late = worst.by == LongBy::kMessage || worst.by == LongBy::kLate;
    findings.push_back(
        {std::move(f), group.reason.text, group.count, late ? worst.own_ns - worst.others_ns : 0, group.steps});
  }
  return findings;
}

void add_long_steps(const CauseList& causes, std::vector<LongStepFinding> long_steps, std::vector<Finding>& out) {
  for (LongStepFinding& steps : long_steps) {
    const Finding& own = steps.finding;
    const auto same = std::find_if(out.begin(), out.end(), [&](const Finding& f) {
      return (f.id == "message.tail" || f.id == "host.pauses") && !shared_places(f.cause, own.cause).empty();
    });
    // A single long step is a hang of its own, whatever else its link does, unless it may just be the longest of the
    // link's late messages.
    const bool longest = same != out.end() && steps.late_ns > 0 &&
                         std::any_of(causes.causes.begin(), causes.causes.end(), [&](const Cause& cause) {
                           return cause.events && cause.events->may_hold(steps.late_ns) &&
                                  !shared_places(message_tail_keys(cause), own.cause).empty();
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

}  // namespace stageline
