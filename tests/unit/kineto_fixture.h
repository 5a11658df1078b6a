// Small Kineto traces as text, and shortcuts to read them.
#pragma once

#include <string>

#include "model/torch_facts.h"
#include "profile/torch_view.h"
#include "reader_fixture.h"

namespace kineto_fixture {

inline std::string x(const std::string& cat, const std::string& name, const std::string& ts, const std::string& dur,
                     const std::string& args = "", const std::string& pid = "7", const std::string& tid = "7") {
  return "  {\n    \"ph\": \"X\", \"cat\": \"" + cat + "\", \"name\": \"" + name + "\", \"pid\": " + pid +
         ", \"tid\": " + tid + ",\n    \"ts\": " + ts + ", \"dur\": " + dur +
         (args.empty() ? "" : ",\n    \"args\": {\n      " + args + "\n    }") + "\n  }";
}
inline std::string op(const std::string& name, int ts, int dur, int id = 1) {
  return x("cpu_op", name, std::to_string(ts), std::to_string(dur), "\"External id\": " + std::to_string(id));
}
inline std::string kernel(const std::string& name, int ts, int dur, int correlation, const std::string& more = "") {
  return x("kernel", name, std::to_string(ts), std::to_string(dur),
           "\"device\": 0, \"stream\": 7, \"correlation\": " + std::to_string(correlation) + more, "0", "7");
}
inline std::string launch(int ts, int dur, int correlation, const std::string& more = "") {
  return x("cuda_runtime", "cudaLaunchKernel", std::to_string(ts), std::to_string(dur),
           "\"cbid\": 211, \"correlation\": " + std::to_string(correlation) + more);
}
inline std::string trace(const std::string& events, const std::string& members = "") {
  return "{\n  \"schemaVersion\": 1,\n" + members + "  \"traceEvents\": [\n" + events + "\n  ]\n}\n";
}

// Names of all slices in the order of the file, with commas.
inline std::string names_of(const stageline::Trace& trace, size_t part = 0) {
  const stageline::Part& p = trace.parts[part];
  std::vector<std::pair<uint32_t, std::string>> rows;
  for (size_t i = 0; i < p.slices.size(); ++i)
    rows.emplace_back(p.slices.file_index[i], std::string(trace.names.text(p.slices.name_id[i])));
  std::sort(rows.begin(), rows.end());
  std::string out;
  for (const auto& row : rows) out += (out.empty() ? "" : ",") + row.second;
  return out;
}

// The slice of that name; the test fails when there is none.
inline uint32_t slice_named(const stageline::Trace& trace, const std::string& name, size_t part = 0) {
  const stageline::Part& p = trace.parts[part];
  for (uint32_t i = 0; i < p.slices.size(); ++i)
    if (trace.names.text(p.slices.name_id[i]) == name) return i;
  FAIL("no slice named " << name);
  return 0;
}

}  // namespace kineto_fixture
