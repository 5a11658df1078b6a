#include "mcp/tools.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <ranges>

#include "base/error_words.h"
#include "base/freed_memory.h"
#include "base/give_up.h"
#include "base/input.h"
#include "base/input_files.h"
#include "base/json_tree.h"

namespace stageline::mcp {
namespace {

// The memory that this process holds; 0 where the system does not say.
int64_t resident_bytes() {
  const Result<std::string> text = read_all("/proc/self/statm", 1000);
  if (!text) return 0;
  const auto fields = split(*text, ' ');
  const auto pages = fields.size() > 1 ? parse_int(fields[1]) : std::nullopt;
  return pages ? *pages * sysconf(_SC_PAGESIZE) : 0;
}

// Lists the files at `paths`: one line for each file with its size and the time of its last change, sorted.
std::string files_at(const std::vector<std::string>& paths) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& path) {
    struct stat about = {};
    if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
    lines.push_back(path + " " + std::to_string(about.st_size) + " " +
                    std::to_string(about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec) + "\n");
  };
  for (const std::string& path : paths) {
    add(path);
    std::error_code error;
    for (auto at = std::filesystem::recursive_directory_iterator(
             path, std::filesystem::directory_options::skip_permission_denied, error);
         !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error))
      add(at->path().string());
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

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
  const Status checked = check_arguments(*find_tool(name), arguments);
  const auto* const call =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const auto& one) { return one.first == name; });
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
    const Result<Opened*> run = opened(arguments, name == "diff" ? "a" : "trace");
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

// The full path of a page to be written. Its folder must exist, below one that may be written to.
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

Result<Tools::Opened*> Tools::opened(const Value& arguments, const char* name) {
  const std::string id(arguments[name].text());
  for (auto at = runs_.begin(); at != runs_.end(); ++at)
    if (at->id == id) {
      runs_.splice(runs_.begin(), runs_, at);
      return &runs_.front();
    }
  std::string list;
  for (const Opened& run : runs_) append_item(list, run.id);
  return wrong("no run \"" + clean_text(id, 20) + "\" is open", list.empty() ? "call open first" : "there are " + list);
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
  TRY(run, opened(arguments, again.tool == "diff" ? "a" : "trace"));
  TRY_OK(unchanged(**run));
  const Answer answer = call(again.tool, arguments);
  if (!answer.is_error) return answer.json;
  const Result<JsonTree> reported = parse_json_tree(answer.json, "answer");
  return wrong(reported ? std::string(reported->tree.root()["error"].text()) : "it cannot be asked again");
}

std::vector<std::pair<std::string, std::string>> Tools::opened_runs() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Opened& run : runs_) out.emplace_back(run.id, clean_text(run.trace.description));
  return out;
}

Status Tools::unchanged(const Opened& run) const {
  if (files_at(run.paths) == run.files) return {};
  return wrong("the files of " + run.id + " changed since they were read", "open it again");
}

Result<Trace> Tools::read_again(const Opened& run, OpenOptions options) const {
  TRY_OK(unchanged(run));
  options.progress = progress_;
  return open_trace(run.paths, options);
}

// Closes runs until one more fits; returns the ids of the closed ones.
std::vector<std::string> Tools::make_room() {
  std::vector<std::string> closed;
  const auto close_last = [&] {
    const std::string id = runs_.back().id;
    closed.push_back(id);
    std::erase_if(handles_, [&](const auto& one) { return one.first.starts_with("h:" + id + ":"); });
    runs_.pop_back();
  };
  while (runs_.size() > kMaxTraces) close_last();
  while (limits_.max_bytes > 0 && runs_.size() > 1 && resident_bytes() > limits_.max_bytes) {
    close_last();
    return_freed_memory();
  }
  return closed;
}

Result<std::string> Tools::open(const Value& arguments) {
  OpenOptions options;
  options.align.mode = AlignMode::kAuto;
  options.reader = std::string(arguments["reader"].text());
  std::vector<std::string> paths;
  for (size_t i = 0; i < arguments["paths"].size(); ++i) {
    TRY(path, confined(arguments["paths"].item(i).text()));
    paths.push_back(std::move(*path));
  }
  if (const Value ranks = arguments["ranks"]; !ranks.is_none())
    TRY_OK(take(parse_number_list(ranks.text()), options.ranks));
  if (const Value steps = arguments["steps"]; !steps.is_none())
    TRY_OK(parse_step_range(steps.text(), options.first_step, options.last_step));
  if (const Value range = arguments["range"]; !range.is_none())
    TRY_OK(take(parse_time_range(range.text()), options.range));
  if (const Value align = arguments["align"]; !align.is_none())
    TRY_OK(take(parse_align_mode(align.text()), options.align.mode));
  options.progress = progress_;
  // Taken before the files are read, so that a change while they are read counts as a change.
  std::string files = files_at(paths);
  TRY(trace, open_trace(paths, options));
  options.progress = nullptr;
  Opened& run = runs_.emplace_front();
  run.id = "t" + std::to_string(next_id_++);
  run.trace = std::move(*trace);
  run.run = std::make_shared<const Run>(run.trace);
  run.data = std::make_shared<const sql::RunData>(run.run, nullptr, paths);
  run.sessions = std::make_unique<sql::SessionPool>(run.data);
  run.paths = std::move(paths);
  run.options = options;
  run.files = std::move(files);
  const std::vector<std::string> closed = make_room();
  JsonWriter json;
  json.begin_object()
      .field("trace", run.id)
      .field("format", run.trace.format)
      .field("description", clean_text(run.trace.description));
  json.field("ranks", run.trace.parts.size()).field("slices", run.trace.slice_count());
  json.field("cells", run.trace.cells.size())
      .field("clock", clock_name(run.trace.clock))
      .field("epoch_ns", std::to_string(run.data->epoch_ns()));
  if (!closed.empty()) json.list("closed", closed);
  json.each("suits", stageline::analyses(), [&](const Analysis* analysis) {
    if (!reason_against(*analysis, run.trace)) json.value(analysis->name);
  });
  std::vector<const Diagnostic*> flaws;
  for (const Diagnostic& d : run.trace.diagnostics.items()) flaws.push_back(&d);
  sort_stably(flaws, std::ranges::greater(), &Diagnostic::severity);
  json.objects("diagnostics", flaws | std::views::take(20), [&](const Diagnostic* flaw) {
    json.field("name", flaw->name).field("severity", severity_name(flaw->severity)).field("count", flaw->count);
    json.field("message", clean_text(flaw->message.en));
  });
  return json.field("diagnostics_count", flaws.size()).end_object().take();
}

Result<std::string> Tools::close(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string id = (*run)->id;
  std::erase_if(handles_, [&](const auto& one) { return one.first.starts_with("h:" + id + ":"); });
  runs_.pop_front();
  return "{\"closed\":\"" + id + "\"}";
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
