// Events of tiny traces, written by tests, and an analysis put to them.
#pragma once

#include "analyses/analysis.h"
#include "reader_fixture.h"

namespace tiny {

using namespace stageline;

// An event of Kineto; times in microseconds.
inline std::string event(const char* cat, const char* name, int pid, int tid, const char* ts, const char* dur,
                         const std::string& args = "") {
  return std::string("{\"ph\":\"X\",\"cat\":\"") + cat + "\",\"name\":\"" + name + "\",\"pid\":" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + ts + ",\"dur\":" + dur + ",\"args\":{" + args + "}}";
}
inline std::string call(const char* name, const char* ts, const char* dur, int correlation, int tid = 10) {
  return event("cuda_runtime", name, 9, tid, ts, dur, "\"correlation\":" + std::to_string(correlation));
}
inline std::string kernel(const char* name, const char* ts, const char* dur, int correlation, int stream = 7,
                          const char* cat = "kernel") {
  return event(cat, name, 0, stream, ts, dur,
               "\"device\":0,\"stream\":" + std::to_string(stream) + ",\"correlation\":" + std::to_string(correlation));
}
inline std::string op(const char* name, const char* ts, const char* dur, int tid = 10) {
  return event("cpu_op", name, 9, tid, ts, dur);
}

inline std::string trace_of(const std::vector<std::string>& events) {
  std::string text = "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\": 0},\"traceEvents\":[\n";
  for (size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "") + events[i];
  return text + "]}";
}

inline Result<AnalysisResult> answer(const char* analysis, const std::vector<std::string>& events, bool hta = false,
                                     const std::vector<std::pair<std::string, std::string>>& options = {}) {
  Folder folder;
  const Trace trace = read_with("kineto", {folder.add("t.json", trace_of(events))});
  AnalysisInput input;
  input.trace = &trace;
  input.hta = hta;
  for (const auto& [name, value] : options) input.options.set(name, value);
  return find_analysis(analysis)->run(input);
}

// The integer of `column` in the row whose `key` column shows `wanted`.
inline int64_t value(const Table& table, const char* key, const std::string& wanted, const char* column) {
  const auto k = static_cast<size_t>(table.column_index(key)), c = static_cast<size_t>(table.column_index(column));
  for (size_t r = 0; r < table.row_count(); ++r)
    if (table.raw_text(r, k) == wanted) return table.integer(r, c);
  return -1;
}

}  // namespace tiny
