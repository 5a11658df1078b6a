#include "run_type.h"

#include <algorithm>
#include <optional>

#include "base/parallel.h"
#include "base/remote_file.h"
#include "cli/info_text.h"
#include "cli/model_flags.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "cli/questions.h"
#include "diagnosis/compare_runs.h"
#include "diagnosis/diff/diff_report.h"
#include "diagnosis/explain_json.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "engine/diff_json.h"
#include "engine/engine.h"
#include "engine/figures/figures.h"
#include "engine/model_tables.h"
#include "frame_type.h"
#include "long_call.h"
#include "profile/event_text.h"
#include "server/page/page_file.h"
#include "sql/session.h"

namespace stageline::python {
namespace {

PyObject* g_run_type = nullptr;

struct RunObject {
  PyObject_HEAD std::shared_ptr<const OpenRun>* run;  // empty after close()
};

bool g_interpreter_ends = false;

void run_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (!g_interpreter_ends) delete reinterpret_cast<RunObject*>(self)->run;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// The run, or empty with an exception set.
std::shared_ptr<const OpenRun> run_of(PyObject* self) {
  if (!PyObject_TypeCheck(self, reinterpret_cast<PyTypeObject*>(g_run_type))) {
    PyErr_SetString(PyExc_TypeError, "this is no opened run");
    return nullptr;
  }
  const auto& run = *reinterpret_cast<RunObject*>(self)->run;
  if (!run) raise({ErrorCode::kUsage, "the trace is closed", {}, "open it again"});
  return run;
}

PyObject* run_object(std::shared_ptr<const OpenRun> run) {
  auto* const allocate =
      reinterpret_cast<allocfunc>(PyType_GetSlot(reinterpret_cast<PyTypeObject*>(g_run_type), Py_tp_alloc));
  PyObject* const self = allocate(reinterpret_cast<PyTypeObject*>(g_run_type), 0);
  if (self) reinterpret_cast<RunObject*>(self)->run = new std::shared_ptr<const OpenRun>(std::move(run));
  return self;
}

// Returns the result of a worker as a Python value, or raises its error.
template <class T> std::optional<T> taken(std::optional<Result<T>> result) {
  if (!result) return std::nullopt;
  if (!*result) {
    raise(result->error());
    return std::nullopt;
  }
  return std::move(**result);
}

// Parses flags as a command of the program does. The input came from Python, so `operands` replace it.
Result<Arguments> arguments_of(const char* command, std::vector<std::string> words,
                               const std::vector<std::string>& operands = {}) {
  const Command* const known = find_command(command);
  words.emplace_back("--");
  for (int i = 0; i < known->operands.min; ++i) words.emplace_back("-");  // counted, then replaced
  Result<Arguments> arguments = parse_arguments(*known, words);
  if (arguments) arguments->operands = operands;
  return arguments;
}

PyObject* notes_list(const Diagnostics& notes) {
  Ref list(PyList_New(0));
  for (const Diagnostic& d : notes.items()) {
    const Ref name(text(d.name)), severity(text(severity_name(d.severity))), message(in_python(d.message.en)),
        where(text(d.first.text()));
    const Ref item(list && name && severity && message && where
                       ? Py_BuildValue("(OOOLO)", name.get(), severity.get(), message.get(),
                                       static_cast<long long>(d.count), where.get())
                       : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

// ---- opening
// ---------------------------------------------------------------------------------------------------------

// Opens the run as a question needs it: with clocks compared, which suits all outputs except those of --compat.
Result<std::shared_ptr<OpenRun>> open_now(std::vector<std::string> paths, const std::vector<std::string>& words,
                                          Clocks clocks, const std::shared_ptr<Progress>& progress,
                                          std::string_view compat = {}) {
  Result<Arguments> arguments = arguments_of("analyze", words);
  if (!arguments) return std::move(arguments).error();
  Result<OpenOptions> options = open_options(*arguments, compat, clocks);
  if (!options) return std::move(options).error();
  options->progress = progress.get();
  for (std::string& path : paths) path = shown_address(path);  // no table and no page repeats a password
  Result<Trace> trace = open_trace(paths, *options);
  if (!trace) return std::move(trace).error();
  auto run = std::make_shared<OpenRun>(
      OpenRun{std::move(*trace), nullptr, paths, words, nullptr, std::make_shared<TorchRowStore>()});
  run->run = std::make_shared<const Run>(run->trace);
  run->sql = std::make_shared<sql::SessionPool>(std::make_shared<const sql::RunData>(run->run, nullptr, run->paths));
  return run;
}

PyObject* open(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"paths", "words", "progress", "raw", nullptr};
  PyObject *path_list = nullptr, *word_list = nullptr, *report = nullptr;
  int raw = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|Op", const_cast<char**>(names), &path_list, &word_list,
                                   &report, &raw))
    return nullptr;
  std::vector<std::string> paths, words;
  if (!take_texts(path_list, paths) || !take_texts(word_list, words)) return nullptr;
  if (report == Py_None) report = nullptr;
  const auto progress = std::make_shared<Progress>();
  auto run = taken(long_call<Result<std::shared_ptr<OpenRun>>>(
      [=] { return open_now(paths, words, raw ? Clocks::kRaw : Clocks::kCompared, progress); }, progress, report));
  return run ? run_object(std::move(*run)) : nullptr;
}

// ---- asking
// ----------------------------------------------------------------------------------------------------------

struct Answered {
  std::vector<Table> tables;
  Diagnostics notes;
  std::string foreign;
};

// Returns (frames, notes, foreign text).
PyObject* answer(std::optional<Answered> a) {
  if (!a) return nullptr;
  const Ref frames(frame_list(std::move(a->tables)));
  const Ref notes(frames ? notes_list(a->notes) : nullptr);
  const Ref foreign(notes ? text(a->foreign) : nullptr);
  return foreign ? PyTuple_Pack(3, frames.get(), notes.get(), foreign.get()) : nullptr;
}

// On a command line the flags of opening and of asking stand together. Here the run is open: what would choose of it
// comes too late, and is refused rather than passed over.
Status check_asked(const Arguments& arguments, const Analysis& analysis) {
  static constexpr std::string_view asking[] = {"table",   "format", "overlay", "compat", "include-last-profiler-step",
                                                "threads", "lang"};
  for (const std::string& name : arguments.given()) {
    const bool of_analysis = std::any_of(analysis.options().begin(), analysis.options().end(),
                                         [&](const AnalysisOption& option) { return name == option.name; });
    if (!of_analysis && std::find(std::begin(asking), std::end(asking), name) == std::end(asking))
      return Error{ErrorCode::kUsage,
                   name + " is chosen when a trace is opened, not when it is asked",
                   {},
                   "stageline.open(paths, " + name + "=…)"};
  }
  return {};
}

Result<Answered> analyze_now(const std::shared_ptr<const OpenRun>& run, const std::shared_ptr<const OpenRun>& test,
                             const std::vector<std::string>& files, const std::string& name,
                             const std::vector<std::string>& words) {
  Result<std::vector<const Analysis*>> chosen = chosen_analyses(name);
  if (!chosen) return std::move(chosen).error();
  if (chosen->size() != 1) return Error{ErrorCode::kUsage, "ask one analysis at a time", {}, ""};
  const Analysis& analysis = *(*chosen)[0];
  Result<Arguments> given = arguments_of("analyze", words);
  if (!given) return std::move(given).error();
  const Arguments arguments = with_ranks(*given, *chosen);
  const std::string only = arguments.get("table"), overlay = arguments.get("overlay");
  if (!only.empty())
    if (Status s = check_table(*chosen, only); !s) return std::move(s).error();
  if (Status s = check_format(*chosen, arguments.get("format", "text"), only); !s) return std::move(s).error();
  Result<AnalysisInput> input = analysis_input(arguments, *chosen);
  if (!input) return std::move(input).error();
  if (Status s = check_asked(arguments, analysis); !s) return std::move(s).error();
  if (analysis.needs == AnalysisNeeds::kTwoRuns) {
    if (!run || !test)
      return make_error(ErrorCode::kUsage, name + " compares two runs",
                        "control.analyze(\"" + analysis.name + "\", test=test)");
    input->control = &run->trace;
    input->test = &test->trace;
  } else if (analysis.needs == AnalysisNeeds::kFiles) {
    input->paths = files.empty() && run ? run->paths : files;
  } else {
    if (!run) return Error{ErrorCode::kUsage, name + " is asked of an opened trace", {}, ""};
    if (test) return Error{ErrorCode::kUsage, name + " takes one run, not two", {}, ""};
    input->trace = &run->trace;
    input->facts = run->run;
    input->rows = run->rows.get();
    if (!suits(analysis, run->trace))
      return Error{ErrorCode::kBadInput,
                   name + " " + needs_text(analysis.needs),
                   {run->paths.empty() ? "" : run->paths[0]},
                   "it was read as " + run->trace.format + "; Trace.info says what it holds"};
  }
  if (!overlay.empty())
    if (Status s = check_writable(overlay, run ? run->paths : files); !s) return std::move(s).error();
  input->wants_overlay = !overlay.empty();
  Result<AnalysisResult> result = analysis.run(*input);
  if (!result) return std::move(result).error();
  if (!only.empty()) std::erase_if(result->tables, [&](const Table& table) { return table.name() != only; });
  if (!overlay.empty() && result->overlay)
    if (Status s = write_overlay(run->trace, *result->overlay, overlay); !s) return std::move(s).error();
  return Answered{std::move(result->tables), std::move(result->notes), std::move(result->foreign)};
}

// An answer of --compat uses the recorded timestamps: a run with aligned clocks is read again without alignment.
bool needs_raw(const OpenRun& run, const std::vector<std::string>& words) {
  return run.trace.alignment != AlignState::kRaw &&
         std::any_of(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("--compat"); });
}

PyObject* analyze(PyObject*, PyObject* arguments) {
  PyObject *run_arg = nullptr, *test_arg = nullptr, *file_list = nullptr, *word_list = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "OOOsO", &run_arg, &test_arg, &file_list, &name, &word_list)) return nullptr;
  std::vector<std::string> files, words;
  std::shared_ptr<const OpenRun> run, test;
  if (!take_texts(file_list, files) || !take_texts(word_list, words)) return nullptr;
  if (run_arg != Py_None && !(run = run_of(run_arg))) return nullptr;
  if (test_arg != Py_None && !(test = run_of(test_arg))) return nullptr;
  return answer(taken(long_call<Result<Answered>>([=, name = std::string(name)]() -> Result<Answered> {
    if (!run || !needs_raw(*run, words)) return analyze_now(run, test, files, name, words);
    Result<std::shared_ptr<OpenRun>> raw = open_now(run->paths, run->words, Clocks::kRaw, nullptr);
    if (!raw) return std::move(raw).error();
    return analyze_now(*raw, test, files, name, words);
  })));
}

// Returns (JSON, text for people).
PyObject* info(PyObject* self, PyObject*) {
  const auto run = run_of(self);
  if (!run) return nullptr;
  using Both = std::pair<std::string, std::string>;
  const auto reported = long_call<Both>([run] { return Both{info_json(run->trace), info_text(run->trace)}; });
  if (!reported) return nullptr;
  const Ref json(text(reported->first)), words(json ? text(reported->second) : nullptr);
  return words ? PyTuple_Pack(2, json.get(), words.get()) : nullptr;
}

// JSON list of the figures of these names; all of them without names.
PyObject* figures(PyObject* self, PyObject* arguments) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "|z", &name)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  std::vector<std::string> names;
  if (name) names.emplace_back(name);
  const auto json = taken(long_call<Result<std::string>>([run, names]() -> Result<std::string> {
    const auto found = figures_of(run->run, names);
    if (!found) return found.error();
    return figures_json(*found);
  }));
  return json ? text(*json) : nullptr;
}

// Returns (JSON, text for people in English, in Chinese).
PyObject* findings(PyObject* self, PyObject*) {
  const auto run = run_of(self);
  if (!run) return nullptr;
  struct Reported {
    std::string json, en, zh;
  };
  const auto reported = long_call<Reported>([run] {
    Reported t;
    const Explanation& explanation = explained_run(*run->run);
    t.json = explain_json(explanation, run->paths);
    Terminal terminal;
    t.en = explain_text(terminal, explanation, run->paths);
    terminal.lang = "zh";
    t.zh = explain_text(terminal, explanation, run->paths);
    return t;
  });
  if (!reported) return nullptr;
  const Ref json(text(reported->json)), en(text(reported->en)), zh(text(reported->zh));
  return json && en && zh ? PyTuple_Pack(3, json.get(), en.get(), zh.get()) : nullptr;
}

PyObject* diagnostics(PyObject* self, PyObject*) {
  const auto run = run_of(self);
  return run ? notes_list(run->trace.diagnostics) : nullptr;
}

PyObject* model_table(PyObject* self, PyObject* arguments) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  auto table = long_call<std::shared_ptr<const Table>>([run, name = std::string(name)] {
    Table made = name == "steps"      ? steps_table(*run->run)
                 : name == "messages" ? messages_table(*run->run)
                 : name == "devices"  ? devices_table(run->trace)
                                      : diagnostics_table(run->trace.diagnostics);
    return std::make_shared<const Table>(std::move(made));
  });
  return table ? frame_object(table_frame(*table)) : nullptr;
}

// ---- slices and cells
// --------------------------------------------------------------------------------------------------

// (kind, column, values, low, high, parts) as stageline.filters makes it; None is every slice.
bool take_condition(PyObject* given, SliceCondition& out, int depth) {
  using Kind = SliceCondition::Kind;
  if (given == Py_None) return true;
  const char *kind = nullptr, *column = nullptr;
  PyObject *values = nullptr, *parts = nullptr;
  long long low = 0, high = 0;
  if (!PyArg_ParseTuple(given, "ssOLLO", &kind, &column, &values, &low, &high, &parts)) return false;
  if (depth > 100) {
    raise({ErrorCode::kLimit, "a condition is nested more than 100 deep", {}, "join lists with isin()"});
    return false;
  }
  static constexpr std::pair<std::string_view, Kind> kinds[] = {
      {"all", Kind::kAll},     {"and", Kind::kAnd},         {"or", Kind::kOr},
      {"not", Kind::kNot},     {"numbers", Kind::kNumbers}, {"between", Kind::kBetween},
      {"texts", Kind::kTexts}, {"glob", Kind::kGlob},       {"contains", Kind::kContains},
      {"under", Kind::kUnder}, {"matches", Kind::kMatches}, {"before", Kind::kBefore},
      {"after", Kind::kAfter}};
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return k.first == kind; });
  if (found == std::end(kinds)) {
    raise({ErrorCode::kUsage, std::string("no condition \"") + kind + "\"", {}, "build conditions with stageline.f"});
    return false;
  }
  out.kind = found->second;
  out.column = column;
  out.low = low;
  out.high = high;
  if (out.column == "occurrence") out.occurrence = low;
  const Py_ssize_t count = PySequence_Size(values);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref value(PySequence_GetItem(values, i));
    if (!value) return false;
    if (out.kind == Kind::kNumbers) {
      const long long number = PyLong_AsLongLong(value.get());
      if (number == -1 && PyErr_Occurred()) return false;
      out.numbers.push_back(number);
    } else if (!take_text(value.get(), out.texts.emplace_back())) {
      return false;
    }
  }
  const Py_ssize_t inner = count < 0 ? -1 : PySequence_Size(parts);
  for (Py_ssize_t i = 0; i < inner; ++i) {
    const Ref part(PySequence_GetItem(parts, i));
    if (!part || !take_condition(part.get(), out.parts.emplace_back(), depth + 1)) return false;
  }
  return inner >= 0;
}

PyObject* slices(PyObject* self, PyObject* arguments) {
  PyObject *given = nullptr, *column_list = nullptr;
  long long batch_rows = 0;
  if (!PyArg_ParseTuple(arguments, "OOL", &given, &column_list, &batch_rows)) return nullptr;
  const auto run = run_of(self);
  SliceCondition where;
  std::vector<std::string> columns;
  if (!run || !take_condition(given, where, 0) || !take_texts(column_list, columns)) return nullptr;
  auto frame = taken(
      long_call<Result<std::shared_ptr<const Frame>>>([=] { return slice_frame(run, where, columns, batch_rows); }));
  return frame ? frame_object(std::move(*frame)) : nullptr;
}

PyObject* one_slice(PyObject* self, PyObject* arguments) {
  long long id = 0;
  PyObject* column_list = nullptr;
  std::vector<std::string> columns;
  if (!PyArg_ParseTuple(arguments, "LO", &id, &column_list) || !take_texts(column_list, columns)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  Result<std::shared_ptr<const Frame>> frame = one_slice_frame(run, static_cast<uint64_t>(id), columns);
  return frame ? frame_object(std::move(*frame)) : raise(frame.error());
}

// The event of a slice as its file has it: one JSON object, fetched now.
PyObject* source_text(PyObject* self, PyObject* arguments) {
  long long id = 0;
  if (!PyArg_ParseTuple(arguments, "L", &id)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  if (auto known = one_slice_frame(run, static_cast<uint64_t>(id), {"id"}); !known) return raise(known.error());
  const auto reported = taken(long_call<Result<std::string>>(
      [=] { return event_text(run->trace.parts[static_cast<uint64_t>(id) >> 32], static_cast<uint32_t>(id)); }));
  return reported ? text(*reported) : nullptr;
}

// (frame, whether the file has fractional times, whether all events have starts and whole durations, [key, JSON, …])
PyObject* events(PyObject* self, PyObject* arguments) {
  int rank = 0;
  PyObject* name_list = nullptr;
  std::vector<std::string> names;
  if (!PyArg_ParseTuple(arguments, "iO", &rank, &name_list) || !take_texts(name_list, names)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  auto rows = taken(long_call<Result<EventRows>>([=] { return event_rows(run, rank, names); }));
  if (!rows) return nullptr;
  const Part& part = *std::ranges::find(run->trace.parts, rank, &Part::rank);
  std::vector<std::string> fields;
  for (const MetaField& field : part.metadata) fields.insert(fields.end(), {field.key, field.json});
  const Ref frame(frame_object(std::move(rows->frame))), metadata(frame ? text_list(fields) : nullptr);
  const auto truth = [](bool value) { return value ? Py_True : Py_False; };
  return metadata ? PyTuple_Pack(5, frame.get(), truth(rows->fractional_times), truth(rows->all_starts),
                                 truth(rows->whole_durations), metadata.get())
                  : nullptr;
}

PyObject* cells(PyObject* self, PyObject* arguments) {
  PyObject* column_list = nullptr;
  if (!PyArg_ParseTuple(arguments, "O", &column_list)) return nullptr;
  const auto run = run_of(self);
  std::vector<std::string> columns;
  if (!run || !take_texts(column_list, columns)) return nullptr;
  Result<std::shared_ptr<const Frame>> frame = cell_frame(run, columns);
  return frame ? frame_object(std::move(*frame)) : raise(frame.error());
}

// ---- SQL
// ---------------------------------------------------------------------------------------------------------------------

// [(name or "", value)], value None, bool, int, float or str.
bool take_parameters(PyObject* given, std::vector<sql::Parameter>& out) {
  const Py_ssize_t count = PySequence_Size(given);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref pair(PySequence_GetItem(given, i));
    const Ref name(pair ? PySequence_GetItem(pair.get(), 0) : nullptr),
        value(name ? PySequence_GetItem(pair.get(), 1) : nullptr);
    sql::Parameter& parameter = out.emplace_back();
    if (!value || !take_text(name.get(), parameter.name)) return false;
    if (value.get() == Py_None) continue;
    if (PyFloat_Check(value.get())) {
      parameter.value = PyFloat_AsDouble(value.get());
    } else if (PyLong_Check(value.get())) {
      const long long number = PyLong_AsLongLong(value.get());
      if (number == -1 && PyErr_Occurred()) return false;
      parameter.value = int64_t{number};
    } else {
      std::string text;
      if (!take_text(value.get(), text)) return false;
      parameter.value = std::move(text);
    }
  }
  return count >= 0;
}

// (frame, whether there were more rows than max_rows)
PyObject* ask_sql(PyObject* self, PyObject* arguments) {
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  const char* query = nullptr;
  PyObject* given = nullptr;
  long long timeout_ms = 0, max_rows = 0;
  if (!PyArg_ParseTuple(arguments, "sOLL", &query, &given, &timeout_ms, &max_rows)) return nullptr;
  const auto run = run_of(self);
  std::vector<sql::Parameter> parameters;
  if (!run || !take_parameters(given, parameters)) return nullptr;
  struct Rows {
    std::shared_ptr<const sql::AnswerTable> answer;
    bool truncated = false;
  };
  const auto progress = std::make_shared<Progress>();
  const auto rows = taken(long_call<Result<Rows>>(
      [=, text = std::string(query)]() -> Result<Rows> {
        Result<sql::SessionPool::Lent> session = run->sql->lend();
        if (!session) return std::move(session).error();
        sql::Limits limits;
        limits.timeout = std::chrono::milliseconds(timeout_ms);
        if (max_rows > 0) limits.max_rows = max_rows;
        limits.progress = progress.get();
        auto answer = std::make_shared<sql::AnswerTable>(kMaxBytes);
        const Result<sql::Outcome> outcome = (*session)->ask(text, limits, *answer, parameters);
        if (!outcome) return outcome.error();
        if (answer->is_full())
          return Error{ErrorCode::kLimit,
                       "the answer takes more than 1 GiB",
                       {},
                       "add up in the query, or slices() for whole columns"};
        return Rows{answer, outcome->truncated};
      },
      progress));
  if (!rows) return nullptr;
  const Ref frame(frame_object(sql_frame(rows->answer)));
  return frame ? PyTuple_Pack(2, frame.get(), rows->truncated ? Py_True : Py_False) : nullptr;
}

// ---- what-if, outputs
// ----------------------------------------------------------------------------------------------------

std::string python_text(std::string_view words) {
  const Ref said(in_python(words));
  std::string out;
  return said && take_text(said.get(), out) ? out : (PyErr_Clear(), std::string(words));
}

// Returns a table of sentences in Python's terms.
Table sentences_in_python(const Table& table) {
  std::vector<ColumnSpec> columns = table.columns();
  for (ColumnSpec& column : columns) column.help = python_text(column.help);
  Table out(table.name(), table.title(), std::move(columns));
  for (size_t r = 0; r < table.row_count(); ++r) {
    std::vector<Table::Value> row;
    for (size_t c = 0; c < table.columns().size(); ++c)
      if (const auto* texts = std::get_if<std::vector<std::string>>(&table.column(c)))
        row.emplace_back(Text{python_text((*texts)[r]), python_text(table.chinese((*texts)[r]))});
      else if (const auto* whole = std::get_if<std::vector<int64_t>>(&table.column(c))) row.emplace_back((*whole)[r]);
      else row.emplace_back(table.real(r, c));
    out.add_row(std::move(row));
  }
  return out;
}

// (JSON without tables' use, frames, notes)
PyObject* what_if(PyObject* self, PyObject* arguments) {
  PyObject* word_list = nullptr;
  std::vector<std::string> words;
  if (!PyArg_ParseTuple(arguments, "O", &word_list) || !take_texts(word_list, words)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  std::optional<Answered> answered = taken(long_call<Result<Answered>>([=]() -> Result<Answered> {
    Result<Arguments> given = arguments_of("what-if", words);
    if (!given) return std::move(given).error();
    Result<WhatIfQuestion> question = what_if_question(*given);
    if (!question) return std::move(question).error();
    auto bytes = stage_bytes_of(*given, std::max(1, extent_of(run->run->trace()).dp_count));
    if (!bytes) return std::move(bytes).error();
    question->bytes = std::move(*bytes);
    Answered a;
    Result<WhatIfAnswer> found = what_if_answer(*run->run, *question, a.notes);
    if (!found) return std::move(found).error();
    a.tables = what_if_tables(found->model ? &*found->model : nullptr, found->list);
    a.foreign = what_if_json(found->list, {});
    return a;
  }));
  if (answered)
    for (Table& table : answered->tables)
      if (table.name() == "fixes") table = sentences_in_python(table);
  return answer(std::move(answered));
}

// Reads the run again as the output wants its clocks, and writes it. (paths written, diagnostics)
PyObject* export_to(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"path", "words", "lang", "progress", nullptr};
  PyObject *path_arg = nullptr, *word_list = nullptr, *report = nullptr;
  const char* lang = "en";
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|sO", const_cast<char**>(names), &path_arg, &word_list,
                                   &lang, &report))
    return nullptr;
  std::string path;
  std::vector<std::string> words;
  if (!take_text(path_arg, path) || !take_texts(word_list, words)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  if (report == Py_None) report = nullptr;
  struct Written {
    std::vector<std::string> paths;
    Diagnostics notes;
  };
  const auto progress = std::make_shared<Progress>();
  const auto written = taken(long_call<Result<Written>>(
      [=, lang = std::string(lang)]() -> Result<Written> {
        std::vector<std::string> all = run->words;  // opened again as it was, and written as asked
        all.insert(all.end(), words.begin(), words.end());
        all.push_back("--output=" + path);
        Result<Arguments> given = arguments_of("export", std::move(all), run->paths);
        if (!given) return std::move(given).error();
        Result<ExportQuestion> question = export_question(*given, lang);
        if (!question) return std::move(question).error();
        protect_measurements(given->has("force") ? nullptr : &measurement_kind);  // of the whole process
        if (Status s = check_writable(path, run->paths); !s) return std::move(s).error();
        Result<OpenOptions> options = open_options(*given, question->exporter->compat, question->clocks);
        if (!options) return std::move(options).error();
        options->progress = progress.get();
        Result<Trace> trace = open_trace(run->paths, *options);
        if (!trace) return std::move(trace).error();
        Written w;
        w.notes = trace->diagnostics;
        if (Status s = export_run(std::make_shared<const Run>(*trace), w.notes, path, question->exporter->name,
                                  question->options, run->paths, &w.paths);
            !s)
          return std::move(s).error();
        return w;
      },
      progress, report));
  if (!written) return nullptr;
  const Ref paths(text_list(written->paths)), notes(paths ? notes_list(written->notes) : nullptr);
  return notes ? PyTuple_Pack(2, paths.get(), notes.get()) : nullptr;
}

// Returns (diff's JSON, frames, notes).
PyObject* diff(PyObject*, PyObject* arguments) {
  PyObject *a_arg = nullptr, *b_arg = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &a_arg, &b_arg)) return nullptr;
  const auto a = run_of(a_arg), b = a ? run_of(b_arg) : nullptr;
  if (!b) return nullptr;
  return answer(taken(long_call<Result<Answered>>([=]() -> Result<Answered> {
    Result<RunDiff> made = compare_runs(*a->run, *b->run);
    if (!made) return std::move(made).error();
    return Answered{diff_tables(*made), made->notes, diff_json(*made)};
  })));
}

// ---- runs that never were
// ----------------------------------------------------------------------------------------------------

// (JSON, text for people, the order as CSV, [frame of its ranks])
PyObject* schedule(PyObject*, PyObject* arguments) {
  PyObject *operand_list = nullptr, *word_list = nullptr;
  std::vector<std::string> operands, words;
  if (!PyArg_ParseTuple(arguments, "OO", &operand_list, &word_list) || !take_texts(operand_list, operands) ||
      !take_texts(word_list, words))
    return nullptr;
  auto reported = taken(long_call<Result<ScheduleHint>>([=]() -> Result<ScheduleHint> {
    Result<Arguments> given = arguments_of("schedule", words, operands);
    if (!given) return std::move(given).error();
    return reported_schedule(*given);
  }));
  if (!reported) return nullptr;
  std::vector<Table> tables;
  tables.push_back(std::move(reported->ranks));
  const Ref json(text(reported->json)), words_text(text(reported->text)), order(text(reported->order_csv)),
      frames(frame_list(std::move(tables)));
  return json && words_text && order && frames
             ? PyTuple_Pack(4, json.get(), words_text.get(), order.get(), frames.get())
             : nullptr;
}

// Returns the answer as JSON and as text for people.
PyObject* plan(PyObject*, PyObject* arguments) {
  PyObject *operand_list = nullptr, *word_list = nullptr;
  std::vector<std::string> operands, words;
  if (!PyArg_ParseTuple(arguments, "OO", &operand_list, &word_list) || !take_texts(operand_list, operands) ||
      !take_texts(word_list, words))
    return nullptr;
  auto reported = taken(long_call<Result<ReportedPlan>>([=]() -> Result<ReportedPlan> {
    Result<Arguments> given = arguments_of("plan", words, operands);
    if (!given) return std::move(given).error();
    return reported_plan(*given);
  }));
  if (!reported) return nullptr;
  const Ref json(text(reported->json)), words_text(text(reported->text));
  return json && words_text ? PyTuple_Pack(2, json.get(), words_text.get()) : nullptr;
}

// Writes the logs of a run that never was; --output among the words names the folder.
PyObject* simulate(PyObject*, PyObject* arguments) {
  PyObject *operand_list = nullptr, *word_list = nullptr;
  std::vector<std::string> operands, words;
  if (!PyArg_ParseTuple(arguments, "OO", &operand_list, &word_list) || !take_texts(operand_list, operands) ||
      !take_texts(word_list, words))
    return nullptr;
  const auto reported = taken(long_call<Result<std::vector<std::string>>>([=]() -> Result<std::vector<std::string>> {
    Result<Arguments> given = arguments_of("simulate", words, operands);
    if (!given) return std::move(given).error();
    return simulate_to_folder(*given);
  }));
  return reported ? text_list(*reported) : nullptr;
}

// ---- attributes
// ------------------------------------------------------------------------------------------------------------

// (format, ranks, slices, cells, epoch_ns, aligned)
PyObject* facts(PyObject* self, void*) {
  const auto run = run_of(self);
  if (!run) return nullptr;
  const Trace& trace = run->trace;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  const Ref ranks(PyList_New(0));
  for (const Part& part : trace.parts) {
    if (!wanted.empty() && !std::binary_search(wanted.begin(), wanted.end(), part.rank)) continue;
    const Ref rank(ranks ? PyLong_FromLong(part.rank) : nullptr);
    if (!rank || PyList_Append(ranks.get(), rank.get()) != 0) return nullptr;
  }
  int64_t first = INT64_MAX;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    for (const Lane& lane : trace.parts[p].lanes)
      if (lane.begin < lane.end)
        first = std::min(first, trace.common_ns(static_cast<int32_t>(p), trace.parts[p].slices.start_ns[lane.begin]));
  return Py_BuildValue("(sOLLLO)", trace.format.c_str(), ranks.get(), static_cast<long long>(trace.slice_count()),
                       static_cast<long long>(trace.cells.size()),
                       static_cast<long long>(first == INT64_MAX ? 0 : first),
                       trace.alignment == AlignState::kMapped ? Py_True : Py_False);
}

PyObject* names(PyObject* self, PyObject*) {
  const auto run = run_of(self);
  if (!run) return nullptr;
  Ref list(PyList_New(0));
  for (StringId id = 0; id < run->trace.names.size(); ++id) {
    const Ref name(list ? text(run->trace.names.text(id)) : nullptr);
    if (!name || PyList_Append(list.get(), name.get()) != 0) return nullptr;
  }
  return list.release();
}

// Returns the address of a rank's start column in memory, for the test that nothing is copied; None if there is none.
PyObject* start_address(PyObject* self, PyObject* arguments) {
  Py_ssize_t part = 0;
  if (!PyArg_ParseTuple(arguments, "n", &part)) return nullptr;
  const auto run = run_of(self);
  if (!run) return nullptr;
  if (part < 0 || static_cast<size_t>(part) >= run->trace.parts.size()) return Ref::borrowed(Py_None).release();
  const auto& column = run->trace.parts[static_cast<size_t>(part)].slices.start_ns;
  return PyLong_FromVoidPtr(const_cast<int64_t*>(column.data()));
}

PyObject* close(PyObject* self, PyObject*) {
  auto& held = *reinterpret_cast<RunObject*>(self)->run;
  std::shared_ptr<const OpenRun> last = std::exchange(held, nullptr);
  PyThreadState* const state = PyEval_SaveThread();  // a large run takes a while to give back
  last.reset();
  PyEval_RestoreThread(state);
  return Ref::borrowed(Py_None).release();
}

PyMethodDef run_methods[] = {
    {"info", info, METH_NOARGS, "What stageline info prints: JSON and text."},
    {"figures", figures, METH_VARARGS, "Figures by name: JSON."},
    {"explain", findings, METH_NOARGS, "What stageline explain prints: JSON, English and Chinese text; notes."},
    {"diagnostics", diagnostics, METH_NOARGS, "(name, severity, message, count, place) of every kind of flaw."},
    {"model_table", model_table, METH_VARARGS, "model_table(name): steps, messages, devices or diagnostics."},
    {"slices", slices, METH_VARARGS, "slices(condition, columns, batch_rows): a Frame."},
    {"one_slice", one_slice, METH_VARARGS, "one_slice(id, columns): a Frame of one row."},
    {"source_text", source_text, METH_VARARGS, "source_text(id): the slice's event as its file has it, JSON."},
    {"events", events, METH_VARARGS,
     "events(rank, arguments): a Frame, fractional times, all starts, whole durations, [key, JSON …] beside the events."},
    {"cells", cells, METH_VARARGS, "cells(columns): a Frame."},
    {"sql", ask_sql, METH_VARARGS,
     "sql(query, parameters, timeout_ms, max_rows): a Frame, and whether there was more."},
    {"what_if", what_if, METH_VARARGS, "what_if(words): frames, notes, JSON."},
    {"export", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(export_to)), METH_VARARGS | METH_KEYWORDS,
     "export(path, words, lang, progress): paths written, notes."},
    {"names", names, METH_NOARGS, "Every name of the run once."},
    {"start_address", start_address, METH_VARARGS, "start_address(place of the rank): where its start column stands."},
    {"close", close, METH_NOARGS, "Gives the memory back that no array looks into."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef run_attributes[] = {{"facts", facts, nullptr, nullptr, nullptr},
                                {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot run_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(run_dealloc)},
                           {Py_tp_methods, run_methods},
                           {Py_tp_getset, run_attributes},
                           {0, nullptr}};
PyType_Spec run_spec = {"stageline._engine.Run", sizeof(RunObject), 0, Py_TPFLAGS_DEFAULT, run_slots};

PyMethodDef functions[] = {
    {"open", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(open)), METH_VARARGS | METH_KEYWORDS,
     "open(paths, words, progress=None, raw=False): a Run."},
    {"analyze", analyze, METH_VARARGS, "analyze(run, test, files, name, words): frames, notes, foreign text."},
    {"diff", diff, METH_VARARGS, "diff(a, b): frames, notes, JSON."},
    {"plan", plan, METH_VARARGS, "plan(operands, words): JSON, text."},
    {"schedule", schedule, METH_VARARGS, "schedule(operands, words): JSON, text, the order as CSV, frames."},
    {"simulate", simulate, METH_VARARGS, "simulate(operands, words): writes a folder; what there is to say of it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void leave_runs_to_the_system() { g_interpreter_ends = true; }

bool make_run_type(PyObject* module) {
  g_run_type = PyType_FromSpec(&run_spec);
  if (!g_run_type || PyObject_SetAttrString(module, "Run", g_run_type) != 0) return false;
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace stageline::python
