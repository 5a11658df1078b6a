// Calls tools by name, and asks answers again by their handles.
#include "mcp/tools.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/give_up.h"
#include "base/input_files.h"
#include "base/json_tree.h"

namespace stageline::mcp {
namespace {

// The argument that names the run which decides what a tool can answer.
const char* run_argument(std::string_view tool) { return tool == "diff" ? "a" : "trace"; }

}  // namespace

std::string cannot_answer(std::string_view reason, std::string_view why, std::string_view help) {
  JsonWriter json;
  json.begin_object().field("cannot_answer", true).field("reason", reason);
  json.field("why", clean_text(why, 2000)).field("what_would_help", clean_text(help, 500)).end_object();
  return json.take();
}

void Tools::append_list(JsonWriter& json) const {
  json.key("tools").begin_array();
  for (const Tool& tool : tool_table()) {
    if (!has(tool.name)) continue;
    json.begin_object().field("name", tool.name).field("description", tool.description).key("inputSchema");
    append_schema(json, tool);
    json.key("outputSchema");
    append_answer_schema(json, tool);
    json.key("annotations").begin_object().field("readOnlyHint", !tool.writes).field("idempotentHint", true);
    json.field("openWorldHint", false).end_object().end_object();
  }
  json.end_array();
}

bool Tools::has(std::string_view name) const {
  const Tool* const tool = find_tool(name);
  return tool && (!tool->writes || !limits_.writes.empty());
}

Tools::Answer Tools::call(std::string_view name, const Value& arguments, Progress* progress) {
  using Call = Result<std::string> (Tools::*)(const Value&);
  static constexpr std::pair<std::string_view, Call> kCalls[] = {
      {"open", &Tools::open},       {"close", &Tools::close},     {"analyses", &Tools::analyses},
      {"schema", &Tools::schema},   {"explain", &Tools::explain}, {"ask", &Tools::ask},
      {"sql", &Tools::sql},         {"slices", &Tools::slices},   {"slice", &Tools::slice},
      {"what_if", &Tools::what_if}, {"plan", &Tools::plan},       {"diff", &Tools::diff},
      {"chart", &Tools::chart},     {"report", &Tools::report},   {"verify", &Tools::verify}};
  const auto* const call = std::ranges::find(kCalls, name, &std::pair<std::string_view, Call>::first);
  assert(call != std::end(kCalls));
  const Status checked = check_arguments(*find_tool(name), arguments);
  progress_ = progress;
  png_.clear();
  const GiveUpScope given_up([progress] { return progress && progress->cancelled(); });
  Result<std::string> made = worded_error(ErrorCode::kUnavailable, "refused.cancelled.question");
  try {
    made = checked ? (this->*call->second)(arguments) : Result<std::string>(checked.error());
  } catch (const GivenUp&) {
    // The client no longer waits for the answer. The run stays open, and results that were finished are kept.
  }
  progress_ = nullptr;
  if (made) return {std::move(*made), false, std::move(png_)};
  const Error& error = made.error();
  if (name != "open" && name != "report") {
    const Result<Opened*> run = opened(arguments, run_argument(name));
    const Analysis* const analysis = name == "ask" ? find_analysis(arguments["analysis"].text()) : nullptr;
    if (const Reason* why = run ? reason_of(error, (*run)->trace, analysis) : nullptr)
      return {cannot_answer(why->name, error.what, error.hint.empty() ? why->help : error.hint), false, ""};
  }
  JsonWriter json;
  json.begin_object();
  json.field("error", clean_text(error.what, 2000)).field("hint", clean_text(error.hint, 500)).end_object();
  return {json.take(), true, ""};
}

Result<std::string> Tools::confined(std::string_view path) const {
  Result<std::string> found = path_below(limits_.roots, std::string(path));
  if (found) return found;
  return wrong("\"" + clean_text(path) + "\" " + found.error().what,
               "folders that may be read are named when the server is started: --root");
}

// Returns the full path of a page to be written. Its folder must exist, below one that may be written to.
Result<std::string> Tools::writable(std::string_view path) const {
  const std::string asked(path);
  const auto refused = [&](const char* why) {
    return wrong("\"" + clean_text(asked) + "\" " + why,
                 "folders that may be written to are named when the server is started: --allow-write");
  };
  const size_t slash = asked.rfind('/');
  const std::string name = slash == std::string::npos ? asked : asked.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? limits_.writes.front() : asked.substr(0, slash + 1);
  if (asked.find('\0') != std::string::npos) return refused("has a NUL in it, where the system would end the name");
  if (!name.ends_with(".html") || name.size() < 6) return refused("is no page: its name ends in .html");
  char* const real = realpath(folder.c_str(), nullptr);
  const std::string found = real ? real : "";
  free(real);
  if (found.empty() || !is_below(limits_.writes, found)) return refused("is not in a folder that may be written to");
  const std::string whole = (found == "/" ? "" : found) + "/" + name;
  struct stat about = {};
  if (lstat(whole.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) return refused("is there and is no file");
  return whole;
}

std::string Tools::handle_of(const Opened& run, std::string_view tool, const Value& arguments) {
  const std::string asked = canonical_json(arguments);
  const std::string handle = "h:" + run.id + ":" + digest(run.files + std::string(tool) + asked);
  constexpr size_t kMaxHandles = 100'000;
  if (handles_.size() < kMaxHandles || handles_.count(handle) > 0) handles_[handle] = {std::string(tool), asked};
  return handle;
}

Result<std::string> Tools::recompute(const std::string& handle) {
  const auto asked = handles_.find(handle);
  if (asked == handles_.end())
    return wrong("no answer has the handle \"" + clean_text(handle, 60) + "\"",
                 "handles are those of answers of this session about runs that are still open");
  const Asked again = asked->second;
  TRY(tree, parse_json_tree(again.arguments, "handle"));
  const Value arguments = tree->tree.root();
  TRY(run, opened(arguments, run_argument(again.tool)));
  TRY_OK(unchanged(**run));
  const Answer answer = call(again.tool, arguments);
  if (!answer.is_error) return answer.json;
  const Result<JsonTree> reported = parse_json_tree(answer.json, "answer");
  return wrong(reported ? std::string(reported->tree.root()["error"].text()) : "it cannot be asked again");
}

Result<std::string> Tools::analyses(const Value& arguments) {
  TRY(run, opened(arguments));
  std::vector<std::pair<int, const Analysis*>> ranked;
  for (const Analysis* analysis : stageline::analyses()) {
    if (reason_against(*analysis, (*run)->trace)) continue;
    int hits = 0;
    const std::string text = analysis->name + " " + analysis->summary;
    for (const std::string_view word : split(arguments["about"].text(), ' '))
      if (word.size() > 2)
        hits += (text.find(word) != std::string::npos ? 1 : 0) +
                (analysis->name.find(word) != std::string_view::npos ? 3 : 0);
    ranked.emplace_back(-hits, analysis);
  }
  sort_stably(ranked, [](const auto& a, const auto& b) { return a.first < b.first; });
  // With words, only analyses that have one of them are listed; all are where none has.
  const bool asked = !ranked.empty() && ranked.front().first < 0;
  JsonWriter json;
  json.begin_object().key("analyses").begin_array();
  int64_t reported = 0;
  for (const auto& [hits, analysis] : ranked) {
    if ((asked && hits == 0) || static_cast<int64_t>(json.text().size()) > limits_.max_chars) break;
    ++reported;
    json.begin_object().field("name", analysis->name).field("summary", analysis->summary);
    json.list("tables", analysis->tables(), &TableSpec::name);
    json.list("options", analysis->options(), &AnalysisOption::name).end_object();
  }
  json.end_array().field("count", ranked.size());
  json.field("left_out", std::ssize(ranked) - reported).end_object();
  return json.take();
}

}  // namespace stageline::mcp
