// What agents can ask: tools over opened runs. Each answer is one JSON object with a handle: a name for this question
// to this run, under which `verify` asks it again and compares. Rows, texts and whole answers are capped, and what was
// cut is said; texts of a trace are data, without control characters or marks that turn the direction of writing.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "base/value_tree.h"
#include "model/trace.h"
#include "sql/run_data.h"

namespace stageline::mcp {

struct ToolLimits {
  std::vector<std::string> roots;  // real paths of folders; runs are opened below these alone
  int64_t most_rows = 200;
  int64_t most_chars = 24'000;  // of an answer
  std::chrono::milliseconds timeout{60'000};
};

class Tools {
 public:
  explicit Tools(ToolLimits limits) : limits_(std::move(limits)) {}

  // {"tools": [{name, description, inputSchema, outputSchema, annotations}]}, without braces around it.
  static void append_list(JsonWriter& json);
  static bool has(std::string_view name);
  struct Answer {
    std::string json;  // an object
    bool is_error = false;
  };
  // Of a tool that there is.
  Answer call(std::string_view name, const Value& arguments);

  static constexpr size_t kMostTraces = 16;

 private:
  struct Opened {
    std::string id;
    Trace trace;
    std::shared_ptr<const Run> run;
    std::shared_ptr<const sql::RunData> data;
    std::vector<std::string> paths;
  };
  struct Asked {
    std::string tool, arguments;  // as JSON, its keys in order
  };

  Result<std::string> open(const Value& arguments);
  Result<std::string> close(const Value& arguments);
  Result<std::string> analyses(const Value& arguments);
  Result<std::string> schema(const Value& arguments);
  Result<std::string> explain(const Value& arguments);
  Result<std::string> ask(const Value& arguments);
  Result<std::string> sql(const Value& arguments);
  Result<std::string> verify(const Value& arguments);
  Result<std::string> recompute(const std::string& handle);

  Result<std::string> confined(std::string_view path) const;
  Result<Opened*> opened(const Value& arguments);
  std::string handle_of(const Opened& run, std::string_view tool, const Value& arguments);
  Result<std::string> query(const Opened& run, std::string_view text, int64_t rows, const std::string& handle) const;

  ToolLimits limits_;
  std::list<Opened> runs_;  // the one asked last first
  std::map<std::string, Asked> handles_;
  int64_t next_id_ = 1;
};

}  // namespace stageline::mcp
