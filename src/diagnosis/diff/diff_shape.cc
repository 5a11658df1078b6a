#include "diagnosis/diff/diff_shape.h"

#include <cmath>

#include "base/number.h"
#include "model/pipeline_words.h"
#include "model/run_extent.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

constexpr double kOrderShare = 0.1;  // of the lists of work, that follow the schedule in one run alone

struct Shape {
  Recognition recognition;
  bool messages = false;

  double follows() const {
    return static_cast<double>(recognition.best().equal_lists) /
           static_cast<double>(std::max<int64_t>(recognition.lists, 1));
  }
};

Shape shape_of(const Trace& trace, const StepGraph& graph, DiffRun& run) {
  const Extent extent = extent_of(trace);
  run.stages = extent.stage_count;
  run.replicas = replica_count(trace, extent.dp_count);
  run.context_parallel = trace.context_parallel;
  run.ranks = static_cast<int32_t>(trace.parts.size());
  run.chunks = trace.chunks_are_pieces ? 1 : std::max(extent.chunk_count, 1);
  run.micro_batches = micro_batches_per_step(trace);
  Shape shape{recognise(trace), false};
  if (shape.recognition.recognised) {
    const ScheduleCandidate& best = shape.recognition.best();
    run.schedule = best.name;
    run.micro_batches = best.sizes.micro_batches;
    run.chunks = best.sizes.chunks;
  }
  for (size_t op = 0; op < graph.size() && !shape.messages; ++op)
    shape.messages = is_message(graph.kind[op]) && graph.cell[op] != kNoCell;
  return shape;
}

}  // namespace

void describe_shapes(const Trace& a, const StepGraph& graph_a, const Trace& b, const StepGraph& graph_b,
                     RunDiff& diff) {
  const Shape shape_a = shape_of(a, graph_a, diff.a), shape_b = shape_of(b, graph_b, diff.b);
  const auto say = [&](std::string en, std::string zh) {
    diff.changes_en.push_back(std::move(en));
    diff.changes_zh.push_back(std::move(zh));
  };
  const auto name_en = [](const DiffRun& run) { return run.schedule.empty() ? "no known schedule" : run.schedule; };
  const auto name_zh = [](const DiffRun& run) { return run.schedule.empty() ? "无法识别的调度" : run.schedule; };
  if (diff.a.schedule != diff.b.schedule) {
    say("B follows " + name_en(diff.b) + ", A " + name_en(diff.a),
        "B 采用 " + name_zh(diff.b) + "，A 采用 " + name_zh(diff.a));
  } else if (!diff.a.schedule.empty() && std::abs(shape_a.follows() - shape_b.follows()) >= kOrderShare) {
    const std::string in_a = percent(shape_a.follows()), in_b = percent(shape_b.follows());
    say(in_b + " of B's lists of work follow " + diff.a.schedule + ", of A's " + in_a,
        "B 有 " + in_b + " 的工作列表符合 " + diff.a.schedule + "，A 有 " + in_a);
  }
  const auto size = [&](int32_t in_a, int32_t in_b, const std::string& noun, const char* of_en, const char* what_zh) {
    if (in_a == in_b) return;
    say("B has " + grouped(in_b) + " " + noun +
            (in_b == 1                 ? ""
             : noun.ends_with("batch") ? "es"
                                       : "s") +
            of_en + ", A " + grouped(in_a),
        "B 有 " + grouped(in_b) + " " + what_zh + "，A 有 " + grouped(in_a) + " " + what_zh);
  };
  size(diff.a.stages, diff.b.stages, "stage", "", "级");
  size(diff.a.chunks, diff.b.chunks, "chunk", " a rank", "个分块（每 rank）");
  size(diff.a.micro_batches, diff.b.micro_batches, "micro-batch", " a step", "个微批（每步）");
  size(diff.a.replicas, diff.b.replicas, "replica", "", "个副本");
  size(diff.a.context_parallel, diff.b.context_parallel, "context-parallel pipeline", " a replica",
       "条上下文并行流水线（每副本）");
  if (diff.a.stages == diff.b.stages && diff.a.replicas == diff.b.replicas)
    size(diff.a.ranks, diff.b.ranks, "rank", "", "个 rank");
  if (shape_a.messages != shape_b.messages)
    diff.notes.add("diff.messages", Severity::kInfo,
                   std::string(shape_a.messages ? "A" : "B") +
                       " recorded its messages and the other run did not: what they take is compared as the delay "
                       "between the cells");
}

}  // namespace stageline
