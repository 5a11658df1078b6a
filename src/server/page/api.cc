#include "server/page/api.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/freed_memory.h"
#include "base/input.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/filter_run.h"
#include "engine/one_clock.h"
#include "model/event_text.h"
#include "server/http/query.h"
#include "server/http/viewer_bundle.h"
#include "server/live/live_page.h"
#include "server/page/run_json.h"
#include "server/pipeline/pipeline_view.h"
#include "server/pipeline/pipeline_what_if.h"
#include "server/timeline/counters.h"
#include "server/timeline/flows.h"
#include "server/timeline/histogram.h"
#include "server/timeline/name_search.h"
#include "server/timeline/selection.h"
#include "server/timeline/slice_details.h"
#include "server/timeline/slice_window.h"
#include "server/timeline/tiles.h"

namespace stageline {
namespace {

// Scripts and styles come only from our own files; the page sets styles through the CSSOM, which needs no exception.
constexpr std::string_view kPageHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>Stageline</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"viewer.css\">\n";
// Where there is a run, the browser requests it while it still reads the script (web/src/viewer/main.tsx).
constexpr std::string_view kPageRun = "<link rel=\"preload\" href=\"api/run\" as=\"fetch\" crossorigin>\n";
// Without scripts the reader cannot choose a language either, so both are shown.
constexpr std::string_view kPageWithout = "</head>\n<body>\n<div id=\"app\"></div>\n<noscript>";
constexpr std::string_view kPageBody = "</noscript>\n<script src=\"viewer.js\"></script>\n</body>\n</html>\n";

constexpr size_t kMaxExportBytes = size_t{2} << 30;  // larger files are made by `stageline export`
constexpr const char* kBinary = "application/octet-stream";
constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kApart = "application/x-stageline-rows";  // a text type, so that it is compressed on its way

using Answer = Result<std::string> (*)(const Timeline& timeline, const Query& query);
// One line for each route. `early`: it also answers while the run is being read, from a trace whose slices have only
// names and classes.
struct Route {
  std::string_view path;
  Answer answer;
  const char* type;
  bool early = false;
};
constexpr bool kEarly = true;
constexpr Route kRoutes[] = {
    {"/api/tiles", tiles_answer, kBinary, kEarly},      //
    {"/api/slices", slices_answer, kBinary, kEarly},    //
    {"/api/slice", slice_answer, kJson, kEarly},        //
    {"/api/select", select_answer, kJson, kEarly},      //
    {"/api/search", search_answer, kJson, kEarly},      //
    {"/api/find", find_answer, kJson, kEarly},          //
    {"/api/flows", flows_answer, kBinary, kEarly},      //
    {"/api/counter", counter_answer, kBinary, kEarly},  //
};

// Routes of the pipeline page, for runs with cells.
using PipelineAnswer = Result<std::string> (*)(const PipelineView& view, const Query& query);
struct PipelineRoute {
  std::string_view path;
  PipelineAnswer answer;
  const char* type;
};
constexpr PipelineRoute kPipelineRoutes[] = {
    {"/api/pipeline", pipeline_answer, kBinary},                  //
    {"/api/pipeline/fixes", pipeline_fixes_answer, kJson},        //
    {"/api/pipeline/what-if", pipeline_what_if_answer, kBinary},  //
};

ApiAnswer made_answer(Result<std::string> body, const char* type) {
  if (!body) return refused_answer(body.error());
  return {200, type, std::move(*body), {}};
}

// Routes whose answers are made once and kept, on threads of their own.
using LongAnswer = Result<RunAnswers::Answer> (*)(RunAnswers& answers, const Query& query);
struct LongRoute {
  std::string_view path;
  LongAnswer answer;
};
constexpr LongRoute kLongRoutes[] = {
    {"/api/explain", [](RunAnswers& answers, const Query&) { return answers.explain(); }},
    {"/api/clocks", [](RunAnswers& answers, const Query&) { return answers.clocks(); }},
    {"/api/compare", [](RunAnswers& answers, const Query&) { return answers.compare(); }},
    {"/api/pipeline/ranks", [](RunAnswers& answers, const Query&) { return answers.worst_ranks(); }},
    {"/api/answer", [](RunAnswers& answers, const Query& query) { return answers.analysis(query); }},
    {"/api/calls", [](RunAnswers& answers, const Query&) { return answers.calls(); }},
    {"/api/sql", [](RunAnswers& answers, const Query& query) { return answers.sql(query); }},
};

ApiAnswer long_answer(RunAnswers& answers, const LongRoute& route, const Query& query) {
  Result<RunAnswers::Answer> made = route.answer(answers, query);
  if (!made) return refused_answer(made.error());
  const char* type = made->is_apart ? kApart : made->is_binary ? kBinary : kJson;
  return {made->status, type, std::move(made->body), {}};
}

}  // namespace

void ViewRun::set_other(std::string title, std::vector<std::string> paths, RunAnswers::Read read) {
  other_title_ = std::move(title);
  other_paths_ = std::move(paths);
  other_read_ = std::move(read);
}

void ViewRun::set_trace(Trace trace) {
  preparing_ = true;
  const auto made = make_served(std::move(trace), true);
  answers_ = std::make_unique<RunAnswers>(made->recorded, made->drawn->run(), paths_);
  if (other_read_) answers_->set_other(std::move(other_title_), std::move(other_paths_), std::move(other_read_));
  publish(made);
  // Reading needs as much memory again as it keeps. A server lives long, so that is given back.
  return_freed_memory();
  ready_.store(true, std::memory_order_release);
}

void ViewRun::set_early(Trace trace) { publish(make_served(std::move(trace), false)); }

std::shared_ptr<const ServedRun> ViewRun::make_served(Trace trace, bool is_whole) const {
  auto made = std::make_shared<ServedRun>();
  const auto before = served();
  made->trace = std::move(trace);
  made->recorded = std::make_shared<const Run>(made->trace);
  made->drawn = std::make_unique<DrawnRun>(made->recorded);
  made->timeline = std::make_unique<Timeline>(made->drawn->trace());
  made->revision = before ? before->revision + 1 : 1;
  made->is_whole = is_whole;
  if (is_whole) made->pipeline = std::make_shared<PipelineView>(*made->drawn->run(), made->timeline.get());
  RunState state{made->trace.diagnostics, made->revision, is_whole};
  state.places = places_;
  made->run_json = run_json(*made->timeline, title_, paths_, state);
  return made;
}

void ViewRun::publish(std::shared_ptr<const ServedRun> made) {
  const std::lock_guard lock(served_mutex_);
  served_.swap(made);  // what it held is destroyed after the lock is released
}

std::shared_ptr<const ServedRun> ViewRun::served() const {
  const std::lock_guard lock(served_mutex_);
  return served_;
}

const Timeline* ViewRun::timeline() const {
  const auto now = served();  // a whole run stays as it is
  return now && now->is_whole ? now->timeline.get() : nullptr;
}

Result<std::string> ViewRun::perfetto_bytes() const {
  const std::lock_guard lock(export_mutex_);
  const auto whole = served();
  const Trace& trace = whole->timeline->trace();
  if (trace.cells.size() == 0 && trace.slice_count() == 0)
    return Error{ErrorCode::kUnavailable, "this run has neither cells nor slices to draw", {}, ""};
  if (trace.cells.size() == 0 && trace.parts.size() == 1 && trace.parts[0].files.size() == 1) {
    // Perfetto reads Chrome's JSON, so the file that was read is the best that there is.
    const SourceRef& file = trace.parts[0].files[0];
    if (Status s = check_unchanged(file); !s) return std::move(s).error();
    return read_all(file.path, kMaxExportBytes);
  }
  const char* folder = getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/stageline-view-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return Error{ErrorCode::kIo, "no temporary file can be made", {path}, "TMPDIR names another folder"};
  close(fd);
  ExportOptions options;
  options.title = title_;
  Diagnostics notes;
  const Status written = export_trace(whole->recorded, notes, path, "perfetto", options);
  Result<std::string> bytes = written ? read_all(path, kMaxExportBytes) : Result<std::string>(written.error());
  unlink(path.c_str());
  return bytes;
}

void ViewRun::set_error(const Error& error) {
  const std::string where = error.where.text();
  error_what_ = valid_utf8(where.empty() ? error.what : where + ": " + error.what);
  error_hint_ = valid_utf8(error.hint);
  failed_.store(true, std::memory_order_release);
}

std::string ViewRun::status_json() const {
  const bool ready = ready_.load(std::memory_order_acquire), failed = failed_.load(std::memory_order_acquire);
  const auto now = served();  // it is whole once `ready` is true
  JsonWriter json;
  json.begin_object();
  json.field("state", failed ? "failed" : ready ? "ready" : preparing_.load() ? "preparing" : "reading");
  json.field("title", valid_utf8(title_));
  json.field("bytes_read", progress_.done_bytes()).field("bytes_total", progress_.expected_bytes());
  json.field("events", ready ? static_cast<int64_t>(now->timeline->slice_count()) : progress_.events());
  json.field("revision", now ? now->revision : int64_t{0});
  json.field("message", "");
  if (failed) json.field("error", error_what_).field("hint", error_hint_);
  json.end_object();
  return json.take();
}

std::optional<ApiAnswer> page_answer(std::string_view path, bool asks_run) {
  if (path == "/") {
    std::string page(kPageHead);
    if (asks_run) page += kPageRun;
    const Text script = words("viewer.needs_javascript");
    page.append(kPageWithout).append(script.en + " " + script.zh).append(kPageBody);
    return ApiAnswer{200, "text/html; charset=utf-8", page, {}};
  }
  if (path == "/viewer.js")
    return asset_answer(web_viewer_js(), "text/javascript; charset=utf-8", web_viewer_js_hash());
  if (path == "/viewer.css") return asset_answer(web_viewer_css(), "text/css; charset=utf-8", web_viewer_css_hash());
  return std::nullopt;
}

ApiAnswer api_answer(const ViewRun& run, std::string_view target) {
  const Result<Query> query = parse_target(target);
  if (!query) return error_answer(400, query.error().what, query.error().hint);
  const std::string& path = query->path;
  if (std::optional<ApiAnswer> live = live_answer(run.live(), run.settled(), *query)) return std::move(*live);
  if (std::optional<ApiAnswer> page = page_answer(path, run.served() != nullptr)) return std::move(*page);
  if (path == "/api/status") return {200, kJson, run.status_json(), {}};
  const Route* route = nullptr;
  for (const Route& known : kRoutes)
    if (known.path == path) route = &known;
  const LongRoute* long_route = nullptr;
  for (const LongRoute& known : kLongRoutes)
    if (known.path == path) long_route = &known;
  const PipelineRoute* pipeline = nullptr;
  for (const PipelineRoute& known : kPipelineRoutes)
    if (known.path == path) pipeline = &known;
  if (!route && !long_route && !pipeline && path != "/api/answers" && path != "/api/run" && path != "/api/histogram" &&
      path != "/api/perfetto" && path != "/api/notes")
    return error_answer(404, "there is nothing at this path", "docs/viewer-protocol.md lists the paths");
  const std::shared_ptr<const ServedRun> now = run.served();
  const bool may_be_early = route ? route->early : path == "/api/run" || path == "/api/histogram";
  if (!now || (!now->is_whole && !may_be_early))
    return error_answer(503, "the run is still being read", "/api/status says how far it is");
  const auto revision = integer_parameter(*query, "revision", now->revision, 0, INT64_MAX);
  if (!revision) return refused_answer(revision.error());
  if (*revision != now->revision)
    return error_answer(409, "more of the run has been read since", "/api/run has its numbers now");
  const Timeline* timeline = now->timeline.get();
  if (path == "/api/run") return {200, kJson, now->run_json, {}};
  if (path == "/api/notes")
    return {200, kJson, run.notes() ? run.notes()->json(timeline->origin_ns()) : RunNotes().json(0), {}};
  if (path == "/api/answers") return {200, kJson, run.answers().list_json(), {}};
  if (pipeline) {
    const std::string_view which = query->text("run");
    if (which.empty()) return made_answer(pipeline->answer(*now->pipeline, *query), pipeline->type);
    if (which != "other") return error_answer(400, "run is \"other\", or left out", "");
    const Result<RunAnswers::OtherPipeline> other = run.answers().other_pipeline();
    if (!other) return refused_answer(other.error());
    if (!other->view) return {other->wait.status, kJson, other->wait.body, {}};
    return made_answer(pipeline->answer(*other->view, *query), pipeline->type);
  }
  if (long_route) return long_answer(run.answers(), *long_route, *query);
  if (path == "/api/histogram") {
    Result<HistogramAnswer> made = histogram_answer(*timeline, *query);
    if (!made) return refused_answer(made.error());
    return {200, made->is_binary ? kBinary : kJson, std::move(made->body), {}};
  }
  return route ? made_answer(route->answer(*timeline, *query), route->type)
               : made_answer(run.perfetto_bytes(), kBinary);
}

ApiAnswer api_take(const ViewRun& run, std::string_view target, std::string_view body) {
  const Result<Query> query = parse_target(target);
  if (!query || query->path != "/api/notes") return error_answer(405, "only /api/notes takes a body", "");
  const Timeline* timeline = run.timeline();
  if (!timeline || !run.notes())
    return error_answer(503, "the run is still being read", "/api/status says how far it is");
  if (const Status taken = run.notes()->take(body, timeline->origin_ns()); !taken) return refused_answer(taken.error());
  return {200, kJson, run.notes()->json(timeline->origin_ns()), {}};
}

}  // namespace stageline
