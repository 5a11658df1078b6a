// The runs that are open: opening, closing, and whether their files have changed.
#include <sys/stat.h>

#include <filesystem>
#include <ranges>

#include "base/freed_memory.h"
#include "base/machine_memory.h"
#include "mcp/tools.h"

namespace stageline::mcp {
namespace {

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

// Returns how a run is to be opened, but for its paths. Errors: kUsage, for an argument that cannot be read.
Result<OpenOptions> open_options(const Value& arguments) {
  OpenOptions options;
  options.align.mode = AlignMode::kAuto;
  options.reader = std::string(arguments["reader"].text());
  if (const Value ranks = arguments["ranks"]; !ranks.is_none())
    TRY_OK(take(parse_number_list(ranks.text()), options.ranks));
  if (const Value steps = arguments["steps"]; !steps.is_none())
    TRY_OK(parse_step_range(steps.text(), options.first_step, options.last_step));
  if (const Value range = arguments["range"]; !range.is_none())
    TRY_OK(take(parse_time_range(range.text()), options.range));
  if (const Value align = arguments["align"]; !align.is_none())
    TRY_OK(take(parse_align_mode(align.text()), options.align.mode));
  return options;
}

}  // namespace

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

// Forgets the handles of a run's answers.
void Tools::forget(const std::string& id) {
  std::erase_if(handles_, [&](const auto& one) { return one.first.starts_with("h:" + id + ":"); });
}

// Closes runs until one more fits; returns the ids of the closed ones.
std::vector<std::string> Tools::make_room() {
  std::vector<std::string> closed;
  const auto close_last = [&] {
    closed.push_back(runs_.back().id);
    forget(closed.back());
    runs_.pop_back();
  };
  while (runs_.size() > kMaxTraces) close_last();
  while (limits_.max_bytes > 0 && runs_.size() > 1 && resident_bytes() > limits_.max_bytes) {
    close_last();
    return_freed_memory();
  }
  return closed;
}

// Describes an opened run, and names the runs that were closed for it.
std::string Tools::opened_json(const Opened& run, const std::vector<std::string>& closed) {
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
  auto flaws = mapped<const Diagnostic*>(run.trace.diagnostics.items(), [&](const Diagnostic& d) { return &d; });
  sort_stably(flaws, std::ranges::greater(), &Diagnostic::severity);
  json.objects("diagnostics", flaws | std::views::take(20), [&](const Diagnostic* flaw) {
    json.field("name", flaw->name).field("severity", severity_name(flaw->severity)).field("count", flaw->count);
    json.field("message", clean_text(flaw->message.en));
  });
  return json.field("diagnostics_count", flaws.size()).end_object().take();
}

Result<std::string> Tools::open(const Value& arguments) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < arguments["paths"].size(); ++i) {
    TRY(path, confined(arguments["paths"].item(i).text()));
    paths.push_back(std::move(*path));
  }
  TRY(options, open_options(arguments));
  options->progress = progress_;
  // The list is made before the files are read, so that a change while they are read counts as a change.
  std::string files = files_at(paths);
  TRY(trace, open_trace(paths, *options));
  options->progress = nullptr;
  Opened& run = runs_.emplace_front();
  run.id = "t" + std::to_string(next_id_++);
  run.trace = std::move(*trace);
  run.run = std::make_shared<const Run>(run.trace);
  run.data = std::make_shared<const sql::RunData>(run.run, nullptr, paths);
  run.sessions = std::make_unique<sql::SessionPool>(run.data);
  run.paths = std::move(paths);
  run.options = *options;
  run.files = std::move(files);
  return opened_json(run, make_room());
}

Result<std::string> Tools::close(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string id = (*run)->id;
  forget(id);
  runs_.pop_front();
  return "{\"closed\":\"" + id + "\"}";
}

}  // namespace stageline::mcp
