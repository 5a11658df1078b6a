#include "readers/common/foreign.h"

#include "base/text.h"

namespace stageline {
namespace {

constexpr ForeignFormat kExecutionTrace = {
    "this is a PyTorch execution trace (Chakra): a graph of operators without device times",
    "give the profiler trace of the same run: torch.profiler's *.pt.trace.json, or export_chrome_trace"};
constexpr ForeignFormat kRocprof = {
    "this is rocprofiler's own JSON, not a PyTorch profiler trace",
    "record with torch.profiler, or let rocprofv3 write --output-format pftrace for Perfetto"};
constexpr ForeignFormat kPickle = {
    "this is a Python pickle, such as a CUDA memory snapshot (torch.cuda.memory._dump_snapshot)",
    "it holds allocations and no times of work; pytorch.org/memory_viz shows it. Stageline needs a profiler trace"};
constexpr ForeignFormat kNsys = {"this is an SQLite database of Nsight Systems",
                                 "Stageline reads PyTorch profiler traces; record with torch.profiler, or look at this "
                                 "one with Nsight Systems"};
constexpr ForeignFormat kSqlite = {"this is an SQLite database, and no reader takes it",
                                   "give the traces that it was made of, or a table of timings as CSV"};
constexpr ForeignFormat kNsysReport = {"this is a report of Nsight Systems (.nsys-rep)",
                                       "nsys export --type sqlite --include-blobs=true REPORT.nsys-rep makes a file that Stageline reads"};
constexpr ForeignFormat kAscend = {
    "this is an Ascend profiler's trace_view.json: a Chrome trace, but its rows are not Kineto's",
    "call it trace_view.json again, or give the folder that the profiler made: then the reader ascend takes it"};
constexpr ForeignFormat kMemoryTimeline = {
    "this is a memory timeline (export_memory_timeline): sizes over time, not work",
    "give the profiler trace of the same run; its [memory] events hold the same and more"};

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

const ForeignFormat* foreign_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos) return nullptr;
  head.remove_prefix(at);
  if (head[0] == '{') {
    if (has(head, "\"schema\"") && !has(head, "\"schemaVersion\"") && !has(head, "\"traceEvents\"") &&
        (has(head, "\"nodes\"") || has(head, "\"op_schema\"") || has(head, "\"rf_id\"")))
      return &kExecutionTrace;
    if (has(head.substr(0, 4096), "\"rocprofiler-sdk-tool\"")) return &kRocprof;
  }
  if (has(head, "\"ph\"") && has(head, "\"Ascend Hardware\"")) return &kAscend;
  if (head[0] == '[') {
    const size_t inner = head.find_first_not_of(" \t\r\n", 1);
    if (inner != std::string_view::npos && head[inner] == '[' && inner + 1 < head.size() &&
        has("-0123456789", head.substr(inner + 1, 1)) && !has(head, "\"ph\""))
      return &kMemoryTimeline;
  }
  return nullptr;
}

}  // namespace

bool is_foreign_json(std::string_view head) { return foreign_json(head) != nullptr; }

const ForeignFormat* foreign_format(std::string_view head, std::string_view path) {
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return &kPickle;
  if (head.starts_with(std::string_view("SQLite format 3\0", 16)))
    return has(head, "CUPTI_ACTIVITY") || file_name(path).find("nsys") != std::string::npos ? &kNsys : &kSqlite;
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep")) return &kNsysReport;
  return foreign_json(head);
}

}  // namespace stageline
