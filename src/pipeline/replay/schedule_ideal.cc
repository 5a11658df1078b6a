#include "pipeline/replay/schedule_ideal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/number.h"
#include "model/run_extent.h"
#include "pipeline/replay/schedule_numbers.h"
#include "schedules/make.h"

namespace stageline {
namespace {

// Median over the stages; 0: no cell of the kind.
std::map<CellKind, double> usual_costs(const std::vector<StageCost>& costs) {
  std::map<CellKind, std::vector<double>> of_stages;
  for (const StageCost& cost : costs) of_stages[cost.kind].push_back(cost.mean_ns);
  std::map<CellKind, double> usual;
  for (auto& [kind, values] : of_stages) usual[kind] = median_of(std::move(values));
  return usual;
}

// Halves that were not recorded apart are taken from the whole, and the other way round.
UnitCosts unit_costs(const std::vector<StageCost>& costs) {
  std::map<CellKind, double> usual = usual_costs(costs);
  const double f = usual[CellKind::kForward];
  double b = usual[CellKind::kBackward], i = usual[CellKind::kInputGrad], w = usual[CellKind::kWeightGrad];
  if (b <= 0) b = i + w;
  if (i <= 0) i = w > 0 ? b - w : b / 2;
  if (w <= 0) w = b - i;
  double overlapped = usual[CellKind::kForwardBackward];
  if (overlapped <= 0) overlapped = f + b;
  const auto ns = [](double value) { return static_cast<int64_t>(std::llround(std::max(0.0, value))); };
  return {ns(f), ns(i), ns(w), ns(b), ns(overlapped), 0};
}

}  // namespace

double ideal_bubble(const Recognition& recognition, const std::vector<StageCost>& costs) {
  if (!recognition.recognised) return kNaN;
  const ScheduleCandidate& best = recognition.best();
  if (int64_t{best.sizes.stages} * best.sizes.micro_batches * best.sizes.chunks * 3 > kMostIdealCells) return kNaN;
  const UnitCosts each = unit_costs(costs);
  if (each.forward_ns <= 0 || each.backward_ns <= 0) return kNaN;
  const Result<Schedule> schedule = make_schedule(best.name, best.sizes);
  if (!schedule) return kNaN;
  const auto times = replay(*schedule, each);
  if (!times) return kNaN;
  const ScheduleNumbers numbers = schedule_numbers(*schedule, *times);
  if (numbers.span_ns <= 0 || numbers.ranks.empty()) return kNaN;
  double waiting = 0;
  for (const RankNumbers& rank : numbers.ranks) waiting += static_cast<double>(rank.span_bubble_ns);
  return waiting / (static_cast<double>(numbers.span_ns) * static_cast<double>(numbers.ranks.size()));
}

BubbleWords bubble_words(const Trace& trace, const std::vector<StageCost>& costs, int64_t steps, double measured,
                         const Recognition& recognition) {
  const Extent extent = extent_of(trace);
  const int32_t p = std::max(extent.stage_count, trace.pipeline_stages), m = micro_batches_per_step(trace);
  const bool split =
      std::any_of(costs.begin(), costs.end(), [](const StageCost& c) { return c.kind == CellKind::kWeightGrad; });
  double least = ideal_bubble(recognition, costs);
  BubbleWords words;
  if (std::isfinite(least)) {
    const ScheduleCandidate& best = recognition.best();
    const std::string stages = std::to_string(best.sizes.stages), micro = std::to_string(best.sizes.micro_batches);
    words.en = "On " + stages + " stages of equal cost with " + micro +
               " micro-batches and messages that take no time, " + best.name + " would wait " + percent(least) +
               " (replayed).";
    words.zh = stages + " 级开销相同、" + micro + " 个微批、通信不耗时的情况下，" + best.name + " 会等待 " +
               percent(least) + "（重放得出）。";
  } else if (p > 1 && m > 0 && extent.chunk_count == 1 && !split) {
    least = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
    words.en = "With " + std::to_string(m) + " micro-batches on " + std::to_string(p) +
               " balanced stages, 1F1B and FThenB would wait (p−1)/(m+p−1) = " + percent(least) + ".";
    words.zh = std::to_string(p) + " 级、" + std::to_string(m) +
               " 个微批时，均衡的 1F1B 与 FThenB 会等待 (p−1)/(m+p−1) = " + percent(least) + "。";
  } else {
    words.en = "Measured over " + grouped(steps) + (steps == 1 ? " step" : " steps") +
               ": the pipeline's span minus what each rank computes.";
    words.zh = "对 " + grouped(steps) + " 步的测量：流水线跨度减去各 rank 的计算时间。";
    return words;
  }
  if (measured < least * 0.95) {
    words.en += " No run of this schedule waits less: another one ran, or clocks or stages are not what they seem.";
    words.zh += "该调度不可能等待更少：可能运行的是别的调度，或时钟、级的归属有误。";
  } else if (measured < least * 1.15) {
    words.en += " So it is mostly the schedule: more micro-batches, or interleaved chunks, would shrink it.";
    words.zh += "因此主要来自调度本身：增加微批数或采用交错分块可以减小它。";
  } else {
    words.en += " The rest is imbalance of stages and replicas, messages and jitter.";
    words.zh += "其余来自级间与副本间的不均衡、通信与抖动。";
  }
  return words;
}

}  // namespace stageline
