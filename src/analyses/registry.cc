#include "analyses/analysis.h"
#include "base/text.h"

namespace stageline {

#define ANALYSIS(id) extern const Analysis id##_analysis;
#include "analyses/analyses.def"
#undef ANALYSIS

const std::vector<const Analysis*>& analyses() {
  static const std::vector<const Analysis*> all = {
#define ANALYSIS(id) &id##_analysis,
#include "analyses/analyses.def"
#undef ANALYSIS
  };
  return all;
}

const Analysis* find_analysis(std::string_view name) {
  for (const Analysis* analysis : analyses())
    if (analysis->name == dashed(name)) return analysis;
  return nullptr;
}

const char* needs_text(AnalysisNeeds needs) {
  switch (needs) {
    case AnalysisNeeds::kCells: return "needs pipeline cells, and this trace has none";
    case AnalysisNeeds::kTorch: return "needs a profiler trace with slices";
    case AnalysisNeeds::kCalls: return "needs dumps of a flight recorder";
    case AnalysisNeeds::kXla: return "needs a profile of XLA";
    case AnalysisNeeds::kAllocator: return "needs a snapshot of PyTorch's allocator";
    case AnalysisNeeds::kNodes: return "needs a profile with an execution trace (ExecutionTraceObserver) beside it";
    case AnalysisNeeds::kTwoRuns: return "compares two runs, and is not asked of one";
    case AnalysisNeeds::kFiles: return "reads files that are no traces";
  }
  return "";
}

const char* needs_name(AnalysisNeeds needs) {
  switch (needs) {
    case AnalysisNeeds::kCells: return "cells";
    case AnalysisNeeds::kTorch: return "slices";
    case AnalysisNeeds::kCalls: return "calls";
    case AnalysisNeeds::kXla: return "xla";
    case AnalysisNeeds::kAllocator: return "allocator";
    case AnalysisNeeds::kNodes: return "nodes";
    case AnalysisNeeds::kTwoRuns: return "two runs";
    case AnalysisNeeds::kFiles: return "files";
  }
  return "";
}

}  // namespace stageline
