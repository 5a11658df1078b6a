#include "diagnosis/diff/diff_parts.h"

#include "diagnosis/diff/problems.h"
#include "facts/run.h"
#include "model/pipeline_words.h"
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

bool is_same(const Cause& a, const Cause& b) { return a.kind == b.kind && same_place(a.place(), b.place()); }

// Returns true when a cause is about the work of a stage, or of one rank of it.
bool is_about(const Cause& cause, const DiffGroup& group, const Trace& trace) {
  const Place& place = cause.place();
  if (!cause.kind->of_work || place.stage != group.stage) return false;
  if (place.kind == PlaceKind::kStage) return true;
  return place.kind == PlaceKind::kRanks &&
         (group.part == kUnknown || place.ranks.front() == trace.parts[group.part].rank);
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

NewCauses::NewCauses(const CauseList& b, const StepGraph& graph, const Trace& a_trace, const Trace& b_trace)
    : graph_(graph), trace_(b_trace), everywhere_(kNoCause) {
  if (b.causes.empty()) return;
  const Run a_run(a_trace);
  const std::vector<Cause>& known = causes_of(a_run).causes;
  for (const Cause& cause : b.causes)
    if (std::ranges::none_of(known, [&](const Cause& c) { return is_same(c, cause); })) causes_.push_back(&cause);
  // A cause that is everywhere does not say where work became longer, if there are other new causes.
  const bool alone = std::ranges::none_of(
      causes_, [](const Cause* c) { return c->kind->of_work && !c->places.empty() && !c->together.follows(); });
  for (uint32_t i = 0; i < causes_.size(); ++i)
    if (causes_[i]->kind->of_work && !causes_[i]->together.follows()) add(*causes_[i], i, alone);
}

void NewCauses::add(const Cause& cause, uint32_t number, bool alone) {
  if (cause.places.empty() && alone && everywhere_ == kNoCause) everywhere_ = number;
  // Stages and ranks are reported stage by stage, which names them; but a whole replica has all stages.
  for (const Place& place : cause.places) {
    if (place.kind == PlaceKind::kMicroBatches && place.first != kUnknown)
      for (int32_t mb = place.first; mb <= place.last; ++mb) by_micro_batch_.emplace(mb, number);
    if (place.kind != PlaceKind::kReplicas) continue;
    for (size_t part = 0; part < trace_.parts.size(); ++part)
      if (std::ranges::find(place.ranks, trace_.parts[part].rank) != place.ranks.end())
        by_part_.emplace(static_cast<int32_t>(part), number);
  }
}

uint32_t NewCauses::of(uint32_t op) const {
  if (const auto at = by_micro_batch_.find(graph_.micro_batch[op]); at != by_micro_batch_.end()) return at->second;
  if (const auto at = by_part_.find(graph_.part[op]); at != by_part_.end()) return at->second;
  return everywhere_;
}

Text NewCauses::what(uint32_t number) const {
  const Cause& c = *causes_[number];
  const Place& place = c.place();
  if (c.places.empty()) return words("diff.what." + std::string(c.kind->id));
  if (place.kind == PlaceKind::kMicroBatches)
    return words("diff.what.micro_batch", Args().set("number", int64_t{place.first}));
  if (c.price.otherwise_ns != 0) return words("diff.what.graded");
  return words("diff.what.replica", Args().set("replica", int64_t{place.replica}));
}

bool NewCauses::is_certain(const DiffGroup& group, uint32_t named) const {
  if (group.cause != DiffCause::kCompute || !(group.effect_ns > group.error_ns)) return false;
  return std::ranges::any_of(causes_, [&](const Cause* cause) {
    const bool own = named != kNoCause ? cause == causes_[named] : is_about(*cause, group, trace_);
    return own && cause->certain && group.effect_ns <= 2 * cause->price.lost_ns;
  });
}

}  // namespace stageline
