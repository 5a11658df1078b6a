#include "mcp/reasons.h"

#include <cassert>

#include "engine/engine.h"
#include "model/only_communication.h"

namespace stageline::mcp {

const std::vector<Reason>& reasons() {
  static const std::vector<Reason> list = {
      {"no_pipeline_cells", "The question is about pipeline work (forward, backward, messages), and none was found.",
       "name the ranges of micro-batches (docs/howto/torch-pipelines.md), give --pp or --cell-rules, or ask what "
       "needs no pipeline"},
      {"no_numbered_steps", "Pipeline work was found, but none of it belongs to a numbered step.",
       "record the step's number with each cell, or a range around each step"},
      {"no_schedule", "No schedule was recognised, so nothing can be compared with one.",
       "run the analysis schedule to see what was compared"},
      {"no_profiler_slices", "The question is about operators and kernels, and the files contain none.",
       "record with a profiler (docs/howto/pytorch.md)"},
      {"no_flight_recorder", "The question is about calls of NCCL's flight recorder, and the files are not such dumps.",
       "dump the flight recorder (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT)"},
      {"needs_two_runs", "The question compares two runs.", "open both and call diff"},
      {"needs_two_ranks", "The question compares ranks, and the run has one.",
       "open the files of the other ranks, too"},
      {"needs_files", "The question needs files that are not a run.", "stageline analyze takes such files"},
      {"clocks_not_comparable",
       "Every rank counts time from its own zero and the clocks cannot be aligned, so waits between ranks are unknown.",
       "record messages or collectives of all ranks, or a common clock (docs/howto/clocks.md)"},
      {"replay_misses_run",
       "A simulation with the recorded times does not reproduce the steps, so no cost can be estimated.",
       "use questions that need no simulation: sql, pipeline-summary, idle-time-breakdown"},
      {"backwards_unrecorded",
       "Backwards were not recorded, so it is unknown what ranks did between their forwards, and no cost can be estimated.",
       "record backwards too"},
      {"not_recorded:memory", "The profiler was not set to record memory.", "profile with profile_memory=True"},
      {"not_recorded:modules", "The profiler was not set to record modules.",
       "profile with with_stack=True (with_modules=True for TorchScript)"},
      {"not_recorded:counters", "The files contain no counters.",
       "record them: profilers write power, memory, hardware"},
      {"not_recorded:collectives", "The files contain no collective with its group and size.",
       "torch 2.2 and newer write them; record with NCCL's events on"},
      {"not_recorded:device_work", "The files contain no device work.",
       "profile with ProfilerActivity.CUDA (or the device's own)"},
      {"not_recorded:messages", "The run contains no messages between stages.",
       "record sends and receives, or open the ranks of all stages"},
      {"not_recorded:steps", "The run contains no steps.", "call profiler.step(), or record the step's number"},
      {"not_recorded", "The files do not contain the data that the question needs.",
       "the field why names what is missing"},
      {"limit", "A documented limit was passed: time, memory, rows.", "restrict the question to a rank, step or time"},
      {"not_in_this_run", "The run or this program has no such thing.", "call analyses to list the questions"},
      {"cancelled", "The client cancelled the question.", "ask again"},
  };
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
