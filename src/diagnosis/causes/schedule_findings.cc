#include "diagnosis/causes/schedule_findings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/number.h"
#include "pipeline/measure/late_cells.h"

namespace stageline {
namespace {

constexpr double kMostSteps = 0.8;     // of the steps in which a stage starts late
constexpr size_t kLeastSteps = 2;      // that both stages are in
constexpr double kFollowed = 0.9;      // score from which a run is said to leave a schedule rather than to have another
constexpr double kOrderWeight = 0.01;  // an order has no price before it is replayed
constexpr double kLeastLate = 0.05;    // of the span that a reason has to cost
constexpr double kMostOfLate = 0.5;    // of all reasons, for one to be named
constexpr int64_t kLeastWeights = 8;   // weight gradients of which something is said
constexpr size_t kLookAhead = 16;      // later forwards of the stage before that are counted

void add_order(const Trace& trace, const Recognition& r, std::vector<Finding>& out) {
  int64_t lists = 0;
  for (const Divergence& d : r.divergences) lists += d.is_order ? d.lists : 0;
  if (lists == 0 || r.best().score < kFollowed) return;
  const Divergence& worst = r.divergences.front();  // orders come first
  const std::string rank = std::to_string(trace.parts[static_cast<size_t>(worst.part)].rank);
  const std::string step = std::to_string(worst.step), name = r.best().name;
  const std::string share = percent(static_cast<double>(lists) / static_cast<double>(r.lists));
  Finding f;
  f.id = "schedule.order";
  f.step = worst.step;
  f.rank = trace.parts[static_cast<size_t>(worst.part)].rank;
  f.weight = kOrderWeight * static_cast<double>(lists) / static_cast<double>(r.lists);
  f.value = share;
  f.value_note_en = "of the lists of work";
  f.value_note_zh = "的工作列表";
  f.title_en = "The order leaves " + name + " in " + share + " of the lists of work";
  f.title_zh = share + " 的工作列表偏离了 " + name + " 的顺序";
  f.detail_en = "Most often at stage " + std::to_string(worst.stage) + " (first: step " + step + ", rank " + rank +
                "): it " + worst.sentence.en + ". stageline analyze schedule lists every such place.";
  f.detail_zh = "最常见于第 " + std::to_string(worst.stage) + " 级（首次：第 " + step + " 步，rank " + rank + "）：" +
                worst.sentence.zh + "。stageline analyze schedule 列出每一处。";
  out.push_back(std::move(f));
}

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

// How far the stamps of two ranks may lie beside each other, once on common time; −1: nobody knows.
int64_t apart_ns(const Trace& trace, const Part& a, const Part& b) {
  const bool mapped = trace.alignment != AlignState::kRaw;
  if (trace.clock == ClockState::kShared || (!mapped && a.machine != kUnknown && a.machine == b.machine)) return 0;
  if (!mapped || a.clock_map.segments.empty() || b.clock_map.segments.empty()) return -1;
  const int32_t reference = a.clock_map.segments.front().reference_rank;
  for (const Part* part : {&a, &b})
    for (const ClockSegment& s : part->clock_map.segments)
      if (s.reference_rank != reference) return -1;
  // One map for a whole machine: what is open is the same for both.
  if (a.machine != kUnknown && a.machine == b.machine && a.clock_map.common_ns(0) == b.clock_map.common_ns(0)) return 0;
  const int64_t half_a = a.clock_map.offset_half_ns(), half_b = b.clock_map.offset_half_ns();
  return half_a < 0 || half_b < 0 ? -1 : sum_or_limit(half_a, half_b);
}

// Chunk 0 of the first forwards of each (replica, stage) of one step; of several ranks of a stage the first. `cells`
// are on common time.
void add_late_starts(const Trace& trace, const Recognition& r, std::vector<Finding>& out) {
  const Cells& cells = trace.cells;
  if (r.best().layout == ChunkLayout::kBidirectional || !trace.comparable()) return;
  std::vector<int64_t> last_end(trace.parts.size(), INT64_MIN);
  std::map<int32_t, Lateness> by_stage;
  for (const StepRange& step : step_ranges(cells)) {
    std::map<std::pair<int32_t, int32_t>, FirstForwards> first;
    int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
    FirstForwards* of_rank = nullptr;  // of the rank at hand, from its first forward on
    for (size_t i = step.begin; i < step.end; ++i) {
      if (i > step.begin && cells.part[i] != cells.part[i - 1]) of_rank = nullptr;
      const int64_t own_start_ns = trace.common_start_ns(i), own_end_ns = trace.common_end_ns(i);
      begin_ns = std::min(begin_ns, own_start_ns);
      end_ns = std::max(end_ns, own_end_ns);
      const auto p = static_cast<size_t>(cells.part[i]);
      const Part& part = trace.parts[p];
      if (step.step == kUnknown || part.stage == kUnknown || cells.kind[i] != CellKind::kForward ||
          cells.micro_batch[i] == kUnknown || cells.chunk[i] > 0)
        continue;
      if (!of_rank)
        of_rank =
            &first.try_emplace({part.dp, part.stage}, FirstForwards{cells.part[i], last_end[p], {}}).first->second;
      FirstForwards& own = *of_rank;
      if (own.part == cells.part[i] && own.forwards.size() < kLookAhead)
        own.forwards.emplace_back(cells.micro_batch[i], std::pair(own_start_ns, own_end_ns));
    }
    for (size_t i = step.begin; i < step.end; ++i) {
      int64_t& end = last_end[static_cast<size_t>(cells.part[i])];
      end = std::max(end, trace.common_end_ns(i));
    }
    for (const auto& [place, own] : first) {
      const auto before = first.find({place.first, place.second - 1});
      if (before == first.end()) continue;
      const Part &a = trace.parts[static_cast<size_t>(before->second.part)],
                 &b = trace.parts[static_cast<size_t>(own.part)];
      const int64_t apart = apart_ns(trace, a, b);
      if (apart < 0) continue;
      const auto& [micro_batch, times] = own.forwards.front();
      const auto sent = std::find_if(before->second.forwards.begin(), before->second.forwards.end(),
                                     [&, mb = micro_batch](const auto& f) { return f.first == mb; });
      if (sent == before->second.forwards.end()) continue;
      Lateness& late = by_stage[place.second];
      ++late.steps;
      // What the clocks leave open counts against it.
      const int64_t starts_ns = sum_or_limit(times.first, -apart);
      if (own.free_at_ns > sum_or_limit(sent->second.second, -apart) || sent + 1 == before->second.forwards.end() ||
          (sent + 1)->second.second > starts_ns)
        continue;
      auto last = sent + 1;
      while (last + 1 != before->second.forwards.end() && (last + 1)->second.second <= starts_ns) ++last;
      if (late.late++ == 0) late.micro_batch = micro_batch, late.later = last->first;
      late.delay_ns += static_cast<double>(times.first - sent->second.second);
      late.step_ns += static_cast<double>(end_ns - begin_ns);
    }
  }
  const std::pair<const int32_t, Lateness>* worst = nullptr;
  size_t stages = 0;
  for (const auto& entry : by_stage) {
    const Lateness& late = entry.second;
    if (late.steps < static_cast<int64_t>(kLeastSteps) ||
        static_cast<double>(late.late) < kMostSteps * static_cast<double>(late.steps))
      continue;
    ++stages;
    if (!worst || late.delay_ns / late.step_ns > worst->second.delay_ns / worst->second.step_ns) worst = &entry;
  }
  if (!worst) return;
  const auto& [stage, late] = *worst;
  const std::string s = std::to_string(stage), before = std::to_string(stage - 1);
  const std::string delay = human_duration(late.delay_ns / static_cast<double>(late.late));
  const std::string first = "F" + std::to_string(late.micro_batch), later = "F" + std::to_string(late.later);
  Finding f;
  f.id = "schedule.late_start";
  f.weight = late.step_ns > 0 ? late.delay_ns / late.step_ns : 0;
  f.value = delay;
  f.value_note_en = "after its input was ready";
  f.value_note_zh = "（输入就绪之后）";
  f.title_en = "Stage " + s + "'s " + first + " starts only after stage " + before + "'s " + later;
  f.title_zh = "第 " + s + " 级的 " + first + " 要等第 " + before + " 级的 " + later + " 完成才开始";
  f.detail_en = "Its input was ready " + delay + " earlier and its rank was free, in " + std::to_string(late.late) +
                " of " + std::to_string(late.steps) + " steps" +
                (stages > 1 ? "; " + std::to_string(stages) + " stages start late" : "") +
                ". The schedule has no such wait: look for a receive that is posted late, or a send that waits for its "
                "partner or shares a stream.";
  f.detail_zh = "它的输入早 " + delay + " 就绪，且 rank 空闲（" + std::to_string(late.steps) + " 步中的 " +
                std::to_string(late.late) + " 步" +
                (stages > 1 ? "；共有 " + std::to_string(stages) + " 级晚启动" : "") +
                "）。调度本身没有这个等待：请检查接收是否发起过晚，或发送是否在等待对方、与其他任务共用流。";
  out.push_back(std::move(f));
}

// Whether a schedule means its weight gradients to run right behind their input gradients.
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

// Weight gradients that were split off and always run right behind their input gradients, which is as good as whole.
void add_undelayed(const Trace& trace, const TheoryRun& run, std::vector<Finding>& out) {
  if (!run.sizes.empty() && delays_none(run.sizes.front().schedule)) return;
  const Cells& cells = trace.cells;
  int64_t weights = 0;
  std::map<int32_t, int64_t> stages;  // those with weight gradients
  for (const StepRange& step : step_ranges(cells)) {
    int32_t part = -1;
    size_t before = SIZE_MAX;  // the compute cell before, of the same rank
    for (size_t i = step.begin; step.step != kUnknown && i < step.end; ++i) {
      if (!is_compute(cells.kind[i])) continue;
      if (cells.part[i] != part) part = cells.part[i], before = SIZE_MAX;
      if (cells.kind[i] == CellKind::kWeightGrad) {
        if (before == SIZE_MAX || cells.kind[before] != CellKind::kInputGrad ||
            cells.micro_batch[before] != cells.micro_batch[i] || cells.chunk[before] != cells.chunk[i])
          return;
        ++weights;
        ++stages[trace.parts[static_cast<size_t>(part)].stage];
      }
      before = i;
    }
  }
  if (weights < kLeastWeights || stages.size() < 2) return;
  Finding f;
  f.id = "schedule.undelayed";
  f.value = counted(weights, "weight gradient", "weight gradients");
  f.value_note_en = "none delayed";
  f.value_note_zh = "均未推迟";
  f.title_en = "Weight gradients run right after their input gradients, every time: delay them to fill the waiting";
  f.title_zh = "每个权重梯度都紧跟在其输入梯度之后：请推迟它们以填补等待";
  f.detail_en =
      "Nobody waits for a weight gradient, so a zero-bubble schedule runs it where its rank would wait. Run at once it "
      "is worth no more than a whole backward: is the part that delays them switched on? stageline what-if prices such "
      "schedules.";
  f.detail_zh =
      "没有谁等待权重梯度，零气泡调度会在 rank 空闲处执行它；立即执行与完整反向并无差别。请检查推迟权重梯度的选项是否已"
      "启用。stageline what-if 给出这类调度的代价。";
  f.evidence = {"schedule", "recognition"};
  out.push_back(std::move(f));
}

bool on_one_clock(const Trace& trace) {
  if (trace.clock == ClockState::kShared || trace.parts.size() < 2) return true;
  const int32_t machine = trace.parts.front().machine;
  return trace.clock != ClockState::kPerRank && machine != kUnknown &&
         std::all_of(trace.parts.begin(), trace.parts.end(), [&](const Part& p) { return p.machine == machine; });
}

// What one reason is called and what to do about it.
struct LateWords {
  double ns;
  const char *title_en, *title_end_en, *title_zh, *detail_en, *detail_zh;
};

void add_late(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out) {
  if (!on_one_clock(trace)) return;
  const LateChain c = late_chain(trace, run);
  const LateWords reasons[] = {
      {c.message_ns, "Late messages hold the pipeline up for ", " a step", "消息迟到，流水线每步为此多等 ",
       "Their results were ready and the ranks free. Look at the links, and at sends that wait for their receives.",
       "结果已就绪，rank 也空闲。请检查链路，以及是否有发送在等待对方的接收。"},
      {c.launch_ns, "Late launches hold the pipeline up for ", " a step", "内核下发过晚，流水线每步为此多等 ",
       "Inputs were there and the devices free before the host asked for the work. Look at what the host does then.",
       "输入已到、设备空闲之后，主机才下发计算。请检查主机此时在做什么。"},
      {c.blocked_ns, "Ranks sit in sends and receives for ", " a step", "rank 停在收发操作中，流水线每步为此多等 ",
       "What the next cell needed was there, but its rank was inside a send or receive of other work: sends that wait "
       "for their receives, receives waited for in order. Post them earlier, or asynchronously.",
       "下一个单元所需的一切已就绪，但 rank "
       "正停在其他工作的发送或接收中：发送在等对方接收，或按顺序逐个等待接收。请提前或异步发起。"},
      {c.unexplained_ns, "Ranks stand ready for ", " a step, and nothing says why",
       "没有记录能说明原因：rank 已就绪却未开始，每步共 ",
       "Between the end of what it needs and its own start a cell could have run: latency of messages that were not "
       "recorded, or the host.",
       "单元所需的一切已完成，本可开始：可能是未被记录的消息延迟，或主机端的开销。"},
      {c.longer_ns, "Uneven cells hold the pipeline up for ", " a step", "个别单元比均值慢，流水线每步为此多等 ",
       "Some take longer than the mean of their stage and kind, and the others wait for whoever is slow at the moment.",
       "各级的抖动会累加：其他级总在等当下最慢的那一个。"}};
  const LateWords* worst = &reasons[0];
  double sum = 0;
  for (const LateWords& reason : reasons) {
    sum += std::max(0.0, reason.ns);
    if (reason.ns > worst->ns) worst = &reason;
  }
  const double share = c.actual_ns > 0 ? std::min(worst->ns, c.actual_ns - c.theory_ns) / c.actual_ns : 0;
  if (share < kLeastLate || worst->ns < kMostOfLate * sum) return;
  const bool said = std::any_of(out.begin(), out.end(), [](const Finding& f) { return f.id == "schedule.late_start"; });
  if (said && worst >= &reasons[3]) return;
  const auto steps = static_cast<double>(c.steps);
  const std::string each = human_duration(worst->ns / steps), name = run.theory.schedule;
  const std::string actual = human_duration(c.actual_ns / steps), theory = human_duration(c.theory_ns / steps);
  Finding f;
  f.id = "schedule.late";
  f.weight = share * pipeline_share;  // of a step, as other findings'
  f.value = percent(share);
  f.value_note_en = "of the pipeline's span";
  f.value_note_zh = "占流水线跨度";
  f.title_en = worst->title_en + each + worst->title_end_en;
  f.title_zh = worst->title_zh + each;
  f.detail_en = name + " with this run's mean times and no latency takes " + theory + ", the run " + actual + ". " +
                worst->detail_en + " stageline analyze theory lists the cells.";
  f.detail_zh = "按本次运行的平均耗时、无延迟计，" + name + " 需 " + theory + "，实际为 " + actual + "。" +
                worst->detail_zh + "stageline analyze theory 列出各单元。";
  out.push_back(std::move(f));
}

}  // namespace

void add_schedule_findings(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out,
                           bool whole) {
  if (whole) add_undelayed(trace, run, out);
  if (!run.recognition.recognised) return;
  add_order(trace, run.recognition, out);
  add_late_starts(trace, run.recognition, out);
  add_late(trace, run, pipeline_share, out);
}

}  // namespace stageline
