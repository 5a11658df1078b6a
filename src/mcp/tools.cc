#include "mcp/tools.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/json_tree.h"
#include "base/number_list.h"
#include "base/text.h"
#include "diagnosis/explain_json.h"
#include "engine/engine.h"
#include "mcp/tool_table.h"
#include "mcp/words.h"
#include "sql/answer.h"
#include "sql/session.h"

namespace stageline::mcp {
namespace {

// A closed list: what a run cannot be asked, and why.
const char* reason_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kLimit: return "limit";
    case ErrorCode::kUnavailable: return "not_in_this_run";
    case ErrorCode::kBadInput: return "not_recorded";
    default: return nullptr;
  }
}

void append_cell(JsonWriter& json, const sql::SqlValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value))
    json.value(clean_text(*text));
  else if (const auto* whole = std::get_if<int64_t>(&value))
    json.value(*whole);
  else if (const auto* real = std::get_if<double>(&value))
    json.value(*real);
  else
    json.null();
}

// Rows as JSON, until an answer is full.
struct CappedRows : sql::RowSink {
  explicit CappedRows(int64_t most) : most_chars(most) {}
  int64_t most_chars;
  JsonWriter columns, rows;
  bool full = false;
  void begin(const std::vector<sql::ResultColumn>& all) override {
    columns.begin_array();
    for (const sql::ResultColumn& c : all)
      columns.begin_object().field("name", clean_text(c.name)).field("unit", c.unit).end_object();
    columns.end_array();
    rows.begin_array();
  }
  bool row(const std::vector<sql::SqlValue>& values) override {
    JsonWriter one;
    one.begin_array();
    for (const sql::SqlValue& value : values) append_cell(one, value);
    one.end_array();
    full = static_cast<int64_t>(rows.text().size() + one.text().size()) > most_chars;
    if (!full) rows.raw(one.text());
    return !full;
  }
};

}  // namespace

void Tools::append_list(JsonWriter& json) {
  json.key("tools").begin_array();
  for (const Tool& tool : tool_table()) {
    json.begin_object().field("name", tool.name).field("description", tool.description).key("inputSchema");
    append_schema(json, tool);
    json.key("annotations")
        .begin_object()
        .field("readOnlyHint", true)
        .field("idempotentHint", true)
        .field("openWorldHint", false)
        .end_object();
    json.end_object();
  }
  json.end_array();
}

bool Tools::has(std::string_view name) { return find_tool(name) != nullptr; }

Tools::Answer Tools::call(std::string_view name, const Value& arguments) {
  using Call = Result<std::string> (Tools::*)(const Value&);
  static constexpr std::pair<std::string_view, Call> kCalls[] = {
      {"open", &Tools::open},     {"close", &Tools::close},     {"analyses", &Tools::analyses},
      {"schema", &Tools::schema}, {"explain", &Tools::explain}, {"ask", &Tools::ask},
      {"sql", &Tools::sql},       {"verify", &Tools::verify}};
  const Status checked = check_arguments(*find_tool(name), arguments);
  const auto* const call =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const auto& one) { return one.first == name; });
  Result<std::string> made = checked ? (this->*call->second)(arguments) : Result<std::string>(checked.error());
  if (made) return {std::move(*made), false};
  const Error& error = made.error();
  JsonWriter json;
  json.begin_object();
  // What a run cannot say is an answer of its own, not a mistake of who asks.
  const char* const reason = name == "open" ? nullptr : reason_of(error);
  if (reason)
    json.field("cannot_answer", true)
        .field("reason", reason)
        .field("why", clean_text(error.what, 2000))
        .field("what_would_help", clean_text(error.hint, 500));
  else
    json.field("error", clean_text(error.what, 2000)).field("hint", clean_text(error.hint, 500));
  json.end_object();
  return {json.take(), reason == nullptr};
}

Result<std::string> Tools::confined(std::string_view path) const {
  const std::string asked(path);
  const auto refused = [&](const char* why) {
    return wrong("\"" + clean_text(asked) + "\" " + why,
                 "folders that may be read are named when the server is started: --root");
  };
  char* const real = realpath(asked.c_str(), nullptr);
  const std::string found = real ? real : "";
  free(real);
  const auto below = [&](const std::string& place) {
    return std::any_of(limits_.roots.begin(), limits_.roots.end(), [&](const std::string& root) {
      return place == root || root == "/" ||
             (place.size() > root.size() && place.starts_with(root) && place[root.size()] == '/');
    });
  };
  // What lies elsewhere is not even said to be there or not.
  if (found.empty() || !below(found)) return refused("is not below a folder that may be read");
  struct stat about = {};
  if (stat(found.c_str(), &about) != 0 || (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)))
    return refused("is neither a file nor a folder");
  if (S_ISDIR(about.st_mode)) {
    std::error_code error;
    size_t entries = 0;
    for (auto at = std::filesystem::recursive_directory_iterator(
             found, std::filesystem::directory_options::skip_permission_denied, error);
         !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
      if (++entries > 1'000'000) return refused("holds more than a million files");
      if (!at->is_symlink(error)) continue;
      char* const target = realpath(at->path().c_str(), nullptr);
      const bool inside = target && below(target);
      free(target);
      if (!inside) return refused("holds a link that leads out of the folders that may be read");
    }
  }
  return found;
}

Result<Tools::Opened*> Tools::opened(const Value& arguments) {
  const std::string id(arguments["trace"].text());
  for (auto at = runs_.begin(); at != runs_.end(); ++at)
    if (at->id == id) {
      runs_.splice(runs_.begin(), runs_, at);
      return &runs_.front();
    }
  std::string list;
  for (const Opened& run : runs_) list += (list.empty() ? "" : ", ") + run.id;
  return wrong("no run \"" + clean_text(id, 20) + "\" is open", list.empty() ? "call open first" : "there are " + list);
}

std::string Tools::handle_of(const Opened& run, std::string_view tool, const Value& arguments) {
  std::string identity;
  for (const Part& part : run.trace.parts)
    for (const SourceRef& file : part.files)
      identity += file.path + " " + std::to_string(file.size_bytes) + " " + std::to_string(file.modified_ns) + "\n";
  for (const std::string& path : run.paths) identity += path + "\n";
  const std::string asked = canonical_json(arguments);
  const std::string handle = "h:" + run.id + ":" + digest(identity + std::string(tool) + asked);
  constexpr size_t kMostHandles = 100'000;
  if (handles_.size() < kMostHandles || handles_.count(handle) > 0) handles_[handle] = {std::string(tool), asked};
  return handle;
}

Result<std::string> Tools::open(const Value& arguments) {
  OpenOptions options;
  options.align.mode = AlignMode::kAuto;
  std::vector<std::string> paths;
  for (size_t i = 0; i < arguments["paths"].size(); ++i) {
    Result<std::string> path = confined(arguments["paths"].item(i).text());
    if (!path) return std::move(path).error();
    paths.push_back(std::move(*path));
  }
  if (const Value ranks = arguments["ranks"]; !ranks.is_none()) {
    Result<std::vector<int32_t>> list = parse_number_list(ranks.text());
    if (!list) return std::move(list).error();
    options.ranks = *list;
  }
  if (const Value steps = arguments["steps"]; !steps.is_none())
    if (Status s = parse_step_range(steps.text(), options.first_step, options.last_step); !s)
      return std::move(s).error();
  if (const Value range = arguments["range"]; !range.is_none()) {
    Result<TimeRange> time = parse_time_range(range.text());
    if (!time) return std::move(time).error();
    options.range = *time;
  }
  if (const Value align = arguments["align"]; !align.is_none()) {
    Result<AlignMode> mode = parse_align_mode(align.text());
    if (!mode) return std::move(mode).error();
    options.align.mode = *mode;
  }
  Result<Trace> trace = open_trace(paths, options);
  if (!trace) return std::move(trace).error();
  std::string closed;
  if (runs_.size() >= kMostTraces) {
    closed = runs_.back().id;
    runs_.pop_back();
  }
  Opened& run = runs_.emplace_front();
  run.id = "t" + std::to_string(next_id_++);
  run.trace = std::move(*trace);
  run.run = std::make_shared<const Run>(run.trace);
  run.data = std::make_shared<const sql::RunData>(run.run, nullptr, paths);
  run.paths = std::move(paths);
  JsonWriter json;
  json.begin_object()
      .field("trace", run.id)
      .field("format", run.trace.format)
      .field("description", clean_text(run.trace.description));
  json.field("ranks", static_cast<int64_t>(run.trace.parts.size()))
      .field("slices", static_cast<int64_t>(run.trace.slice_count()));
  json.field("cells", static_cast<int64_t>(run.trace.cells.size()))
      .field("clock", clock_name(run.trace.clock))
      .field("epoch_ns", std::to_string(run.data->epoch_ns()));
  if (!closed.empty()) json.field("closed", closed);
  std::vector<const Diagnostic*> flaws;
  for (const Diagnostic& d : run.trace.diagnostics.items()) flaws.push_back(&d);
  std::stable_sort(flaws.begin(), flaws.end(),
                   [](const Diagnostic* a, const Diagnostic* b) { return a->severity > b->severity; });
  json.key("diagnostics").begin_array();
  for (size_t i = 0; i < flaws.size() && i < 20; ++i)
    json.begin_object()
        .field("name", flaws[i]->name)
        .field("severity", severity_name(flaws[i]->severity))
        .field("count", flaws[i]->count)
        .field("message", clean_text(flaws[i]->message))
        .end_object();
  json.end_array().field("diagnostics_count", static_cast<int64_t>(flaws.size())).end_object();
  return json.take();
}

Result<std::string> Tools::close(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  const std::string id = (*run)->id;
  std::erase_if(handles_, [&](const auto& one) { return one.first.starts_with("h:" + id + ":"); });
  runs_.pop_front();
  return "{\"closed\":\"" + id + "\"}";
}

Result<std::string> Tools::analyses(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  std::vector<std::pair<int, const Analysis*>> ranked;
  for (const Analysis* analysis : stageline::analyses()) {
    if (analysis->needs == AnalysisNeeds::kTwoRuns || analysis->needs == AnalysisNeeds::kFiles ||
        !suits(*analysis, (*run)->trace))
      continue;
    int hits = 0;
    const std::string text = std::string(analysis->name) + " " + analysis->summary;
    for (const std::string_view word : split(arguments["about"].text(), ' '))
      if (word.size() > 2)
        hits += (text.find(word) != std::string::npos ? 1 : 0) +
                (std::string_view(analysis->name).find(word) != std::string_view::npos ? 3 : 0);
    ranked.emplace_back(-hits, analysis);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  JsonWriter json;
  json.begin_object().key("analyses").begin_array();
  for (const auto& [hits, analysis] : ranked) {
    if (static_cast<int64_t>(json.text().size()) > limits_.most_chars) break;
    json.begin_object().field("name", analysis->name).field("summary", analysis->summary).key("tables").begin_array();
    for (const AnalysisTable& table : analysis->tables) json.value(table.name);
    json.end_array().key("options").begin_array();
    for (const AnalysisOption& option : analysis->options) json.value(option.name);
    json.end_array().end_object();
  }
  json.end_array().field("count", static_cast<int64_t>(ranked.size())).end_object();
  return json.take();
}

// Rows of a query with their handle.
Result<std::string> Tools::query(const Opened& run, std::string_view text, int64_t rows,
                                 const std::string& handle) const {
  Result<std::unique_ptr<sql::Session>> session = sql::Session::open(run.data);
  if (!session) return std::move(session).error();
  sql::Limits limits;
  limits.most_rows = std::min(rows, limits_.most_rows);
  limits.timeout = limits_.timeout;
  limits.most_memory = int64_t{256} << 20;
  CappedRows sink(limits_.most_chars);
  const Result<sql::Outcome> outcome = (*session)->ask(text, limits, sink);
  if (!outcome) return outcome.error();
  JsonWriter json;
  json.begin_object().key("columns").raw(sink.columns.text()).key("rows").raw(sink.rows.end_array().text());
  json.field("truncated", outcome->truncated || sink.full);
  if (outcome->truncated || sink.full)
    json.field("more", "narrow the query or add up in it; LIMIT and OFFSET give the rest");
  json.field("handle", handle).end_object();
  return json.take();
}

Result<std::string> Tools::schema(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  std::string quoted;
  for (const char c : arguments["table"].text()) quoted += c == '\'' ? "''" : std::string(1, c);
  return query(**run,
               quoted.empty() ? "SELECT name, kind, help FROM tables WHERE missing = '' ORDER BY kind DESC, name"
                              : "SELECT name, type, unit, is_option, help FROM columns('" + quoted + "')",
               limits_.most_rows, handle_of(**run, "schema", arguments));
}

Result<std::string> Tools::sql(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  return query(**run, arguments["query"].text(), arguments["rows"].integer().value_or(50),
               handle_of(**run, "sql", arguments));
}

Result<std::string> Tools::explain(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  const bool zh = arguments["lang"].text() == "zh";
  Diagnostics notes;
  const Explanation e = explain_run((*run)->run, notes);
  const auto pick = [&](const std::string& en, const std::string& chinese) {
    return clean_text(zh ? chinese : en, 2000);
  };
  const auto whole = [](double ns) { return static_cast<int64_t>(std::llround(ns)); };
  JsonWriter json;
  json.begin_object()
      .field("headline", pick(e.headline.title_en, e.headline.title_zh))
      .field("run", pick(e.run_en, e.run_zh));
  json.field("step_ns", whole(e.step_ns > 0 ? e.step_ns : e.headline.step_ns))
      .field("lost_ns", whole(e.lost_ns))
      .key("parts")
      .begin_array();
  for (const SpanPart& part : e.parts.empty() ? e.headline.parts : e.parts)
    json.begin_object()
        .field("id", part.id)
        .field("label", pick(part.label_en, part.label_zh))
        .field("share", part.share)
        .end_object();
  json.end_array().key("findings").begin_array();
  for (const Finding& f : e.findings) {
    json.begin_object()
        .field("id", f.id)
        .field("title", pick(f.title_en, f.title_zh))
        .field("detail", pick(f.detail_en, f.detail_zh));
    json.field("value", clean_text(f.value))
        .field("lost_ns", whole(f.lost_ns_per_step))
        .field("uncertainty_ns", whole(f.uncertainty_ns));
    json.field("saving_ns", whole(f.price.saving_ns)).field("fix", pick(f.price.fix_en, f.price.fix_zh));
    json.field("assumption", pick(f.price.assumption_en, f.price.assumption_zh))
        .field("command", clean_text(finding_command(f, (*run)->paths), 1000));
    if (f.evidence.analysis.empty()) {
      json.key("evidence").null();
    } else {
      json.key("evidence")
          .begin_object()
          .field("analysis", f.evidence.analysis)
          .field("table", f.evidence.table)
          .end_object();
    }
    json.end_object();
  }
  const ClosingWords closing = closing_words(e);
  json.end_array().field("closing", pick(closing.en, closing.zh)).field("why_not", clean_text(e.why_not, 1000));
  json.field("handle", handle_of(**run, "explain", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::ask(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  const std::string name(arguments["analysis"].text());
  const Analysis* analysis = find_analysis(name);
  std::vector<std::string> names;
  for (const Analysis* known : stageline::analyses()) names.emplace_back(known->name);
  if (!analysis) {
    const std::string near = nearest(name, names);
    return wrong("there is no analysis \"" + clean_text(name, 100) + "\"",
                 near.empty() ? "call analyses" : "did you mean " + near + "?");
  }
  if (analysis->needs == AnalysisNeeds::kTwoRuns || analysis->needs == AnalysisNeeds::kFiles ||
      !suits(*analysis, (*run)->trace))
    return Error{ErrorCode::kBadInput,
                 name + " " + needs_text(analysis->needs),
                 {},
                 "call analyses for what this run can be asked"};
  AnalysisInput input;
  input.trace = &(*run)->trace;
  input.facts = (*run)->run;
  const Value options = arguments["options"];
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string option = dashed(options.key(i).text());
    const bool known = std::any_of(analysis->options.begin(), analysis->options.end(),
                                   [&](const AnalysisOption& o) { return option == o.name; });
    if (!known)
      return wrong(name + " has no option \"" + clean_text(option, 60) + "\"", "call analyses for its options");
    const Value value = options.item(i);
    input.options.set(option, value.tag() == ValueTag::kText ? std::string(value.text()) : canonical_json(value));
  }
  Result<AnalysisResult> result = analysis->run(input);
  if (!result) return std::move(result).error();
  const std::string wanted(arguments["table"].text());
  const Table* table = nullptr;
  std::string list;
  for (const Table& one : result->tables) {
    if (!table && (wanted.empty() || one.name() == wanted)) table = &one;
    list += (list.empty() ? "" : ", ") + one.name();
  }
  if (!table) return wrong(name + " has no table \"" + clean_text(wanted, 60) + "\" of this run", "it has " + list);
  CappedRows sink(limits_.most_chars);
  JsonWriter columns;
  columns.begin_array();
  for (const ColumnSpec& c : table->columns())
    columns.begin_object().field("name", c.name).field("unit", raw_unit(c.type)).field("help", c.help).end_object();
  columns.end_array();
  sink.begin({});
  const auto most = static_cast<size_t>(std::min<int64_t>(limits_.most_rows, arguments["rows"].integer().value_or(50)));
  size_t row = 0;
  for (; row < table->row_count() && row < most; ++row) {
    std::vector<sql::SqlValue> values;
    for (size_t c = 0; c < table->columns().size(); ++c) {
      if (table->is_null(row, c))
        values.emplace_back();
      else if (table->column(c).index() == 0)
        values.emplace_back(table->integer(row, c));
      else if (table->column(c).index() == 1)
        values.emplace_back(table->real(row, c));
      else
        values.emplace_back(std::string_view(table->text(row, c)));
    }
    if (!sink.row(values)) break;
  }
  JsonWriter json;
  json.begin_object()
      .field("analysis", analysis->name)
      .field("table", table->name())
      .key("columns")
      .raw(columns.text());
  json.key("rows").raw(sink.rows.end_array().text()).field("row_count", static_cast<int64_t>(table->row_count()));
  json.field("truncated", row < table->row_count()).key("tables").begin_array();
  for (const Table& one : result->tables) json.value(one.name());
  json.end_array().key("notes").begin_array();
  for (const Diagnostic& d : result->notes.items()) json.value(clean_text(d.message, 500));
  json.end_array().field("handle", handle_of(**run, "ask", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::recompute(const std::string& handle) {
  const auto asked = handles_.find(handle);
  if (asked == handles_.end())
    return wrong("no answer has the handle \"" + clean_text(handle, 60) + "\"",
                 "handles are those of answers of this session");
  const Asked again = asked->second;
  const Result<JsonTree> tree = parse_json_tree(again.arguments, "handle");
  if (!tree) return tree.error();
  const Value arguments = tree->tree.root();
  return again.tool == "sql"       ? sql(arguments)
         : again.tool == "ask"     ? ask(arguments)
         : again.tool == "explain" ? explain(arguments)
                                   : schema(arguments);
}

namespace {

// The number of a value's tree that is nearest to `wanted`.
void look_for(const Value& value, double wanted, std::optional<double>& nearest_number, int depth) {
  if (depth > 20) return;
  if (value.tag() == ValueTag::kInteger || value.tag() == ValueTag::kUnsigned || value.tag() == ValueTag::kReal) {
    const double number = value.real().value_or(static_cast<double>(value.integer().value_or(0)));
    if (!nearest_number || std::abs(number - wanted) < std::abs(*nearest_number - wanted)) nearest_number = number;
  }
  if (value.is_list() || value.is_dict())
    for (size_t i = 0; i < value.size(); ++i) look_for(value.item(i), wanted, nearest_number, depth + 1);
}

double number_of(const Value& value, double otherwise) {
  if (value.is_none()) return otherwise;
  if (const auto real = value.real()) return *real;
  return static_cast<double>(value.integer().value_or(0));
}

}  // namespace

Result<std::string> Tools::verify(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  const std::string id = (*run)->id;
  JsonWriter json;
  json.begin_object().key("claims").begin_array();
  const Value claims = arguments["claims"];
  for (size_t i = 0; i < claims.size(); ++i) {
    const Value claim = claims.item(i), expect = claim["expect"];
    const ValueTag tag = expect["value"].tag();
    if (claim["text"].tag() != ValueTag::kText ||
        (tag != ValueTag::kInteger && tag != ValueTag::kReal && tag != ValueTag::kUnsigned))
      return wrong("verify: a claim has a text and expect.value, a number");
    const double wanted = number_of(expect["value"], 0), tolerance = std::max(0.0, number_of(expect["tolerance"], 0));
    const std::string text(claim["sql"].text()), handle(claim["handle"].text());
    std::optional<double> found;
    std::string why;
    if (text.empty() == handle.empty()) {
      why = "a claim rests on either sql or a handle";
    } else if (!handle.empty() && !handle.starts_with("h:" + id + ":")) {
      why = "the handle is not of this run";
    } else {
      const Result<std::string> made = text.empty() ? recompute(handle) : query(**run, text, 1, "");
      if (!made) {
        why = made.error().what;
      } else if (const Result<JsonTree> tree = parse_json_tree(*made, "answer")) {
        const Value answer = tree->tree.root();
        if (text.empty()) {
          look_for(answer, wanted, found, 0);
        } else {
          const Value row = answer["rows"].item(0);
          for (size_t c = 0; c < row.size() && !found; ++c)
            if (row.item(c).tag() == ValueTag::kInteger || row.item(c).tag() == ValueTag::kReal)
              found = number_of(row.item(c), 0);
        }
        if (!found) why = "the answer holds no number";
      }
    }
    json.begin_object().field("text", clean_text(claim["text"].text(), 500));
    json.field("verdict", !found ? "cannot_tell" : std::abs(*found - wanted) <= tolerance ? "holds" : "does_not");
    json.key("number");
    found ? json.value(*found) : json.null();
    json.field("from", text.empty() ? clean_text(handle, 60) : clean_text(text))
        .field("why", clean_text(why, 1000))
        .end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline::mcp
