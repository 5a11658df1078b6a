// What agents can ask: tools over opened runs. Each answer is one JSON object with a handle: a name for this question
// to this run, under which `verify` and resources/read ask it again. Rows, texts and whole answers are capped, and what
// was cut is said; texts of a trace are data, without control characters or marks that turn the direction of writing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/value_tree.h"
#include "engine/engine.h"
#include "mcp/answer_parts.h"
#include "mcp/tool_table.h"
#include "model/trace.h"
#include "sql/run_data.h"
#include "sql/session.h"

namespace stageline::mcp {

struct ToolLimits {
  std::vector<std::string> roots;   // real paths of folders; runs are opened below these alone
  std::vector<std::string> writes;  // likewise; reports are written below these alone. Empty: the tool is not there
  int64_t most_rows = 200;
  int64_t most_chars = 24'000;  // of an answer
  int64_t most_bytes = 0;       // of this process with its runs; 0: no limit. The run asked longest ago is closed
  std::chrono::milliseconds timeout{60'000};
  // Writes a run as a page: `stageline report`, which stands above this room.
  std::function<Status(Trace trace, const std::vector<std::string>& paths, const std::string& output)> report;
};

class Tools {
 public:
  explicit Tools(ToolLimits limits) : limits_(std::move(limits)) {}

  // {"tools": [{name, description, inputSchema, outputSchema, annotations}]}, without braces around it.
  void append_list(JsonWriter& json) const;
  bool has(std::string_view name) const;
  struct Answer {
    std::string json;  // an object
    bool is_error = false;
    std::string png;  // a picture beside it, as base64
  };
  // Of a tool that there is. `progress`: of a run that is read; cancelling it gives the question up.
  Answer call(std::string_view name, const Value& arguments, Progress* progress = nullptr);

  // What a handle names, asked again. Errors: kUsage when no answer had it.
  Result<std::string> recompute(const std::string& handle);
  // Of opened runs: id and description, the one asked last first.
  std::vector<std::pair<std::string, std::string>> opened_runs() const;

  static constexpr size_t kMostTraces = 16;
  // Of a run: answers of analyses that are kept, each of at most so many rows.
  static constexpr size_t kMostKept = 32, kMostKeptRows = 100'000;

 private:
  struct Opened {
    std::string id;
    Trace trace;
    std::shared_ptr<const Run> run;
    std::shared_ptr<const sql::RunData> data;
    std::unique_ptr<sql::SessionPool> sessions;
    std::vector<std::string> paths;
    OpenOptions options;  // as it was opened
    std::string files;    // what lay there then: a line a file with its size and time
    // What took long to find out and does not change: made when first asked.
    std::shared_ptr<const Explanation> explanation;
    std::map<std::string, std::shared_ptr<const AnalysisResult>> answers;  // by analysis and options
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
  Result<std::string> slices(const Value& arguments);
  Result<std::string> slice(const Value& arguments);
  Result<std::string> what_if(const Value& arguments);
  Result<std::string> diff(const Value& arguments);
  Result<std::string> chart(const Value& arguments);
  Result<std::string> pipeline_chart(Opened& run, const Value& arguments);
  Result<std::string> timeline_chart(Opened& run, const Value& arguments);
  Result<std::string> span_chart(Opened& run, const Value& arguments);
  Result<std::string> report(const Value& arguments);
  Result<std::string> verify(const Value& arguments);

  static const Explanation& explanation_of(Opened& run);
  // The run as it was opened, read again: a file that changed since is refused.
  Result<Trace> read_again(const Opened& run, OpenOptions options) const;
  Status unchanged(const Opened& run) const;
  Result<std::string> confined(std::string_view path) const;
  Result<std::string> writable(std::string_view path) const;
  Result<Opened*> opened(const Value& arguments, const char* name = "trace");
  std::vector<std::string> make_room();
  std::string handle_of(const Opened& run, std::string_view tool, const Value& arguments);
  Result<sql::Outcome> rows_of(const Opened& run, std::string_view text, int64_t rows, sql::RowSink& sink) const;
  Result<std::string> query(const Opened& run, std::string_view text, int64_t rows, const std::string& handle) const;
  // Tables that a query names and this run has nothing of, each with why.
  std::vector<std::pair<std::string, std::string>> empty_tables(const Opened& run, std::string_view text,
                                                                const char** reason) const;
  // Its columns (left out by the caller otherwise), rows, truncated, more.
  void append_table(JsonWriter& json, const Table& table, int64_t rows, std::string_view sort) const;

  ToolLimits limits_;
  std::list<Opened> runs_;  // the one asked last first
  std::map<std::string, Asked> handles_;
  int64_t next_id_ = 1;
  Progress* progress_ = nullptr;  // of the call that is answered
  std::string png_;               // likewise
};

// What explain says of the span: parts that add up to 1.
inline const std::vector<SpanPart>& parts_of(const Explanation& e) {
  return e.parts.empty() ? e.headline.parts : e.parts;
}

// {"cannot_answer": true, …}: an answer of its own, not a mistake of who asks.
std::string cannot_answer(std::string_view reason, std::string_view why, std::string_view help);

}  // namespace stageline::mcp
