// The tools that use SQL are schema, sql, slices and slice.
#include "base/sqlite_db.h"
#include "mcp/tools.h"

namespace stageline::mcp {
namespace {

// A condition on a name: "name = 'x'", or with a star in it a GLOB pattern of SQLite in which only the star is special.
std::string name_is(std::string_view name) {
  if (name.find('*') == std::string_view::npos) return "name = " + sql_text(name);
  std::string pattern;
  for (const char c : name) pattern += c == '[' || c == '?' ? std::string("[") + c + "]" : std::string(1, c);
  return "name GLOB " + sql_text(pattern);
}

// The words of a query outside quotes and comments, in lower case.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text[i] == '\'') {
      i = std::min(text.find('\'', i + 1), text.size());
    } else if (text.substr(i, 2) == "--") {
      i = std::min(text.find('\n', i), text.size());
    } else if (letter(text[i])) {
      std::string word;
      for (; i < text.size() && (letter(text[i]) || (text[i] >= '0' && text[i] <= '9')); ++i) word += to_lower(text[i]);
      --i;
      if (std::ranges::find(out, word) == out.end()) out.push_back(word);
    }
  }
  return out;
}

}  // namespace

Result<sql::Outcome> Tools::rows_of(const Opened& run, std::string_view text, int64_t rows, sql::RowSink& sink) const {
  TRY(session, run.sessions->lend());
  sql::Limits limits{
      .max_rows = rows, .timeout = limits_.timeout, .max_memory = int64_t{256} << 20, .progress = progress_};
  return (*session)->ask(text, limits, sink);
}

std::vector<std::pair<std::string, std::string>> Tools::empty_tables(const Opened& run, std::string_view text,
                                                                     const char** reason) const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& word : words_of(text)) {
    const Reason* const why = reason_empty(word, run.trace);
    if (!why) continue;
    CappedRows sink(limits_.max_chars);
    const std::string of = word == "gaps" ? "kernels" : word;  // gaps() needs a rank, so its source is asked instead
    const Result<sql::Outcome> outcome = rows_of(run, "SELECT 1 FROM " + of + " LIMIT 1", 1, sink);
    if (!outcome || outcome->rows > 0) continue;
    *reason = why->name.c_str();
    out.emplace_back(word, why->meaning + " To have it: " + why->help + ".");
  }
  return out;
}

// The rows of a query, with a handle.
Result<std::string> Tools::query(const Opened& run, std::string_view text, int64_t rows,
                                 const std::string& handle) const {
  CappedRows sink(limits_.max_chars);
  TRY(outcome, rows_of(run, text, std::min(rows, limits_.max_rows), sink));
  const char* reason = nullptr;
  const auto empty = empty_tables(run, text, &reason);
  if (!sink.any_value && !empty.empty())
    return cannot_answer(reason, empty.front().first + " holds nothing in this run. " + empty.front().second,
                         stageline::mcp::reason(reason).help);
  JsonWriter json;
  json.begin_object().key("columns").raw(sink.columns.text()).key("rows").raw(sink.rows.end_array().text());
  json.field("truncated", outcome->truncated || sink.full);
  if (outcome->truncated || sink.full)
    json.field("more", "narrow the query or add up in it; LIMIT and OFFSET give the rest");
  if (!empty.empty()) {
    json.key("notes").begin_array();
    for (const auto& [table, why] : empty) json.value(table + " holds nothing in this run. " + why);
    json.end_array();
  }
  json.field("handle", handle).end_object();
  return json.take();
}

Result<std::string> Tools::schema(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string_view table = arguments["table"].text();
  return query(**run,
               table.empty() ? "SELECT name, kind, help FROM tables WHERE missing = '' ORDER BY kind DESC, name"
                             : "SELECT name, type, unit, is_option, help FROM columns(" + sql_text(table) + ")",
               limits_.max_rows, handle_of(**run, "schema", arguments));
}

Result<std::string> Tools::sql(const Value& arguments) {
  TRY(run, opened(arguments));
  return query(**run, arguments["query"].text(), arguments["rows"].integer().value_or(50),
               handle_of(**run, "sql", arguments));
}

Result<std::string> Tools::slices(const Value& arguments) {
  TRY(run, opened(arguments));
  if ((*run)->trace.slice_count() == 0) {
    const Reason& why = reason("no_profiler_slices");
    return cannot_answer(why.name, why.meaning, why.help);
  }
  std::string where;
  const auto also = [&](const std::string& condition) { where += (where.empty() ? " WHERE " : " AND ") + condition; };
  if (!arguments["name"].is_none()) also(name_is(arguments["name"].text()));
  if (!arguments["class"].is_none()) also("class = " + sql_text(arguments["class"].text()));
  for (const auto& [argument, condition] :
       {std::pair("rank", "rank = "), std::pair("step", "step = "), std::pair("from_ns", "end_ns > "),
        std::pair("to_ns", "start_ns < "), std::pair("min_ns", "dur_ns >= ")})
    if (!arguments[argument].is_none()) also(condition + std::to_string(arguments[argument].integer().value_or(0)));
  if (!arguments["under"].is_none())
    also("id IN (SELECT b.id FROM slices p, below(p.id) b WHERE p." + name_is(arguments["under"].text()) +
         " AND b.distance > 0)");
  CappedRows sums(limits_.max_chars);
  TRY(added, rows_of(**run, "SELECT count(*), coalesce(sum(dur_ns), 0) FROM slices" + where, 1, sums));
  const std::string text =
      "SELECT id, rank, step, name, start_ns, dur_ns, lane, stream, class, category, parent_id, launch_id FROM slices" +
      where + (arguments["order"].text() == "start" ? " ORDER BY start_ns, id" : " ORDER BY dur_ns DESC, id");
  CappedRows sink(limits_.max_chars);
  TRY(outcome, rows_of(**run, text, std::min(arguments["rows"].integer().value_or(50), limits_.max_rows), sink));
  const std::string& both = sums.rows.text();  // [[count,sum]
  const size_t comma = both.find(',');
  JsonWriter json;
  json.begin_object().key("count").raw(both.substr(2, comma - 2));
  json.key("total_ns").raw(both.substr(comma + 1, both.size() - comma - 2));
  json.key("columns").raw(sink.columns.text()).key("rows").raw(sink.rows.end_array().text());
  const bool cut = outcome->truncated || sink.full;
  json.field("truncated", cut);
  if (cut) json.field("more", "count and total_ns are of all; query with LIMIT and OFFSET gives the rest");
  json.field("query", text).field("handle", handle_of(**run, "slices", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::slice(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string id = std::to_string(arguments["id"].integer().value_or(0));
  const int64_t max = limits_.max_chars / 5;
  const auto asked = [&](const std::string& text, ObjectRows& into) {
    const Result<sql::Outcome> outcome = rows_of(**run, text, INT64_MAX, into);
    return outcome ? Status() : Status(outcome.error());
  };
  ObjectRows own(1, max);
  TRY_OK(asked("SELECT * FROM slices WHERE id = " + id, own));
  if (own.count == 0) return wrong("there is no slice " + id, "slices and sql give ids; they hold in one opened run");
  ObjectRows device(1, max), path(50, max), children(20, max), kernels(20, max), arguments_rows(100, max);
  std::vector<std::string> notes;
  TRY_OK(asked("SELECT * FROM kernels WHERE id = " + id, device));
  if (Status s = asked("SELECT key, value, type FROM args WHERE slice_id = " + id, arguments_rows); !s)
    notes.push_back(s.error().what);  // the source file may be gone; the columns are there all the same
  TRY_OK(asked("SELECT id, name, start_ns, dur_ns FROM path(" + id + ") ORDER BY distance", path));
  TRY_OK(asked("SELECT id, name, start_ns, dur_ns FROM slices WHERE parent_id = " + id + " ORDER BY dur_ns DESC",
               children));
  const std::string below = " FROM kernels WHERE id IN (SELECT id FROM below(" + id + ") WHERE distance > 0)";
  TRY_OK(asked("SELECT id, name, class, start_ns, dur_ns" + below + " ORDER BY dur_ns DESC", kernels));
  CappedRows sums(max);
  if (const auto s = rows_of(**run, "SELECT sum(dur_ns)" + below, 1, sums); !s) return s.error();
  const auto cut = [&](const char* what, const ObjectRows& rows) {
    if (rows.count > rows.max)
      notes.push_back(std::string(what) + ": the first " + std::to_string(rows.max) + " of " +
                      std::to_string(rows.count));
  };
  cut("children", children);
  cut("kernels", kernels);
  cut("path", path);
  JsonWriter json;
  json.begin_object().key("slice").raw(own.rows.text().substr(1));  // without the "[" before it
  if (device.count > 0) json.key("device_work").raw(device.rows.text().substr(1));
  json.key("arguments").raw(arguments_rows.rows.end_array().text());
  json.key("path").raw(path.rows.end_array().text()).key("children").raw(children.rows.end_array().text());
  json.key("kernels").raw(kernels.rows.end_array().text()).field("kernel_count", kernels.count);
  json.key("kernel_total_ns").raw(sums.rows.text().substr(2, sums.rows.text().size() - 3));
  json.list("notes", notes, [&](const std::string& note) { return clean_text(note, 500); });
  json.field("handle", handle_of(**run, "slice", arguments)).end_object();
  return json.take();
}

}  // namespace stageline::mcp
