#include "server/page/view_run.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/freed_memory.h"
#include "base/input.h"
#include "engine/engine.h"
#include "profile/event_text.h"
#include "server/page/answer_json.h"

namespace stageline {
namespace {

constexpr size_t kMaxExportBytes = size_t{2} << 30;  // larger files are made by `stageline export`

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
  if (other_read_) answers_->set_other(other_title_, other_paths_, other_read_);
  publish(made);
  // Reading needs as much memory again as it keeps. A server lives long, so that is given back: at once, or, for a run
  // with cells, after the first answer to the pipeline page (AnswerDesk). That answer needs as much, and the kernel
  // would have to clear every page for it.
  if (made->trace.cells.size() == 0) return_freed_memory();
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
  if (is_whole)
    made->pipeline = std::make_shared<PipelineView>(*made->drawn->run(), made->timeline.get(), kMaxPipelineCells,
                                                    kMaxCellsOfMany, planner_.bytes);
  RunState state{made->trace.diagnostics, made->revision, is_whole};
  state.places = places_;
  state.other = other_title_;
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
    return make_error(ErrorCode::kUnavailable, "this run has neither cells nor slices to draw");
  if (trace.cells.size() == 0 && trace.parts.size() == 1 && trace.parts[0].files.size() == 1) {
    // Perfetto reads Chrome's JSON, so the file that was read is the best that there is.
    const SourceRef& file = trace.parts[0].files[0];
    TRY_OK(check_unchanged(file));
    return read_all(file.path, kMaxExportBytes);
  }
  std::string path = temporary_path("stageline-view-XXXXXX");
  const int fd = mkstemp(path.data());
  if (fd < 0) return make_error(ErrorCode::kIo, "no temporary file can be made", "TMPDIR names another folder", {path});
  close(fd);
  ExportOptions options{.title = title_};
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

}  // namespace stageline
