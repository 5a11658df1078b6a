#include "facts/profile_facts.h"

#include "model/run_extent.h"

namespace stageline {
namespace {

// The ranks asked for of dumps of flight recorders, which have no rows.
TorchRun run_of_calls(const Trace& trace) {
  TorchRun run{.trace = &trace, .zero_ns = axis_zero_ns(trace)};
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    run.ranks.push_back(trace.parts[p].rank);
    if (wanted.empty() || std::ranges::binary_search(wanted, run.ranks[p])) run.parts.push_back(p);
  }
  return run;
}

struct LedgerFact {
  using Value = LedgerOfRun;
  static Value make(const Run& run) {
    if (has_flight_calls(run.trace())) {
      LedgerOfRun out{run_of_calls(run.trace()), {}};
      out.ledger = make_ledger(out.torch);
      return out;
    }
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
