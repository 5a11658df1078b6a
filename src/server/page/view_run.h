// A run as the viewer serves it: nothing yet, what has been read so far, or all of it.
#pragma once

#include "server/page/run_answers.h"
#include "server/page/run_notes.h"
#include "server/pipeline/pipeline_view.h"
#include "server/timeline/timeline.h"

namespace stageline {

class LiveRun;
class WhatIf;

// Answers of the planner, which belongs to a room above this one.
struct Planner {
  // Answers /api/plan as `stageline plan` does. The times come from `run` and the measured memory from `trace`; null:
  // the times are estimated.
  std::function<Result<std::string>(const Query& query, const WhatIf* run, const Trace* trace)> plan;
  DescribeBytes bytes;
};

// The state at one moment: the run or, while it is being read, its known part.
struct ServedRun {
  Trace trace;                          // as recorded
  std::shared_ptr<const Run> recorded;  // of `trace`
  std::unique_ptr<DrawnRun> drawn;
  std::unique_ptr<Timeline> timeline;
  std::shared_ptr<const PipelineView> pipeline;  // of its timeline; only where the run is whole
  std::string run_json;                          // the answer to /api/run
  int64_t revision = 0;  // counts from 1; lanes, slices and names keep their numbers while it stays the same
  bool is_whole = false;
};

// The served state is nothing yet, a run, or the reason why there is none. One thread fills it while others answer.
class ViewRun {
 public:
  ViewRun(std::string title, std::vector<std::string> paths) : title_(std::move(title)), paths_(std::move(paths)) {}

  Progress* progress() { return &progress_; }
  // Sets how a second run is read, for comparison. Call it before set_trace().
  void set_other(std::string title, std::vector<std::string> paths, RunAnswers::Read read);
  // The run is still going on; it is read once that is over. Call it before the server listens; `live` must outlive
  // this.
  void set_live(const LiveRun* live) { live_ = live; }
  const LiveRun* live() const { return live_; }
  // The full paths of its files, for a browser to remember. Call it before set_trace() and set_early().
  void set_places(std::vector<std::string> places) { places_ = std::move(places); }
  // The notes next to the run. Call it before the server listens; without it there are none.
  void set_notes(std::unique_ptr<RunNotes> notes) { notes_ = std::move(notes); }
  RunNotes* notes() const { return notes_.get(); }
  // Without one, nothing can be planned, and no memory is respected. Call it before set_trace().
  void set_planner(Planner planner) { planner_ = std::move(planner); }
  const Planner& planner() const { return planner_; }
  // Shows what has been read so far: profiler slices with their names and classes, and no other facts about them.
  void set_early(Trace trace);
  // Makes the run ready for questions, both drawn on one clock and as recorded.
  void set_trace(Trace trace);
  void set_error(const Error& error);

  std::shared_ptr<const ServedRun> served() const;   // nullptr: nothing can be asked yet
  const Timeline* timeline() const;                  // of the whole run; nullptr before it is read
  RunAnswers& answers() const { return *answers_; }  // valid once timeline() is not nullptr
  // An answer is being made, and destroying this waits for it.
  bool busy() const { return timeline() && answers_->busy(); }
  // {"state": "reading"|"preparing"|"ready"|"failed", …}: the answer to /api/status.
  std::string status_json() const;
  // The run as a file for Perfetto; valid once timeline() is not nullptr. Errors: kUnavailable for what Perfetto's
  // exporter does not draw, kIo.
  Result<std::string> perfetto_bytes() const;
  bool failed() const { return failed_.load(); }
  bool settled() const { return ready_.load() || failed_.load(); }

 private:
  std::shared_ptr<const ServedRun> make_served(Trace trace, bool is_whole) const;
  void publish(std::shared_ptr<const ServedRun> made);

  std::string title_;
  std::vector<std::string> paths_, places_;
  const LiveRun* live_ = nullptr;
  std::unique_ptr<RunNotes> notes_;
  Planner planner_;
  Progress progress_;
  mutable std::mutex served_mutex_;
  std::shared_ptr<const ServedRun> served_;
  RunAnswers::Read other_read_;
  std::string other_title_;
  std::vector<std::string> other_paths_;
  std::unique_ptr<RunAnswers> answers_;  // after the timeline whose trace it asks
  std::string error_what_, error_hint_;
  mutable std::mutex export_mutex_;
  std::atomic<bool> preparing_{false}, ready_{false}, failed_{false};
};

}  // namespace stageline
