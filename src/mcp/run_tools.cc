// Tools that ask a run's own questions: explain, ask, what_if, diff.
#include "diagnosis/compare_runs.h"
#include "diagnosis/diff/diff_report.h"
#include "diagnosis/explain_json.h"
#include "engine/what_if_question.h"
#include "mcp/tools.h"

namespace stageline::mcp {
namespace {

// The column of a sort order: "total_ns", or "-total_ns" for the smallest first.
std::string sorted_column(std::string_view sort) { return std::string(sort.starts_with("-") ? sort.substr(1) : sort); }

// Returns true if row a comes before row b by a column's value: the largest first (with `ascending` the smallest),
// unknown ones last.
bool stands_before(const Table& table, size_t column, bool ascending, size_t a, size_t b) {
  const bool null_a = table.is_null(a, column), null_b = table.is_null(b, column);
  if (null_a || null_b) return !null_a && null_b;
  if (ascending) std::swap(a, b);
  switch (table.column(column).index()) {
    case 0: return table.integer(a, column) > table.integer(b, column);
    case 1: return table.real(a, column) > table.real(b, column);
    default: return table.text(a, column) > table.text(b, column);
  }
}

void append_texts(JsonWriter& json, const char* name, const std::vector<std::string>& texts) {
  json.list(name, texts, [&](const std::string& text) { return clean_text(text, 500); });
}

Result<const Analysis*> analysis_named(const std::string& name) {
  if (const Analysis* const found = find_analysis(name)) return found;
  auto names = mapped<std::string>(stageline::analyses(), [&](const Analysis* known) { return known->name; });
  const std::string near = nearest(name, names);
  return wrong("there is no analysis \"" + clean_text(name, 100) + "\"",
               near.empty() ? "call analyses" : "did you mean " + near + "?");
}

Status take_options(const std::string& name, const Analysis& analysis, const Value& given, AnalysisOptions& options) {
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string option = dashed(given.key(i).text());
    if (std::ranges::find(analysis.options(), option, &AnalysisOption::name) == analysis.options().end())
      return wrong(name + " has no option \"" + clean_text(option, 60) + "\"", "call analyses for its options");
    const Value value = given.item(i);
    options.set(option, value.tag() == ValueTag::kText ? std::string(value.text()) : canonical_json(value));
  }
  return {};
}

// Returns the table that is wanted; the first one where none is named.
Result<const Table*> table_of(const std::string& name, const std::vector<Table>& tables, std::string_view wanted) {
  std::string list;
  for (const Table& table : tables) {
    if (wanted.empty() || table.name() == wanted) return &table;
    append_item(list, table.name());
  }
  return wrong(name + " has no table \"" + clean_text(wanted, 60) + "\" of this run", "it has " + list);
}

Status check_sort(const Table& table, std::string_view sort) {
  const std::string column = sorted_column(sort);
  if (table.column_index(column) >= 0) return {};
  auto columns = mapped<std::string>(table.columns(), &ColumnSpec::name);
  const std::string near = nearest(column, columns);
  return wrong(table.name() + " has no column \"" + clean_text(column, 60) + "\"",
               near.empty() ? "schema lists columns" : "did you mean " + near + "?");
}

std::vector<std::string> messages(const Diagnostics& notes) {
  return mapped<std::string>(notes.items(), [&](const Diagnostic& d) { return d.message.en; });
}

}  // namespace

void Tools::append_table(JsonWriter& json, const Table& table, int64_t rows, std::string_view sort) const {
  json.objects("columns", table.columns(), [&](const ColumnSpec& c) {
    json.field("name", c.name).field("unit", raw_unit(c.type)).field("help", c.help);
  });
  auto order = indexes(table.row_count());
  for (size_t c = 0; !sort.empty() && c < table.columns().size(); ++c)
    if (table.columns()[c].name == sorted_column(sort))
      sort_stably(order, [&](size_t a, size_t b) { return stands_before(table, c, sort.starts_with("-"), a, b); });
  CappedRows sink(limits_.max_chars);
  sink.begin({});
  for (const size_t row : order) {
    if (sink.count == rows) break;
    std::vector<sql::SqlValue> values;
    for (size_t c = 0; c < table.columns().size(); ++c)
      if (table.is_null(row, c)) values.emplace_back();
      else if (table.column(c).index() == 0) values.emplace_back(table.integer(row, c));
      else if (table.column(c).index() == 1) values.emplace_back(table.real(row, c));
      else values.emplace_back(std::string_view(table.text(row, c)));
    if (!sink.row(values)) break;
  }
  const int64_t left = static_cast<int64_t>(table.row_count()) - sink.count;
  json.key("rows").raw(sink.rows.end_array().text()).field("truncated", left > 0);
  if (left > 0)
    json.field("more", grouped(left) + " rows more: rows up to " + std::to_string(limits_.max_rows) +
                           ", sort, or the same table in sql with WHERE and LIMIT");
}

const Explanation& Tools::explanation_of(Opened& run) { return explained_run(*run.run); }

Result<std::string> Tools::explain(const Value& arguments) {
  TRY(run, opened(arguments));
  const bool zh = arguments["lang"].text() == "zh";
  const Explanation& e = explanation_of(**run);
  const auto pick = [&](const Text& text) { return clean_text(text.in(zh), 2000); };
  const auto whole = [](double ns) { return static_cast<int64_t>(std::llround(ns)); };
  JsonWriter json;
  json.begin_object().field("headline", pick(e.headline.title)).field("lead", pick(e.headline.lead));
  json.field("run", pick(e.run)).field("step_ns", whole(e.step_ns > 0 ? e.step_ns : e.headline.step_ns));
  json.field("lost_ns", whole(e.lost_ns)).field("steps", e.steps);
  json.objects("parts", parts_of(e), [&](const SpanPart& part) {
    json.field("id", part.id).field("label", pick(part.label)).field("share", part.share);
  });
  json.objects("findings", e.findings, [&](const Finding& f) {
    json.field("id", f.id).field("title", pick(f.title)).field("detail", pick(f.detail));
    write_places(json, "places", f.places);
    json.field("key", clean_text(key_of(f)));
    json.field("value", clean_text(f.value)).field("lost_ns", cost_ns(f)).field("uncertainty_ns", cost_error_ns(f));
    json.field("saving_ns", whole(f.price.saving_ns)).field("fix", pick(f.price.fix));
    json.field("assumption", pick(f.price.assumption))
        .field("command", clean_text(finding_command(f, (*run)->paths), 1000));
    const FindingEvidence evidence = evidence_of(f);
    json.key("evidence");
    if (evidence.analysis.empty()) json.null();
    else json.begin_object().field("analysis", evidence.analysis).field("table", evidence.table).end_object();
  });
  json.field("closing", pick(closing_words(e))).field("why_not", clean_text(e.why_not, 1000));
  json.field("handle", handle_of(**run, "explain", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::ask(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string name(arguments["analysis"].text());
  TRY(found, analysis_named(name));
  const Analysis& analysis = **found;
  const Trace& trace = (*run)->trace;
  if (const Reason* against = reason_against(analysis, trace))
    return cannot_answer(against->name, name + ": " + against->meaning, against->help);
  AnalysisInput input{.trace = &trace, .facts = (*run)->run};
  TRY_OK(take_options(name, analysis, arguments["options"], input.options));
  const std::string key = name + " " + canonical_json(arguments["options"]);
  auto& answers = (*run)->answers;
  std::shared_ptr<const AnalysisResult> result = answers.count(key) > 0 ? answers[key] : nullptr;
  if (!result) {
    TRY(made, analysis.run(input));
    result = std::make_shared<const AnalysisResult>(std::move(*made));
    if (answers.size() >= kMaxKept) answers.clear();
    if (sum_over<size_t>(result->tables, &Table::row_count) <= kMaxKeptRows) answers[key] = result;
  }
  TRY(table, table_of(name, result->tables, arguments["table"].text()));
  if (!arguments["sort"].is_none()) TRY_OK(check_sort(**table, arguments["sort"].text()));
  if ((*table)->row_count() == 0 && trace.parts.size() == 1 && analysis.across_ranks) {
    const Reason& why = reason("needs_two_ranks");
    return cannot_answer(why.name, name + ": " + why.meaning, why.help);
  }
  JsonWriter json;
  json.begin_object().field("analysis", analysis.name).field("table", (*table)->name());
  append_table(json, **table, std::min<int64_t>(limits_.max_rows, arguments["rows"].integer().value_or(50)),
               arguments["sort"].text());
  json.field("row_count", (*table)->row_count()).list("tables", result->tables, &Table::name);
  json.list("notes", result->notes.items(), [&](const Diagnostic& d) { return clean_text(d.message.en, 500); });
  json.field("handle", handle_of(**run, "ask", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::what_if(const Value& arguments) {
  TRY(run, opened(arguments));
  WhatIfWish wish;
  for (size_t i = 0; i < arguments["scale"].size(); ++i) wish.scales.emplace_back(arguments["scale"].item(i).text());
  wish.schedule = std::string(arguments["schedule"].text());
  wish.micro_batches = arguments["micro_batches"].integer();
  wish.chunks = arguments["chunks"].integer();
  wish.group = arguments["group"].integer();
  wish.latency = std::string(arguments["latency"].text());
  wish.layers = std::string(arguments["layers"].text());
  wish.more_memory = arguments["more_memory"].boolean().value_or(false);
  TRY(question, what_if_question(wish));
  Diagnostics notes;
  const Result<WhatIfAnswer> found = what_if_answer(*(*run)->run, *question, notes);
  if (!found && (*run)->trace.cells.size() == 0) {
    const Reason& why = reason("no_pipeline_cells");
    return cannot_answer(why.name, std::string(why.meaning) + ". " + found.error().what, found.error().hint);
  }
  if (!found) return found.error();
  const FixList* list = &found->list;
  const WhatIf* model = found->model ? &*found->model : nullptr;
  JsonWriter json;
  json.begin_object().field("sentence", clean_text(list->sentence.en, 1000));
  const double of_profile_ns = list->fixes.empty() ? std::nan("") : list->fixes.front().price.recorded_ns;
  const ModelError error = model ? model->error() : ModelError{of_profile_ns, std::nan(""), std::nan("")};
  json.field_ns("recorded_ns", error.recorded_ns).field_ns("graph_ns", error.graph_ns);
  json.field("model_error_share", (error.graph_ns - error.recorded_ns) / error.recorded_ns);
  const bool known = model && model->order().known();
  json.field("schedule", known ? model->order().recognition().best().name : std::string());
  json.key("fixes").begin_array();
  for (const Fix& fix : list->fixes) {
    if (static_cast<int64_t>(json.text().size()) > limits_.max_chars) break;
    json.begin_object().field("fix", fix.id).field("what", clean_text(fix.name.en, 500));
    json.field_ns("saving_ns", fix.price.saving_ns).field_ns("error_ns", fix.price.error_ns);
    json.field("saving_share", fix.price.share()).field_ns("step_ns", fix.price.step_ns);
    json.field("steps", fix.price.steps).field("bound", fix.bound);
    json.field("assumption", clean_text(fix.assumes.en, 500)).field("how", clean_text(fix.how.en, 500)).end_object();
  }
  json.end_array().field("tried", list->tried).field("no_gain", list->no_gain).field("over_memory", list->over_memory);
  append_texts(json, "notes", messages(notes));
  json.field("handle", handle_of(**run, "what_if", arguments)).end_object();
  return json.take();
}

Result<std::string> Tools::plan(const Value& arguments) {
  std::vector<std::string> flags;
  for (const Argument& a : find_tool("plan")->arguments) {
    const Value value = arguments[a.name];
    if (value.is_none() || a.name == "trace" || a.name == "model") continue;
    std::string flag = "--" + a.name + "=";
    std::ranges::replace(flag, '_', '-');
    flags.push_back(flag +
                    (a.type == ArgumentType::kWhole ? std::to_string(*value.integer()) : std::string(value.text())));
  }
  Opened* run = nullptr;
  if (!arguments["trace"].is_none()) {
    TRY_OK(take(opened(arguments), run));
    TRY_OK(unchanged(*run));
    if (run->paths.size() != 1) return wrong("plan takes its times from a run that was opened by one path");
    flags.push_back("--from=" + run->paths[0]);
  }
  if (!arguments["model"].is_none()) {
    TRY(path, confined(arguments["model"].text()));
    flags.push_back("--model=" + *path);
  }
  TRY(json, limits_.plan(flags));
  if (static_cast<int64_t>(json->size()) > limits_.max_chars)
    return wrong("the plans are longer than an answer may be", "fewer of them: top 1; or fewer stages: pp");
  if (run) json->insert(json->rfind('}'), ",\"handle\":\"" + handle_of(*run, "plan", arguments) + "\"");
  return json;
}

Result<std::string> Tools::diff(const Value& arguments) {
  TRY(b, opened(arguments, "b"));
  TRY(a, opened(arguments, "a"));
  double limit = 0;
  if (!arguments["fail_on"].is_none()) {
    std::string_view text = trim(arguments["fail_on"].text());
    if (text.ends_with("%")) text = trim(text.substr(0, text.size() - 1));
    const auto share = parse_double(text);
    if (!share || *share < 0 || *share > 1e6) return wrong("diff: fail_on is a share of the step", "write 3%");
    limit = *share / 100;
  }
  const Result<RunDiff> diff = compare_runs(Run((*a)->trace), Run((*b)->trace));
  for (const Opened* run : {*a, *b})
    if (!diff && run->trace.cells.size() == 0) {
      const Reason& why = reason("no_pipeline_cells");
      return cannot_answer(why.name, run->id + ": " + std::string(why.meaning) + ". " + diff.error().what,
                           diff.error().hint);
    }
  if (!diff) return diff.error();
  const double step = diff->a.step_ns;
  JsonWriter json;
  json.begin_object();
  json.field("headline", clean_text(headline(*diff).en, 1000)).field("cause", clean_text(main_cause(*diff).en, 1000));
  json.field_ns("change_ns", diff->change_ns).field_ns("error_ns", diff->error_ns);
  json.field("change_share", diff->change_ns / step).field("beyond_noise", diff->sure);
  if (!arguments["fail_on"].is_none()) json.field("fails", slower_by_more(*diff, limit));
  json.field("a", clean_text(run_line(diff->a).en, 500)).field("b", clean_text(run_line(diff->b).en, 500));
  auto changes = mapped<std::string>(diff->changes, &Text::en);
  append_texts(json, "changes", changes);
  json.objects("groups", merged_groups(*diff), [&](const DiffGroup& group) {
    json.field("what", clean_text(group_line(*diff, group).en, 500)).field_ns("effect_ns", group.effect_ns);
    json.field_ns("error_ns", group.error_ns).field("effect_share", group.effect_ns / step);
    std::vector<std::string> behind;
    for (const DiffItem& item : group.behind)
      behind.push_back(signed_duration(item.effect_ns) + " " + clean_text(item_line(item).en, 500));
    if (!behind.empty()) append_texts(json, "behind", behind);
  });
  json.field("matched", diff->matched).field("unmatched", diff->unmatched).field("unused", diff->unused);
  append_texts(json, "notes", messages(diff->notes));
  json.field("handle", handle_of(**a, "diff", arguments)).end_object();
  return json.take();
}

}  // namespace stageline::mcp
