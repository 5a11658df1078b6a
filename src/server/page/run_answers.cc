#include "server/page/run_answers.h"

#include <chrono>

#include "diagnosis/explain_json.h"
#include "engine/engine.h"
#include "engine/figures/figures.h"
#include "server/http/api_answer.h"
#include "server/page/answer_json.h"
#include "server/pipeline/pipeline_view.h"
#include "sql/answer.h"

namespace stageline {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(30);  // fast answers need no second request
constexpr size_t kMaxRows = 100'000;                       // of a table in an answer; all rows are counted
size_t max_rows(const Table&) { return kMaxRows; }
constexpr int64_t kMaxSqlBytes = int64_t{8} << 20;  // of an answer; no row begins after this many bytes
constexpr std::chrono::milliseconds kSqlTimeout{30'000};

// Returns those options of `query` that belong to the analysis. Errors: kUsage, as on the command line.
Result<AnalysisOptions> options_of(const Analysis& analysis, const Query& query) {
  AnalysisOptions options;
  for (const auto& [name, value] : query.parameters) {
    if (name == "name" || name == "token" || name == "page_of" || name == "from" || name == "rows" || name == "run")
      continue;
    const auto known = std::find_if(analysis.options().begin(), analysis.options().end(),
                                    [&](const AnalysisOption& option) { return name == option.name; });
    if (known == analysis.options().end() || std::string_view(known->value) == "PATH")
      return make_error(ErrorCode::kUsage, analysis.name + " has no option \"" + name + "\"",
                        "stageline help " + analysis.name + " lists its options");
    const auto choices = split(known->choices, ',');
    if (known->choices[0] != '\0' && std::ranges::find(choices, value) == choices.end())
      return make_error(ErrorCode::kUsage, name + " is one of " + known->choices + ", not \"" + value + "\"");
    options.set(name, value);
  }
  return options;
}

std::string working_json(const AnswerDesk::Answer& answer) {
  JsonWriter json;
  json.begin_object().field("state", answer.begun ? "running" : "waiting").field("seconds", answer.seconds);
  return json.end_object().take();
}

std::string placed(const Error& error) {
  const std::string where = error.where.text();
  return where.empty() ? error.what : where + ": " + error.what;
}

}  // namespace

struct RunAnswers::Other {
  std::string title;
  std::vector<std::string> paths;
  Read read;
  std::mutex mutex;
  std::optional<Result<Trace>> trace;
  std::shared_ptr<const Run> run;  // of `trace`
  std::mutex drawn_mutex;          // taken before `mutex`
  std::optional<DrawnRun> drawn;
  std::unique_ptr<PipelineView> pipeline;
  std::unique_ptr<Timeline> timeline;
  std::string run_json;
};

RunAnswers::RunAnswers(std::shared_ptr<const Run> recorded, std::shared_ptr<const Run> drawn,
                       std::vector<std::string> paths)
    : recorded_(std::move(recorded)), drawn_(std::move(drawn)), paths_(std::move(paths)) {
  write_list();
}
RunAnswers::~RunAnswers() { ending_ = true; }

void RunAnswers::set_other(std::string title, std::vector<std::string> paths, Read read) {
  other_ = std::make_unique<Other>();
  other_->title = std::move(title);
  other_->paths = std::move(paths);
  other_->read = std::move(read);
  write_list();
}

void RunAnswers::write_list() {
  if (other_) {
    const SecondRun other{other_->title, other_->paths};
    list_json_ = offers_json(recorded_->trace(), paths_, &other);
  } else {
    list_json_ = offers_json(recorded_->trace(), paths_, nullptr);
  }
}

Result<std::shared_ptr<const Run>> RunAnswers::other_run() {
  const std::lock_guard lock(other_->mutex);
  if (!other_->trace) other_->trace = other_->read();
  if (!*other_->trace) return other_->trace->error();
  if (!other_->run) other_->run = std::make_shared<const Run>(**other_->trace);
  return other_->run;
}

Status RunAnswers::draw_other() {
  const std::lock_guard lock(other_->drawn_mutex);
  if (other_->timeline) return {};
  TRY(run, other_run());
  other_->drawn.emplace(std::move(*run));
  other_->pipeline = std::make_unique<PipelineView>(*other_->drawn->run());
  other_->timeline = std::make_unique<Timeline>(other_->drawn->trace());
  other_->run_json =
      run_json(*other_->timeline, other_->title, other_->paths, {other_->drawn->trace().diagnostics, 1, true});
  return {};
}

Result<RunAnswers::OtherView> RunAnswers::other_view() {
  if (!other_)
    return make_error(ErrorCode::kUnavailable, "there is no second run", "stageline view A --compare B opens two");
  const AnswerDesk::Answer answer = desk_.ask(
      "the other run, drawn",
      [this]() -> Result<std::string> {
        TRY_OK(draw_other());
        return std::string();
      },
      kPatience);
  if (!answer.done) return OtherView{nullptr, nullptr, nullptr, {202, working_json(answer)}};
  if (!*answer.done) {
    const Error& error = answer.done->error();
    return make_error(ErrorCode::kUnavailable, placed(error), error.hint);
  }
  const std::lock_guard lock(other_->drawn_mutex);
  return OtherView{other_->pipeline.get(), other_->timeline.get(), &other_->run_json, {}};
}

Result<RunAnswers::Answer> RunAnswers::ask(const std::string& key, AnswerDesk::Work work, bool is_apart) {
  const AnswerDesk::Answer answer = desk_.ask(key, std::move(work), kPatience);
  if (!answer.done) return Answer{202, working_json(answer)};
  if (*answer.done) return Answer{200, **answer.done, is_apart};
  return Answer{200, unanswered_json(answer.done->error())};
}

Result<RunAnswers::Answer> RunAnswers::explain() {
  return ask("explain", [this]() -> Result<std::string> { return explain_json(explained_run(*recorded_), paths_); });
}

Result<RunAnswers::Answer> RunAnswers::losses() {
  return ask("losses", [this]() -> Result<std::string> { return losses_json(*recorded_); });
}

Result<RunAnswers::Answer> RunAnswers::figures() {
  return ask("figures", [this]() -> Result<std::string> { return page_figures_json(recorded_); });
}

Result<RunAnswers::Answer> RunAnswers::clocks() {
  if (!has_clocks(recorded_->trace()))
    return make_error(ErrorCode::kUnavailable, "no clock of this run was measured", "stageline align says why");
  return ask("clocks", [this]() -> Result<std::string> { return clocks_json(recorded_->trace(), max_rows); });
}

Result<RunAnswers::Answer> RunAnswers::compare() {
  if (!other_)
    return make_error(ErrorCode::kUnavailable, "there is no second run", "stageline view A --compare B opens two");
  return ask("compare", [this]() -> Result<std::string> {
    TRY(other, other_run());
    return compare_json(*recorded_, **other);
  });
}

Result<RunAnswers::Answer> RunAnswers::worst_ranks() {
  return ask("worst ranks", [this]() -> Result<std::string> { return worst_ranks_json(*recorded_); });
}

Result<RunAnswers::Answer> RunAnswers::calls(const Query& query, std::shared_ptr<const Timeline> timeline) {
  std::string key = "calls";
  for (const auto& [name, value] : query.parameters) key += " " + name + "=" + value;
  const AnswerDesk::Answer answer = desk_.ask(
      key,
      [this, query, timeline]() -> Result<std::string> {
        if (timeline) return area_calls_answer(drawn_->trace(), *timeline, query, kServedCalls);
        if (!other_) return calls_answer(*recorded_, nullptr, kServedCalls);
        TRY(other, other_run());
        return calls_answer(*recorded_, other->get(), kServedCalls);
      },
      kPatience);
  if (!answer.done) return Answer{202, working_json(answer)};
  if (*answer.done) return Answer{200, **answer.done, false, true};
  const Error& error = answer.done->error();
  return make_error(error.code == ErrorCode::kUsage ? error.code : ErrorCode::kUnavailable, placed(error), error.hint);
}

Result<RunAnswers::Answer> RunAnswers::analysis(const Query& query) {
  const std::string name(query.text("name"));
  const Analysis* analysis = find_analysis(name);
  const bool two = analysis && analysis->needs == AnalysisNeeds::kTwoRuns && other_;
  const bool of_other = other_ && query.text("run") == "other";
  if (!analysis || (!two && !of_other && !is_offered(*analysis, recorded_->trace())))
    return make_error(ErrorCode::kNotFound, "this run has no answer \"" + name + "\"", "/api/answers lists them");
  TRY(options, options_of(*analysis, query));
  TRY(from, integer_parameter(query, "from", 0, 0, INT64_MAX));
  const TablePart part{std::string(query.text("page_of")), *from};
  if (!part.table.empty() &&
      std::ranges::none_of(analysis->tables(), [&](const TableSpec* table) { return part.table == table->name; }))
    return make_error(ErrorCode::kUsage, name + " has no table \"" + part.table + "\"", "/api/answers lists them");
  if (part.table.empty() && part.first_row > 0)
    return make_error(ErrorCode::kUsage, "from goes with page_of, a table's name");
  const bool wants_apart = query.text("rows") == "apart";
  if (query.find("rows") && !wants_apart) return make_error(ErrorCode::kUsage, "rows is \"apart\", or left out");
  std::string key = std::string(of_other ? "other " : "") + "analysis " + analysis->name + " " + part.table + " " +
                    std::to_string(*from);
  for (const AnalysisOption& option : analysis->options())
    if (options->has(option.name)) key += std::string("\n") + option.name + "=" + options->text(option.name);
  const auto work = [this, analysis, two, of_other, part, options = std::move(*options)]() -> Result<std::string> {
    if (of_other && !two) {
      TRY(run, other_run());
      if (!is_offered(*analysis, (*run)->trace()))
        return make_error(ErrorCode::kNotFound, "the other run has no answer \"" + std::string(analysis->name) + "\"");
      return analysis_json(*analysis, options, *run, max_rows, part, AnswerForm::kApart);
    }
    if (!two) return analysis_json(*analysis, options, recorded_, max_rows, part, AnswerForm::kApart);
    TRY(other, other_run());
    return two_runs_json(*analysis, options, recorded_->trace(), (*other)->trace(), max_rows, part, AnswerForm::kApart);
  };
  Result<Answer> answer = ask(key, work, true);
  if (answer && answer->is_apart && !wants_apart) *answer = {200, joined_answer(answer->body)};
  return answer;
}

Result<RunAnswers::Answer> RunAnswers::sql(const Query& query) {
  const std::string text(query.text("q"));
  TRY(rows, integer_parameter(query, "rows", 1000, 1, kMaxSqlRows));
  if (text.empty()) return make_error(ErrorCode::kUsage, "q has the query", "/api/sql?q=SELECT%20name%20FROM%20tables");
  return ask("sql " + std::to_string(*rows) + " " + text, [this, text, max = *rows]() -> Result<std::string> {
    {
      const std::lock_guard lock(sql_mutex_);
      if (!sql_sessions_)
        sql_sessions_ =
            std::make_shared<sql::SessionPool>(std::make_shared<const sql::RunData>(drawn_, nullptr, paths_));
    }
    TRY(session, sql_sessions_->lend());
    sql::Limits limits{
        .max_rows = max, .timeout = kSqlTimeout, .max_memory = int64_t{256} << 20, .cancelled = &ending_};
    std::string body;
    sql::JsonSink sink([&](std::string_view bytes) { body += bytes; }, kMaxSqlBytes);
    TRY(outcome, (*session)->ask(text, limits, sink));
    sink.end(*outcome);
    return body;
  });
}

}  // namespace stageline
