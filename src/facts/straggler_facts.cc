#include "facts/straggler_facts.h"

#include "facts/pipeline_facts.h"

namespace stageline {
namespace {

struct StragglersFact {
  using Value = Stragglers;
  static Value make(const Run& run) {
    return find_stragglers(run.trace(), *graph_of(run, LaunchRule::kFree).graph, coverage_of(run), sums_of(run));
  }
};

}  // namespace

const Stragglers& stragglers_of(const Run& run) { return run.fact<StragglersFact>(); }

}  // namespace stageline
