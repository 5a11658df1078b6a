#include "server/api.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdlib.h>
#include <unistd.h>

#include "base/input.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/filter_run.h"
#include "engine/one_clock.h"
#include "model/event_text.h"
#include "server/counters.h"
#include "server/flows.h"
#include "server/histogram.h"
#include "server/name_search.h"
#include "server/pipeline_view.h"
#include "server/pipeline_what_if.h"
#include "server/query.h"
#include "server/run_json.h"
#include "server/selection.h"
#include "server/slice_details.h"
#include "server/slice_window.h"
#include "server/tiles.h"
#include "server/viewer_bundle.h"

namespace stageline {
namespace {

// Scripts and styles come from files of ours only: the page sets styles through the CSSOM, which needs no exception.
constexpr std::string_view kPage =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>Stageline</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/viewer.css\">\n"
    "</head>\n<body>\n<div id=\"app\"></div>\n<noscript>The timeline needs JavaScript. 时间线需要启用 JavaScript。"
    "</noscript>\n<script src=\"/viewer.js\"></script>\n</body>\n</html>\n";

constexpr size_t kMostExportBytes = size_t{2} << 30;  // more is for stageline export
constexpr const char* kBinary = "application/octet-stream";
constexpr const char* kJson = "application/json; charset=utf-8";

using Answer = Result<std::string> (*)(const Timeline& timeline, const Query& query);
struct Route {
  std::string_view path;
  Answer answer;
  const char* type;
};
constexpr Route kRoutes[] = {
    {"/api/tiles", tiles_answer, kBinary},
    {"/api/slices", slices_answer, kBinary},
    {"/api/slice", slice_answer, kJson},
    {"/api/select", select_answer, kJson},
    {"/api/search", search_answer, kJson},
    {"/api/find", find_answer, kJson},
    {"/api/flows", flows_answer, kBinary},
    {"/api/counter", counter_answer, kBinary},
    {"/api/pipeline", pipeline_answer, kBinary},
    {"/api/pipeline/tables", pipeline_tables_answer, kJson},
    {"/api/pipeline/fixes", pipeline_fixes_answer, kJson},
    {"/api/pipeline/what-if", pipeline_what_if_answer, kBinary},
};

// Reading needs as much again as it keeps; the program holds on to what it freed, and a server lives long.
void return_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return 400;
    case ErrorCode::kLimit: return 413;
    case ErrorCode::kNotFound:
    case ErrorCode::kUnavailable: return 404;
    default: return 500;
  }
}

ApiAnswer refused(const Error& error) { return error_answer(status_of(error.code), error.what, error.hint); }

ApiAnswer asset(std::string_view text, const char* type, std::string_view hash) {
  ApiAnswer answer;
  answer.type = type;
  answer.body = text;
  answer.etag = "\"" + std::string(hash) + "\"";
  return answer;
}

}  // namespace

void ViewRun::set_trace(Trace trace) {
  preparing_ = true;
  // For good: exporting must not move parts under the timeline.
  if (trace.cells.size() > 0) {
    drop_other_ranks(trace);
  } else if (!trace.slice_filter.ranks.empty()) {
    filter_trace(trace, trace.slice_filter.ranks, INT64_MIN, INT64_MAX);
  }
  draw_on_one_clock(trace);
  timeline_ = std::make_unique<Timeline>(std::move(trace));
  run_json_ = stageline::run_json(*timeline_, title_, paths_);
  return_freed_memory();
  ready_.store(true, std::memory_order_release);
}

Result<std::string> ViewRun::perfetto_bytes() const {
  const std::lock_guard lock(export_mutex_);
  const Trace& trace = timeline_->trace();
  if (trace.cells.size() == 0 && trace.parts.size() == 1 && trace.parts[0].files.size() == 1) {
    // Chrome's JSON is a format of Perfetto's: the file that was read is the best there is.
    const SourceRef& file = trace.parts[0].files[0];
    if (Status s = check_unchanged(file); !s) return std::move(s).error();
    return read_all(file.path, kMostExportBytes);
  }
  const char* folder = getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/stageline-view-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return Error{ErrorCode::kIo, "no temporary file can be made", {path}, "TMPDIR names another folder"};
  close(fd);
  ExportOptions options;
  options.title = title_;
  const Status written = export_trace(timeline_->trace_to_export(), path, "perfetto", options);
  Result<std::string> bytes = written ? read_all(path, kMostExportBytes) : Result<std::string>(written.error());
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
  JsonWriter json;
  json.begin_object();
  json.field("state", failed ? "failed" : ready ? "ready" : preparing_.load() ? "preparing" : "reading");
  json.field("title", valid_utf8(title_));
  json.field("bytes_read", progress_.done_bytes()).field("bytes_total", progress_.expected_bytes());
  json.field("events", ready ? static_cast<int64_t>(timeline_->slice_count()) : progress_.events());
  json.field("message", "");
  if (failed) json.field("error", error_what_).field("hint", error_hint_);
  json.end_object();
  return json.take();
}

ApiAnswer error_answer(int status, std::string_view what, std::string_view hint) {
  JsonWriter json;
  json.begin_object().field("error", what).field("hint", hint).end_object();
  ApiAnswer answer;
  answer.status = status;
  answer.body = json.take();
  return answer;
}

ApiAnswer api_answer(const ViewRun& run, std::string_view target) {
  const Result<Query> query = parse_target(target);
  if (!query) return error_answer(400, query.error().what, query.error().hint);
  const std::string& path = query->path;
  if (path == "/") return {200, "text/html; charset=utf-8", std::string(kPage), {}};
  if (path == "/viewer.js") return asset(web_viewer_js(), "text/javascript; charset=utf-8", web_viewer_js_hash());
  if (path == "/viewer.css") return asset(web_viewer_css(), "text/css; charset=utf-8", web_viewer_css_hash());
  if (path == "/api/status") return {200, kJson, run.status_json(), {}};
  const Route* route = nullptr;
  for (const Route& known : kRoutes)
    if (known.path == path) route = &known;
  if (!route && path != "/api/run" && path != "/api/histogram" && path != "/api/perfetto")
    return error_answer(404, "there is nothing at this path", "docs/viewer-protocol.md lists the paths");
  const Timeline* timeline = run.timeline();
  if (!timeline) return error_answer(503, "the run is still being read", "/api/status says how far it is");
  if (path == "/api/run") return {200, kJson, run.run_json(), {}};
  if (path == "/api/histogram") {
    Result<HistogramAnswer> made = histogram_answer(*timeline, *query);
    if (!made) return refused(made.error());
    return {200, made->is_binary ? kBinary : kJson, std::move(made->body), {}};
  }
  Result<std::string> body = route ? route->answer(*timeline, *query) : run.perfetto_bytes();
  if (!body) return refused(body.error());
  return {200, route ? route->type : kBinary, std::move(*body), {}};
}

}  // namespace stageline
