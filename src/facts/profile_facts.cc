#include "facts/profile_facts.h"

#include "base/parallel.h"

namespace stageline {
namespace {

struct LedgerFact {
  using Value = LedgerOfRun;
  static Value make(const Run& run) {
    Result<TorchRun> torch = make_torch_run(run.trace(), {.include_last_step = true});
    if (!torch) return {};
    LedgerOfRun out{std::move(*torch), {}};
    out.ledger = make_ledger(out.torch);
    return out;
  }
};

struct FlightFact {
  using Value = FlightReport;
  static Value make(const Run& run) { return match_flight(run.trace()); }
};

struct CallTreesFact {
  using Value = std::vector<CallTree>;
  static Value make(const Run& run) {
    const Trace& trace = run.trace();
    const FunctionNames names(trace);
    Value trees(trace.parts.size());
    parallel_for(trees.size(), [&](size_t p) { trees[p] = call_tree(trace, trace.parts[p], names); });
    return trees;
  }
};

}  // namespace

const LedgerOfRun& ledger_of(const Run& run) { return run.fact<LedgerFact>(); }

const FlightReport& flight_of(const Run& run) { return run.fact<FlightFact>(); }

bool has_calls(const Trace& trace) {
  return std::ranges::any_of(trace.parts, [](const Part& part) {
    return part.slices.size() > 0 && part.slices.has_facts() && std::ranges::any_of(part.lanes, [](const Lane& lane) {
             return lane.kind == LaneKind::kHostThread && lane.end > lane.begin;
           });
  });
}

const std::vector<CallTree>& call_trees_of(const Run& run) { return run.fact<CallTreesFact>(); }

}  // namespace stageline
