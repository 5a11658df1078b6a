// stageline sql: runs one query over a run, or opens the prompt for several.
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/machine_memory.h"
#include "base/sqlite_db.h"
#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "cli/sql_prompt.h"
#include "sql/answer.h"

namespace stageline {
namespace {

constexpr size_t kMaxQueryBytes = 1'000'000;
constexpr size_t kWidest = 60;  // columns that a text may take, unless --wide is given

bool is_path(const std::string& word) {
  struct stat found = {};
  return stat(word.c_str(), &found) == 0;
}

struct SqlQuestion {
  std::vector<std::string> paths;
  std::string query;           // empty: opens the prompt
  bool query_is_word = false;  // the query is the last operand, because that is not a path
  std::string format;
  sql::Limits limits;
  bool schema = false, wide = false;
};

// Returns what is asked, before anything is read. Errors: kUsage, and those of --file.
Result<SqlQuestion> question_of(const Arguments& arguments, const Terminal& terminal) {
  SqlQuestion q{.paths = arguments.operands,
                .format = arguments.has("json") ? "json" : arguments.get("format", "text"),
                .schema = arguments.has("schema") || arguments.has("table"),
                .wide = arguments.has("wide")};
  if (q.format != "text" && q.format != "csv" && q.format != "json" && q.format != "arrow")
    return make_error(ErrorCode::kUsage, "answers come as text, csv, json or arrow, not \"" + q.format + "\"");
  const bool is_text = q.format == "text";
  TRY(rows, arguments.integer("rows", is_text ? (terminal.table_width > 0 ? 40 : 100) : 0, 0, INT64_MAX));
  q.limits.max_rows = *rows == 0 ? INT64_MAX : *rows;
  TRY(timeout, arguments.duration_ns("timeout", 0));
  q.limits.timeout = std::chrono::milliseconds(*timeout > 0 ? std::max<int64_t>(1, *timeout / 1'000'000) : 0);
  if (arguments.has("file")) {
    TRY_OK(take(read_all(arguments.get("file"), kMaxQueryBytes), q.query));
    if (trim(q.query).empty())
      return make_error(ErrorCode::kUsage, "there is no query in it", "", {arguments.get("file")});
  } else if (q.paths.size() > 1 && !q.schema && !is_path(q.paths.back())) {
    q.query = q.paths.back();
    q.query_is_word = true;
    q.paths.pop_back();
  }
  if (q.schema && q.query.empty()) {
    const std::string table = arguments.get("table");
    q.query = table.empty() ? "SELECT table_name, name, type, unit, help FROM columns"
                            : "SELECT name, type, unit, is_option, help FROM columns(" + sql_text(table) + ")";
    if (is_text && !arguments.has("rows")) q.limits.max_rows = INT64_MAX;
    q.wide = true;
  }
  return q;
}

}  // namespace

Result<int> run_sql(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY(q, question_of(arguments, *terminal));
  if (q->query.empty() && isatty(STDIN_FILENO) == 0) {
    TRY(text, read_all("-", kMaxQueryBytes));
    q->query = std::move(*text);
    if (trim(q->query).empty())
      return make_error(ErrorCode::kUsage, "a query is missing",
                        "stageline sql LOGS \"SELECT name, help FROM tables\"");
  }
  if (q->query.empty() && (arguments.has("output") || q->format != "text"))
    return make_error(ErrorCode::kUsage, "the prompt prints text; --format and --output need a query",
                      "stageline sql LOGS \"SELECT …\"");
  TRY(out, open_output(arguments.get("output", "-"), q->paths));
  TRY(trace, open_run(arguments, *terminal, q->paths, "", Clocks::kCompared));
  const auto data = std::make_shared<const sql::RunData>(std::make_shared<const Run>(*trace), nullptr, q->paths);
  TRY(session, sql::Session::open(data));
  if (q->query.empty()) return run_sql_prompt(**session, *terminal, q->limits, q->wide ? 0 : kWidest);

  const sql::Write write = [&](std::string_view bytes) { out->write(bytes); };
  // A table of text is held whole.
  sql::AnswerTable answer(q->format == "text" ? q->limits.max_memory : machine_memory_bytes() / 2);
  sql::CsvSink csv(write);
  sql::JsonSink json(write);
  sql::RowSink& sink = q->format == "csv"    ? static_cast<sql::RowSink&>(csv)
                       : q->format == "json" ? static_cast<sql::RowSink&>(json)
                                             : static_cast<sql::RowSink&>(answer);
  Result<sql::Outcome> outcome = (*session)->ask(q->query, q->limits, sink);
  if (!outcome) {
    Error error = outcome.error();
    if (q->query_is_word && error.code == ErrorCode::kUsage && q->query.find_first_of(" \n\t") == std::string::npos)
      error.hint = "there is no file \"" + q->query + "\", so it was read as the query";
    return error;
  }
  if (q->format == "csv") {
    csv.end();
  } else if (q->format == "json") {
    json.end(*outcome);
    out->write("\n");
  } else if (q->format == "arrow") {
    TRY_OK(write_arrow(answer, write));
  } else if (outcome->is_query) {
    out->write_painted(answer_text(answer, q->wide ? 0 : kWidest, terminal->colour_out));
  }
  TRY_OK(out->commit());
  if (answer.is_full())
    return fail(
        {ErrorCode::kLimit, "the answer does not fit into memory", {}, "narrow the query, or use --format csv"});
  if (outcome->truncated) note(*terminal, terminal->say("sql.cut", Args().count("rows", outcome->rows)));
  print_notes(*terminal, trace->diagnostics, words("notes.input", Args().set("path", shell_word(q->paths[0]))),
              {"stageline info", "stageline info"});
  return kExitGood;
}

}  // namespace stageline
