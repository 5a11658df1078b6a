#include "mcp/reasons.h"

#include <cassert>

#include "base/word_files.h"
#include "engine/engine.h"
#include "model/only_communication.h"

namespace stageline::mcp {

const std::vector<Reason>& reasons() {
  static const std::vector<Reason> list = [] {
    std::vector<Reason> all;
    for_each_declared("reasons", [&](std::string_view name, const simdjson::dom::element& texts) {
      all.push_back({std::string(name), declared_text(texts, 0), declared_text(texts, 1)});
    });
    return all;
  }();
  return list;
}

const Reason& reason(std::string_view name) {
  for (const Reason& one : reasons())
    if (name == one.name) return one;
  assert(false && "a reason that is not in the list");
  return reasons().back();
}

const Reason* reason_against(const Analysis& analysis, const Trace& trace) {
  switch (analysis.needs) {
    case AnalysisNeeds::kTwoRuns: return &reason("needs_two_runs");
    case AnalysisNeeds::kFiles: return &reason("needs_files");
    case AnalysisNeeds::kCells:
      if (trace.cells.size() == 0) return &reason("no_pipeline_cells");
      break;
    case AnalysisNeeds::kTorch:
    case AnalysisNeeds::kComputing:
      if (!suits(analysis, trace)) return &reason(is_only_communication(trace) ? "not_recorded" : "no_profiler_slices");
      break;
    case AnalysisNeeds::kCalls:
      if (!suits(analysis, trace)) return &reason("no_flight_recorder");
      break;
    case AnalysisNeeds::kRequests:
    case AnalysisNeeds::kXla:
    case AnalysisNeeds::kAllocator:
    case AnalysisNeeds::kNodes:
      if (!suits(analysis, trace)) return &reason("not_recorded");
      break;
  }
  return suits(analysis, trace) ? nullptr : &reason("not_in_this_run");
}

const Reason* reason_of(const Error& error, const Trace& trace, const Analysis* analysis) {
  // Errors that say why a run cannot answer are named after the reason: "refused.no_schedule.waterfall".
  if (constexpr std::string_view kRefused = "refused."; error.name.starts_with(kRefused)) {
    const std::string_view name = error.name.substr(kRefused.size());
    return &reason(name.substr(0, name.find('.')));
  }
  switch (error.code) {
    case ErrorCode::kLimit: return &reason("limit");
    case ErrorCode::kUnavailable:
    case ErrorCode::kBadInput: break;
    default: return nullptr;
  }
  if (analysis) {
    const Reason* const against = reason_against(*analysis, trace);
    if (against) return against;
  }
  if (!analysis && trace.cells.size() == 0) return &reason("no_pipeline_cells");
  return error.code == ErrorCode::kBadInput ? &reason("not_recorded") : &reason("not_in_this_run");
}

const Reason* reason_empty(std::string_view table, const Trace& trace) {
  if (table == "memory") return &reason("not_recorded:memory");
  if (table == "counters") return &reason("not_recorded:counters");
  if (table == "collectives") return &reason("not_recorded:collectives");
  if (table == "kernels" || table == "gaps") return &reason("not_recorded:device_work");
  if (table == "messages")
    return trace.cells.size() == 0 ? &reason("no_pipeline_cells") : &reason("not_recorded:messages");
  if (table == "cells" || table == "cell_links") return &reason("no_pipeline_cells");
  if (table == "steps") return &reason("not_recorded:steps");
  if (table == "slices") return &reason("no_profiler_slices");
  return nullptr;
}

}  // namespace stageline::mcp
