// Facts of a trace alone, for tests of single facts: each call recomputes its dependencies.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/findings.h"
#include "diagnosis/explain.h"
#include "diagnosis/what_if/what_if.h"
#include "facts/pipeline_facts.h"
#include "pipeline/measure/links.h"
#include "pipeline/measure/stragglers.h"

namespace stageline {

inline TheoryRun theory_of(const Trace& trace) { return theory_of(trace, pipeline_sums(trace)); }

inline Result<StepGraph> build_step_graph(const Trace& trace, Diagnostics& notes, LaunchRule rule = LaunchRule::kFree) {
  return build_step_graph(trace, pipeline_sums(trace), notes, rule);
}

inline Links find_links(const Trace& trace, const StepGraph& graph) {
  return find_links(trace, graph, pipeline_sums(trace));
}

inline Stragglers find_stragglers(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage) {
  return find_stragglers(trace, graph, coverage, pipeline_sums(trace));
}

inline CauseList causes_of(const Trace& trace) { return causes_of(Run(trace)); }

inline Findings find_findings(const Trace& trace) { return find_findings(Run(trace)); }

// Returns findings as in a report, with the savings of replays.
inline Findings reported_findings(const Trace& trace) {
  const Explanation reported = explain(Run(trace), false);
  return {reported.headline, reported.findings, reported.offers, reported.others};
}

inline Result<WhatIf> what_if_of(const Trace& trace, Diagnostics& notes) { return what_if_of(Run(trace), notes); }

}  // namespace stageline
