// The tools that agents can call on opened runs. Each answer is one JSON object with a handle, which names this
// question to this run, so that `verify` and resources/read can ask it again. Rows, texts and whole answers are capped,
// and answers report the cuts. Texts from a trace are data; control characters and marks that turn the direction of
// writing are replaced in them.
#pragma once

#include <chrono>
#include <list>

#include "engine/engine.h"
#include "mcp/tool_table.h"

namespace stageline::mcp {

struct ToolLimits {
  std::vector<std::string> roots;   // real paths of folders; only runs below these are opened
  std::vector<std::string> writes;  // the same; reports are written only below these. Empty: there is no such tool
  int64_t max_rows = 200;
  int64_t max_chars = 24'000;  // maximum characters of an answer
  // Most memory of this process with its runs; 0: no limit. Beyond it, the run that was asked longest ago is closed.
  int64_t max_bytes = 0;
  std::chrono::milliseconds timeout{60'000};
  // Writes a run as a page. This is `stageline report`, which belongs to a room above this one.
  std::function<Status(Trace trace, const std::vector<std::string>& paths, const std::string& output)> report;
  // Returns plans of pipelines as JSON. `flags` are those of `stageline plan`, which belongs to a room above this one.
  std::function<Result<std::string>(const std::vector<std::string>& flags)> plan;
};

class Tools {
 public:
  explicit Tools(ToolLimits limits) : limits_(std::move(limits)) {}

  // Adds "tools": [{name, description, inputSchema, outputSchema, annotations}] to an open object.
  void append_list(JsonWriter& json) const;
  bool has(std::string_view name) const;
  struct Answer {
    std::string json;  // one object
    bool is_error = false;
    std::string png;  // a picture that comes with the answer, as base64
  };
  // Calls a tool, which must exist. `progress` reports on a run that is being read; cancelling it gives the question
  // up.
  Answer call(std::string_view name, const Value& arguments, Progress* progress = nullptr);

  // Asks again the question that a handle names. Errors: kUsage where no answer had that handle.
  Result<std::string> recompute(const std::string& handle);
  // Id and description of each opened run, the one that was asked last first.
  std::vector<std::pair<std::string, std::string>> opened_runs() const;

  static constexpr size_t kMaxTraces = 16;
  // The maximum number of analysis answers that are kept for each run, and the maximum rows of a kept one.
  static constexpr size_t kMaxKept = 32, kMaxKeptRows = 100'000;

 private:
  struct Opened {
    std::string id;
    Trace trace;
    std::shared_ptr<const Run> run;
    std::shared_ptr<const sql::RunData> data;
    std::unique_ptr<sql::SessionPool> sessions;
    std::vector<std::string> paths;
    OpenOptions options;  // the options with which it was opened
    std::string files;    // the files that were there then: a line for each, with its size and time
    // Results that took long to compute and do not change; made when first asked for.
    std::map<std::string, std::shared_ptr<const AnalysisResult>> answers;  // key: analysis and options
  };
  struct Asked {
    std::string tool, arguments;  // JSON with its keys in order
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
  Result<std::string> plan(const Value& arguments);
  Result<std::string> diff(const Value& arguments);
  Result<std::string> chart(const Value& arguments);
  Result<std::string> pipeline_chart(Opened& run, const Value& arguments);
  Result<std::string> timeline_chart(Opened& run, const Value& arguments);
  Result<std::string> span_chart(Opened& run, const Value& arguments);
  Result<std::string> report(const Value& arguments);
  Result<std::string> verify(const Value& arguments);

  static const Explanation& explanation_of(Opened& run);
  // Reads the run again as it was opened; a file that has changed since is refused.
  Result<Trace> read_again(const Opened& run, OpenOptions options) const;
  Status unchanged(const Opened& run) const;
  Result<std::string> confined(std::string_view path) const;
  Result<std::string> writable(std::string_view path) const;
  Result<Opened*> opened(const Value& arguments, const char* name = "trace");
  void forget(const std::string& id);
  std::vector<std::string> make_room();
  static std::string opened_json(const Opened& run, const std::vector<std::string>& closed);
  std::string handle_of(const Opened& run, std::string_view tool, const Value& arguments);
  Result<sql::Outcome> rows_of(const Opened& run, std::string_view text, int64_t rows, sql::RowSink& sink) const;
  Result<std::string> query(const Opened& run, std::string_view text, int64_t rows, const std::string& handle) const;
  // Tables that a query names and that are empty in this run, each with the reason.
  std::vector<std::pair<std::string, std::string>> empty_tables(const Opened& run, std::string_view text,
                                                                const char** reason) const;
  // Adds the columns of a table, up to `rows` of its rows in the order that `sort` names, whether there are more, and
  // how to get them.
  void append_table(JsonWriter& json, const Table& table, int64_t rows, std::string_view sort) const;

  ToolLimits limits_;
  std::list<Opened> runs_;  // the one that was asked last first
  std::map<std::string, Asked> handles_;
  int64_t next_id_ = 1;
  Progress* progress_ = nullptr;  // of the call that is being answered
  std::string png_;               // the picture of the call that is being answered
};

// Returns how explain divides the span: parts that add up to 1.
inline const std::vector<SpanPart>& parts_of(const Explanation& e) {
  return e.parts.empty() ? e.headline.parts : e.parts;
}

// {"cannot_answer": true, …}: a proper answer, which is not the asker's mistake.
std::string cannot_answer(std::string_view reason, std::string_view why, std::string_view help);

}  // namespace stageline::mcp
