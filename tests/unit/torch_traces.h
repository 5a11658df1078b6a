// Tiny PyTorch profiler traces written by tests, and analyses put to them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "analyses/analysis.h"
#include "reader_fixture.h"

// One complete event; times in microseconds as text, so that they are exact. `args` without braces.
inline std::string torch_event(const std::string& cat, const std::string& name, int pid, int tid, const std::string& ts,
                               const std::string& dur, const std::string& args = "") {
  return R"({"ph":"X","cat":")" + cat + R"(","name":")" + name + R"(","pid":)" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + ts + ",\"dur\":" + dur + ",\"args\":{" + args + "}}";
}

inline std::string launch_args(int correlation, int stream = -1) {
  std::string text = "\"correlation\":" + std::to_string(correlation);
  return stream < 0 ? text : text + ",\"stream\":" + std::to_string(stream) + ",\"device\":0";
}
// A call on thread 1 of process 100, and device work on stream `stream` of device 0.
inline std::string call(const std::string& name, const std::string& ts, const std::string& dur, int correlation) {
  return torch_event("cuda_runtime", name, 100, 1, ts, dur, launch_args(correlation));
}
inline std::string work(const std::string& name, const std::string& ts, const std::string& dur, int correlation,
                        int stream = 7, const std::string& cat = "kernel") {
  return torch_event(cat, name, 0, stream, ts, dur, launch_args(correlation, stream));
}
inline std::string step(int number, const std::string& ts, const std::string& dur) {
  return torch_event("user_annotation", "ProfilerStep#" + std::to_string(number), 100, 1, ts, dur);
}

inline std::string torch_file(const std::vector<std::string>& events, int rank = 0) {
  std::string text =
      "{\"schemaVersion\": 1, \"deviceProperties\": [], \"distributedInfo\": {\"rank\": " + std::to_string(rank) +
      "},\n\"traceEvents\": [\n";
  for (size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "") + events[i];
  return text + "\n]}\n";
}

inline stageline::Trace torch_trace(const std::vector<std::string>& events) {
  const Folder folder;
  return read_with("kineto", {folder.add("rank0.json", torch_file(events))});
}

struct AskOptions {
  bool hta = false, msprof = false;
  std::vector<std::pair<std::string, std::string>> options = {};
};

inline std::vector<stageline::Table> ask(const stageline::Trace& trace, const char* name, const AskOptions& how = {}) {
  stageline::AnalysisInput input;
  input.trace = &trace;
  input.hta = how.hta;
  input.msprof = how.msprof;
  for (const auto& [key, value] : how.options) input.options.set(key, value);
  const stageline::Analysis* analysis = stageline::find_analysis(name);
  REQUIRE(analysis != nullptr);
  auto result = analysis->run(input);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().text()));
  return std::move(result->tables);
}

inline const stageline::Table& table_of(const std::vector<stageline::Table>& tables, std::string_view name) {
  for (const stageline::Table& table : tables)
    if (table.name() == name) return table;
  FAIL("no table " << name);
  return tables.front();
}

// The raw text of a cell, in the first row where `key` holds `value` (or the first row at all).
inline std::string cell(const stageline::Table& table, std::string_view column, std::string_view key = "",
                        std::string_view value = "") {
  const int at = table.column_index(column), by = table.column_index(key);
  REQUIRE_MESSAGE(at >= 0, std::string(column));
  for (size_t row = 0; row < table.row_count(); ++row)
    if (key.empty() || (by >= 0 && table.raw_text(row, static_cast<size_t>(by)) == value))
      return table.raw_text(row, static_cast<size_t>(at));
  return "(no row)";
}
