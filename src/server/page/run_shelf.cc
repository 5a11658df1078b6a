#include "server/page/run_shelf.h"

#include <sys/stat.h>

#include <filesystem>
#include <new>

#include "base/change_points.h"
#include "base/input_files.h"
#include "diagnosis/compare_runs.h"
#include "diagnosis/explain.h"
#include "engine/diff_json.h"
#include "engine/mean_step.h"
#include "facts/run.h"
#include "readers/reader.h"

namespace stageline {
namespace {

struct TrendInput {
  std::string title, path;
  RunAnswers::Read read;
};

// Compares several runs of one job, in order: the step time of each, the change from one run to the next (`stageline
// diff`), and the run from which the level differs (base/change_points.h, as in `stageline history`). {runs: [{title,
// path, change_share, steps, step_ns, headline: [English, Chinese], why_not?: [English, Chinese], diff}],
//  changes: [{at, before_ns, after_ns, p}]}
// `diff` is the output of `stageline diff --json` for this run and the previous one with a step time. It is {} for the
// first run and for runs without a pipeline. step_ns is 0 for a run that could not be read or has no steps, and why_not
// gives the reason. Two runs are held in memory at a time. Errors: kUnavailable where no two runs have steps.
Result<std::string> trend_json(const std::vector<TrendInput>& inputs) {
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  std::vector<double> series;  // of the runs that have steps, in order
  std::vector<size_t> at;      // for each of them, the index of its input
  std::optional<Trace> before;
  double before_ns = 0;  // its step
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TrendInput& input = inputs[i];
    json.begin_object().field("title", input.title).field("path", input.path);
    Result<Trace> trace = input.read();
    Explanation explanation;
    MeanStep step;
    Text why_not = trace ? Text() : error_text(trace.error());
    std::string diff = "{}";
    if (trace) {
      explanation = explain(Run(*trace), true);
      const Result<MeanStep> found = mean_step_of(explanation, input.path);
      if (found) step = *found;
      if (!found) why_not = error_text(found.error());
    }
    // This is the change between the two steps shown; the diff below is of the mean over all steps, and gives the
    // reason.
    json.maybe("change_share", step.ns > 0 && before_ns > 0, step.ns / before_ns - 1);
    if (step.ns > 0) {
      if (before)
        if (const Result<RunDiff> found = compare_runs(Run(*before), Run(*trace)); found) diff = diff_json(*found);
      series.push_back(step.ns);
      at.push_back(i);
      before = std::move(*trace);
      before_ns = step.ns;
    }
    json.field("steps", step.steps).field("step_ns", step.ns);
    const Text& title = explanation.headline.title;
    json.list("headline", std::array{title.en, title.zh});
    if (!why_not.empty()) json.list("why_not", std::array{why_not.en, why_not.zh});
    json.key("diff").raw(diff).end_object();
  }
  if (series.size() < 2) return worded_error(ErrorCode::kUnavailable, "trend.no_steps");
  json.end_array().objects("changes", change_points(series), [&](const ChangePoint& point) {
    json.field("at", at[point.at]).field("before_ns", point.before);
    json.field("after_ns", point.after).field("p", point.p);
  });
  return json.end_object().take();
}

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 1000;    // of a folder; all entries are counted
constexpr size_t kMaxLooked = 20'000;  // most files of a folder whose format is looked for before the run is opened
constexpr int kMaxUnread = 32;         // most runs that wait to be read; fewer than the desk lets wait
constexpr auto kTrendPatience = std::chrono::milliseconds(30);
constexpr const char* kJsonType = "application/json; charset=utf-8";

std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string title_of(const std::vector<std::string>& shown) {
  if (shown.size() == 1) return valid_utf8(last_part(shown[0]));
  return valid_utf8(last_part(shown[0])) + " + " + std::to_string(shown.size() - 1);
}

struct Listed {
  std::string name;
  bool folder = false;
  int64_t bytes = 0, changed_s = 0;
};

}  // namespace

RunShelf::RunShelf(Options options) : options_(std::move(options)), drops_(options_.drops) {}

bool RunShelf::busy() const {
  if (desk_.busy()) return true;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [](const Entry& one) { return one.run && one.run->busy(); });
}

// Must be called with the lock held.
void RunShelf::start(Entry& entry) {
  entry.run = std::make_shared<ViewRun>(entry.title, entry.shown);
  entry.run->set_places(entry.paths);
  entry.run->set_planner(options_.planner);
  if (!entry.others.empty())
    entry.run->set_other(entry.other_title, entry.others_shown, options_.reader_of_second(entry.others));
  entry.used = ++uses_;
  const auto read = [this, run = entry.run, paths = entry.paths]() -> Result<std::string> {
    try {
      options_.read(*run, paths);
    } catch (const std::bad_alloc&) {
      run->set_error(
          {ErrorCode::kLimit, "not enough memory for this run", {}, "--ranks and --steps choose less of it"});
    }
    return std::string();
  };
  desk_.ask("run " + std::to_string(uses_), read);
  forget_some();
}

void RunShelf::forget_some() {
  for (;;) {
    size_t kept = 0;
    Entry* oldest = nullptr;
    for (Entry& one : entries_) {
      if (!one.run) continue;
      ++kept;
      if (one.run->settled() && !one.run->busy() && (!oldest || one.used < oldest->used)) oldest = &one;
    }
    if (kept <= kMaxKept || !oldest) return;
    oldest->run.reset();  // whoever answers from it still holds it until that is done
  }
}

std::shared_ptr<const ViewRun> RunShelf::take_run(std::string& target) {
  constexpr std::string_view kBegin = "/runs/";
  if (!target.starts_with(kBegin)) return nullptr;
  size_t at = kBegin.size(), number = 0;
  for (; at < target.size() && target[at] >= '0' && target[at] <= '9' && number <= kMaxRuns; ++at)
    number = number * 10 + (target[at] - '0');
  if (at >= target.size() || target[at] != '/') return nullptr;
  const std::lock_guard lock(mutex_);
  if (number == 0 || number > entries_.size()) return nullptr;
  Entry& entry = entries_[number - 1];
  if (!entry.run) start(entry);
  entry.used = ++uses_;
  target.erase(0, at);
  return entry.run;
}

Result<std::string> RunShelf::allowed(const std::string& path, size_t max_entries) const {
  Result<std::string> found = path_below(options_.roots, path, max_entries);
  // A relative path that does not exist where the program was started may exist in one of the folders that may be read.
  for (size_t k = 0; !found && !path.empty() && path[0] != '/' && k < options_.roots.size(); ++k)
    if (Result<std::string> other = path_below(options_.roots, options_.roots[k] + "/" + path, max_entries); other)
      return other;
  if (found) return found;
  return worded_error(ErrorCode::kNotFound, "shelf.not_allowed",
                      Args().set("path", valid_utf8(path)).set("why", error_text(found.error())), {},
                      "folders that may be read are named when the program is started: stageline view --root DIR");
}

// Returns the runs that the parameters with the names `path` and `drop` refer to, in their order.
Result<std::vector<RunShelf::Named>> RunShelf::named(const Query& query, std::string_view path,
                                                     std::string_view drop) const {
  std::vector<Named> out;
  for (const auto& [name, value] : query.parameters) {
    if (name == path) {
      TRY(found, allowed(value, kMaxPathEntries));
      out.push_back({*found, *found});
    } else if (name == drop) {
      TRY(number, integer_parameter(Query{"", {{name, value}}}, name, {}, 1, INT64_MAX));
      TRY(found, drops_.path_of(*number));
      out.push_back({std::move(*found), drops_.name_of(*number)});
    }
  }
  return out;
}

std::string RunShelf::status_json() const {
  JsonWriter json;
  json.begin_object().field("state", "choose").field("title", "");
  json.field("bytes_read", 0).field("bytes_total", 0).field("events", 0).field("revision", 0).field("message", "");
  write_palette(json);
  json.field("drops", drops_.takes()).list("roots", options_.roots, valid_utf8);
  return json.end_object().take();
}

// A folder's files and folders, the last changed first, since runs are looked for soon after they were made.
Result<std::string> RunShelf::browse(const Query& query) const {
  const std::string asked(query.text("path", options_.roots.front()));
  TRY(folder, allowed(asked, 0));
  const std::string& real = *folder;
  std::error_code error;
  std::vector<Listed> entries;
  size_t count = 0;
  for (auto at = fs::directory_iterator(real, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    struct stat about = {};
    if (name.starts_with('.') || stat(at->path().c_str(), &about) != 0) continue;
    if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) continue;
    if (at->is_symlink(error) && !path_below(options_.roots, at->path().string(), 0)) continue;
    ++count;
    entries.push_back({name, S_ISDIR(about.st_mode), S_ISDIR(about.st_mode) ? 0 : int64_t{about.st_size},
                       int64_t{about.st_mtim.tv_sec}});
  }
  if (error) return worded_error(ErrorCode::kNotFound, "shelf.no_folder", Args().set("path", valid_utf8(asked)));
  sort_stably(entries, [](const Listed& a, const Listed& b) {
    return a.changed_s != b.changed_s ? a.changed_s > b.changed_s : natural_less(a.name, b.name);
  });
  if (entries.size() > kMaxListed) entries.resize(kMaxListed);
  JsonWriter json;
  json.begin_object().field("path", valid_utf8(real));
  const std::string up = fs::path(real).parent_path().string();
  if (up != real && is_below(options_.roots, up)) json.field("up", valid_utf8(up));
  json.objects("entries", entries, [&](const Listed& one) {
    json.field("name", one.name).field("path", real == "/" ? "/" + one.name : real + "/" + one.name);
    json.field("folder", one.folder).field("bytes", one.bytes).field("changed_s", one.changed_s);
  });
  json.field("left_out", count - entries.size());
  return json.end_object().take();
}

// Says which reader would take a path, judged by names and the first bytes of files; no file is read whole. "": none
// would, or it has too many files to look at.
Result<std::string> RunShelf::look(const Query& query) const {
  const Result<std::string> path = allowed(std::string(query.text("path")), kMaxLooked);
  JsonWriter json;
  json.begin_object();
  const Result<Source> source = path ? scan_source({*path}) : Result<Source>(path.error());
  const Result<const Reader*> reader =
      source && !source->files.empty() ? choose_reader(*source, "") : make_error(ErrorCode::kUnknownKind, "");
  json.field("format", reader ? (*reader)->name : "");
  json.field("files", source ? static_cast<int64_t>(source->files.size()) : int64_t{0});
  int64_t bytes = 0;
  if (source)
    for (const SourceFile& file : source->files) bytes += file.size_bytes;
  return json.field("bytes", bytes).end_object().take();
}

// Opens a run, each run only once.
Result<std::string> RunShelf::open(const Query& query) {
  TRY(run, named(query, "path", "drop"));
  TRY(other, named(query, "compare", "compare_drop"));
  if (run->empty()) return make_error(ErrorCode::kUsage, "path names the run");
  Entry entry;
  for (const Named& one : *run) entry.paths.push_back(one.path), entry.shown.push_back(one.shown);
  for (const Named& one : *other) entry.others.push_back(one.path), entry.others_shown.push_back(one.shown);
  TRY(source, scan_source(entry.paths));
  if (source->files.empty())
    return worded_error(ErrorCode::kNotFound, "shelf.no_files", Args().set("path", valid_utf8(entry.shown[0])));
  entry.title = title_of(entry.shown);
  if (!other->empty()) entry.other_title = title_of(entry.others_shown);
  const std::lock_guard lock(mutex_);
  const auto unread = std::ranges::count_if(entries_, [](const Entry& one) { return one.run && !one.run->settled(); });
  if (unread >= kMaxUnread)
    return make_error(ErrorCode::kLimit, "many runs are being read", "open this one when they are");
  size_t number = 0;
  for (size_t k = 0; k < entries_.size(); ++k)
    if (entries_[k].paths == entry.paths && entries_[k].others == entry.others) number = k + 1;
  // A run that could not be read is tried again, since its files may be there now.
  if (number > 0 && entries_[number - 1].run && entries_[number - 1].run->failed()) entries_[number - 1].run.reset();
  if (number == 0) {
    if (entries_.size() >= kMaxRuns) return make_error(ErrorCode::kLimit, "too many runs", "start the program anew");
    entries_.push_back(std::move(entry));
    number = entries_.size();
  }
  if (!entries_[number - 1].run) start(entries_[number - 1]);
  entries_[number - 1].used = ++uses_;
  JsonWriter json;
  json.begin_object().field("run", "runs/" + std::to_string(number) + "/").field("title", entries_[number - 1].title);
  return json.end_object().take();
}

Result<ApiAnswer> RunShelf::trend(const Query& query) {
  TRY(runs, named(query, "path", "drop"));
  if (runs->size() < 2) return make_error(ErrorCode::kUsage, "path names a run, two of them at least");
  std::vector<TrendInput> inputs;
  std::string key;
  for (const Named& one : *runs) {
    inputs.push_back({title_of({one.shown}), valid_utf8(one.shown), options_.reader_of_second({one.path})});
    key += one.path + "\n";
  }
  const AnswerDesk::Answer answer = desk_.ask(
      key, [inputs = std::move(inputs)]() -> Result<std::string> { return trend_json(inputs); }, kTrendPatience);
  if (!answer.done) {
    JsonWriter json;
    json.begin_object().field("state", answer.begun ? "running" : "waiting").field("seconds", answer.seconds);
    return ApiAnswer{202, kJsonType, json.end_object().take(), {}};
  }
  if (!*answer.done) return ApiAnswer{200, kJsonType, unanswered_json(answer.done->error()), {}};
  return ApiAnswer{200, kJsonType, **answer.done, {}};
}

}  // namespace stageline
