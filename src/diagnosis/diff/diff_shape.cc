#include <cmath>

#include "base/number.h"
#include "diagnosis/diff/diff_parts.h"
#include "diagnosis/diff/problems.h"
#include "model/pipeline_words.h"
#include "model/run_extent.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

constexpr double kOrderShare = 0.1;  // minimum share of operation orders that follow the schedule in one run only

struct Shape {
  Recognition recognition;
  bool messages = false;

  double follows() const {
    return recognition.best().equal_lists / static_cast<double>(std::max<int64_t>(recognition.lists, 1));
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
  const auto say = [&](const std::string& name, const Args& args) {
    diff.changes.push_back(words("diff.shape." + name, args));
  };
  if (diff.a.schedule != diff.b.schedule) {
    say("schedule", Args().set("a", diff.a.schedule).set("b", diff.b.schedule));
  } else if (!diff.a.schedule.empty() && std::abs(shape_a.follows() - shape_b.follows()) >= kOrderShare) {
    Args args;
    args.set("a", percent(shape_a.follows())).set("b", percent(shape_b.follows()));
    say("follows", args.set("schedule", diff.a.schedule));
  }
  const auto size = [&](const char* name, int32_t in_a, int32_t in_b) {
    if (in_a != in_b) say(name, Args().count("a", in_a).count("b", in_b));
  };
  size("stages", diff.a.stages, diff.b.stages);
  size("chunks", diff.a.chunks, diff.b.chunks);
  size("micro_batches", diff.a.micro_batches, diff.b.micro_batches);
  size("replicas", diff.a.replicas, diff.b.replicas);
  size("pipelines", diff.a.context_parallel, diff.b.context_parallel);
  if (diff.a.stages == diff.b.stages && diff.a.replicas == diff.b.replicas) size("ranks", diff.a.ranks, diff.b.ranks);
  if (shape_a.messages != shape_b.messages)
    diff.notes.add(problem::diff_messages, Args().flag("in_a", shape_a.messages));
}

}  // namespace stageline
