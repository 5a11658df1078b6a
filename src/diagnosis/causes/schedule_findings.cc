#include "diagnosis/causes/findings.h"
#include "pipeline/measure/late_cells.h"

namespace stageline {
namespace {

constexpr double kMinLateSteps = 0.8;  // share of the steps in which a stage must start late
constexpr size_t kMinSteps = 2;        // steps that both stages must be in
constexpr double kMinLate = 0.05;      // share of the span that a reason must cost
constexpr double kMinOfLate = 0.5;     // minimum share of all reasons that the named one must have
constexpr int64_t kMinWeights = 8;     // weight gradients that are needed to say something
constexpr size_t kLookAhead = 16;      // most later forwards of the stage before that are looked at

struct FirstForwards {
  int32_t part = 0;
  int64_t free_at_ns = 0;                                                 // when the rank's work before this step ended
  std::vector<std::pair<int32_t, std::pair<int64_t, int64_t>>> forwards;  // (micro-batch, (start, end)), by start
};

struct Lateness {
  int64_t steps = 0, late = 0;
  double delay_ns = 0, step_ns = 0;  // sums over the late steps
  int32_t micro_batch = 0, later = 0;
};

// Returns how far apart the timestamps of two ranks may be for the same moment on common time; −1: unknown.
int64_t apart_ns(const Trace& trace, const Part& a, const Part& b) {
  const bool mapped = trace.alignment != AlignState::kRaw;
  if (trace.clock == ClockState::kShared || (!mapped && a.machine != kUnknown && a.machine == b.machine)) return 0;
  if (!mapped || a.clock_map.segments.empty() || b.clock_map.segments.empty()) return -1;
  const int32_t reference = a.clock_map.segments.front().reference_rank;
  for (const Part* part : {&a, &b})
    for (const ClockSegment& s : part->clock_map.segments)
      if (s.reference_rank != reference) return -1;
  // One map serves the whole machine, so its uncertainty is the same for both.
  if (a.machine != kUnknown && a.machine == b.machine && a.clock_map.common_ns(0) == b.clock_map.common_ns(0)) return 0;
  const int64_t half_a = a.clock_map.offset_half_ns(), half_b = b.clock_map.offset_half_ns();
  return half_a < 0 || half_b < 0 ? -1 : sum_or_limit(half_a, half_b);
}

// Compares when the stages of a pipeline start their first forwards, step by step. Timestamps are put on common time.
class StageStarts {
 public:
  explicit StageStarts(const Trace& trace) : trace_(trace), last_end_(trace.parts.size(), INT64_MIN) {
    for (const StepRange& step : step_ranges(trace.cells)) {
      look_at(step);
      for (size_t i = step.begin; i < step.end; ++i) {
        int64_t& end = last_end_[trace.cells.part[i]];
        end = std::max(end, trace.common_end_ns(i));
      }
    }
  }

  // The stages that start late in most of their steps.
  std::map<int32_t, Lateness> late_stages() const {
    std::map<int32_t, Lateness> late = by_stage_;
    std::erase_if(late, [](const auto& entry) {
      const Lateness& one = entry.second;
      return one.steps < static_cast<int64_t>(kMinSteps) || one.late < kMinLateSteps * one.steps;
    });
    return late;
  }

 private:
  using ByPlace = std::map<std::pair<int32_t, int32_t>, FirstForwards>;  // (replica, stage)

  // The first forwards of chunk 0 of each place; where a stage has several ranks, those of the first one.
  ByPlace first_forwards(const StepRange& step) const {
    const Cells& cells = trace_.cells;
    ByPlace first;
    FirstForwards* of_rank = nullptr;  // of the current rank, from its first forward on
    for (size_t i = step.begin; i < step.end; ++i) {
      if (i > step.begin && cells.part[i] != cells.part[i - 1]) of_rank = nullptr;
      const int32_t p = cells.part[i];
      const Part& part = trace_.parts[p];
      if (step.step == kUnknown || part.stage == kUnknown || cells.kind[i] != CellKind::kForward ||
          cells.micro_batch[i] == kUnknown || cells.chunk[i] > 0)
        continue;
      if (!of_rank)
        of_rank = &first.try_emplace({part.dp, part.stage}, FirstForwards{p, last_end_[p], {}}).first->second;
      if (of_rank->part == p && of_rank->forwards.size() < kLookAhead)
        of_rank->forwards.emplace_back(cells.micro_batch[i],
                                       std::pair(trace_.common_start_ns(i), trace_.common_end_ns(i)));
    }
    return first;
  }

  void look_at(const StepRange& step) {
    int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
    for (size_t i = step.begin; i < step.end; ++i) {
      begin_ns = std::min(begin_ns, trace_.common_start_ns(i));
      end_ns = std::max(end_ns, trace_.common_end_ns(i));
    }
    const ByPlace first = first_forwards(step);
    for (const auto& [place, own] : first)
      if (const auto before = first.find({place.first, place.second - 1}); before != first.end())
        compare(before->second, own, end_ns - begin_ns, by_stage_[place.second]);
  }

  // Counts a step; late: its rank was free, its first input ready, and a later forward of the stage before finished.
  void compare(const FirstForwards& before, const FirstForwards& own, int64_t step_ns, Lateness& late) const {
    const int64_t apart = apart_ns(trace_, trace_.parts[before.part], trace_.parts[own.part]);
    if (apart < 0) return;
    const auto& [micro_batch, times] = own.forwards.front();
    const auto sent =
        std::ranges::find_if(before.forwards, [&, mb = micro_batch](const auto& f) { return f.first == mb; });
    if (sent == before.forwards.end()) return;
    ++late.steps;
    // The uncertainty of the clocks is counted against the finding.
    const int64_t starts_ns = sum_or_limit(times.first, -apart);
    const auto ended = [&](auto forward) {
      return forward != before.forwards.end() && forward->second.second <= starts_ns;
    };
    if (own.free_at_ns > sum_or_limit(sent->second.second, -apart) || !ended(sent + 1)) return;
    auto last = sent + 1;
    while (ended(last + 1)) ++last;
    if (late.late++ == 0) late.micro_batch = micro_batch, late.later = last->first;
    late.delay_ns += times.first - sent->second.second;
    late.step_ns += step_ns;
  }

  const Trace& trace_;
  std::vector<int64_t> last_end_;  // for each part, when its work of earlier steps ended
  std::map<int32_t, Lateness> by_stage_;
};

void add_late_starts(const Trace& trace, const Recognition& r, std::vector<Finding>& out) {
  if (r.best().layout == ChunkLayout::kBidirectional || !trace.comparable()) return;
  const std::map<int32_t, Lateness> stages = StageStarts(trace).late_stages();
  if (stages.empty()) return;
  const auto share = [](const auto& entry) { return entry.second.delay_ns / entry.second.step_ns; };
  const auto& [stage, late] = *std::ranges::max_element(stages, {}, share);
  const std::string delay = human_duration(late.delay_ns / late.late);
  Finding f;
  f.id = "schedule.late_start";
  f.weight = late.step_ns > 0 ? late.delay_ns / late.step_ns : 0;
  f.value = delay;
  Args args;
  args.set("stage", int64_t{stage}).set("before", int64_t{stage - 1}).set("delay", delay);
  args.set("first", "F" + std::to_string(late.micro_batch)).set("later", "F" + std::to_string(late.later));
  args.set("late", late.late)
      .set("steps", late.steps)
      .set("stages", stages.size() > 1 ? std::to_string(stages.size()) : "");
  say(f, "finding.late_start", args);
  out.push_back(std::move(f));
}

// Returns whether a schedule itself runs all weight gradients right after their input gradients.
bool delays_none(const Schedule& schedule) {
  bool any = false;
  for (const RankOrder& order : schedule.ranks)
    for (size_t k = 0; k < order.size(); ++k) {
      const Action& weight = order[k].actions()[0];
      if (order[k].overlapped() || weight.kind != CellKind::kWeightGrad) continue;
      any = true;
      if (k == 0 || order[k - 1].overlapped() ||
          order[k - 1].actions()[0] != Action{CellKind::kInputGrad, weight.micro_batch, weight.chunk})
        return false;
    }
  return any;
}

bool on_one_clock(const Trace& trace) {
  if (trace.clock == ClockState::kShared || trace.parts.size() < 2) return true;
  const int32_t machine = trace.parts.front().machine;
  return trace.clock != ClockState::kPerRank && machine != kUnknown &&
         std::ranges::all_of(trace.parts, [&](const Part& p) { return p.machine == machine; });
}

// One reason why cells start late; its sentences are "finding.late.NAME".
struct LateReason {
  double ns;
  std::string name;
};

void add_late_reason(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out) {
  if (!on_one_clock(trace)) return;
  const LateChain c = late_chain(trace, run);
  const LateReason reasons[] = {{c.message_ns, "message"},
                                {c.launch_ns, "launch"},
                                {c.blocked_ns, "blocked"},
                                {c.unexplained_ns, "unexplained"},
                                {c.longer_ns, "longer"}};
  const LateReason* worst = &reasons[0];
  double sum = 0;
  for (const LateReason& reason : reasons) {
    sum += std::max(0.0, reason.ns);
    if (reason.ns > worst->ns) worst = &reason;
  }
  const double share = c.actual_ns > 0 ? std::min(worst->ns, c.actual_ns - c.theory_ns) / c.actual_ns : 0;
  if (share < kMinLate || worst->ns < kMinOfLate * sum) return;
  const bool listed = std::ranges::any_of(out, [](const Finding& f) { return f.id == "schedule.late_start"; });
  if (listed && worst >= &reasons[3]) return;
  const double steps = c.steps;
  Finding f;
  f.id = "schedule.late";
  f.weight = share * pipeline_share;  // relative to a step, as that of other findings
  f.value = percent(share);
  f.value_note = words("note.span");
  Args args;
  args.set("each", human_duration(worst->ns / steps)).set("schedule", run.theory.schedule);
  args.set("actual", human_duration(c.actual_ns / steps)).set("theory", human_duration(c.theory_ns / steps));
  args.set("reason", words("finding.late." + worst->name + ".reason"));
  f.title = words("finding.late." + worst->name + ".title", args);
  f.detail = words("finding.late.detail", args);
  out.push_back(std::move(f));
}

}  // namespace

// Weight gradients that were split off but always run right after their input gradients save no time compared with
// whole backwards.
void add_undelayed(const Trace& trace, const TheoryRun& run, std::vector<Finding>& out) {
  if (!run.sizes.empty() && delays_none(run.sizes.front().schedule)) return;
  const Cells& cells = trace.cells;
  int64_t weights = 0;
  std::map<int32_t, int64_t> stages;  // stages that have weight gradients, with their number
  for (const StepRange& step : step_ranges(cells)) {
    int32_t part = -1;
    size_t before = SIZE_MAX;  // the compute cell before this one, on the same rank
    for (size_t i = step.begin; step.step != kUnknown && i < step.end; ++i) {
      if (!is_compute(cells.kind[i])) continue;
      if (cells.part[i] != part) part = cells.part[i], before = SIZE_MAX;
      if (cells.kind[i] == CellKind::kWeightGrad) {
        if (before == SIZE_MAX || cells.kind[before] != CellKind::kInputGrad ||
            cells.micro_batch[before] != cells.micro_batch[i] || cells.chunk[before] != cells.chunk[i])
          return;
        ++weights;
        ++stages[trace.parts[part].stage];
      }
      before = i;
    }
  }
  if (weights < kMinWeights || stages.size() < 2) return;
  Finding f;
  f.id = "schedule.undelayed";
  f.value = counted(weights, "weight gradient", "weight gradients");
  say(f, "finding.undelayed");
  f.evidence = {"schedule", "recognition"};
  out.push_back(std::move(f));
}

void add_late(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out) {
  if (!run.recognition.recognised) return;
  add_late_starts(trace, run.recognition, out);
  add_late_reason(trace, run, pipeline_share, out);
}

}  // namespace stageline
