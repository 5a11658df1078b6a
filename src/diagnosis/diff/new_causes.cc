#include <algorithm>

#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/diff/diff_parts.h"
#include "facts/run.h"

namespace stageline {
namespace {

bool is_same(const Cause& a, const Cause& b) { return a.kind == b.kind && same_place(a.place(), b.place()); }

// Whether a cause is about the work of a stage, or of one rank of it.
bool is_about(const Cause& cause, const DiffGroup& group, const Trace& trace) {
  const Place& place = cause.place();
  if (!cause.kind->of_work || place.stage != group.stage) return false;
  if (place.kind == PlaceKind::kStage) return true;
  return place.kind == PlaceKind::kRanks &&
         (group.part == kUnknown || place.ranks.front() == trace.parts[group.part].rank);
}

}  // namespace

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
