// The content of `stageline view` without a run: a start page, and the runs that are opened on it. Runs are below the
// folders that may be read (a page elsewhere, or a mistyped path, reaches nothing else), or are dropped on the page.
//
//   /                        the start page          /api/browse?path=   a folder's files
//   /runs/3/…                run 3, as the paths of  /api/look?path=     which format a path is of
//                            a server of one run     /api/open?path=…    a run's number
//   PUT /api/drop?name=…     a file's bytes          /api/trend?path=…   what steps took, run after run
//
// Two runs are read at a time. kMaxKept runs stay in memory. When another one is opened, the least recently used one is
// released, and it is read again when its page asks for it.
#pragma once

#include "server/http/http_site.h"
#include "server/page/view_run.h"

namespace stageline {

class RunShelf {
 public:
  static constexpr size_t kMaxKept = 6, kMaxRuns = 10'000;
  using Paths = std::vector<std::string>;
  struct Options {
    std::vector<std::string> roots;                              // real paths of folders
    std::string drops;                                           // the folder for dropped files; "": none are taken
    std::function<void(ViewRun& run, const Paths& paths)> read;  // fills the run, or says why not
    std::function<RunAnswers::Read(const Paths& paths)> reader_of_second;  // reads a run to compare with
    Planner planner;
  };
  explicit RunShelf(Options options);
  RunShelf(const RunShelf&) = delete;
  RunShelf& operator=(const RunShelf&) = delete;

  // Removes "/runs/N" from a target that begins with it and returns that run, which stays as long as it is held.
  // nullptr: the target belongs to the shelf. Any thread.
  std::shared_ptr<const ViewRun> take_run(std::string& target);
  DropBox& drops() { return drops_; }
  const Planner& planner() const { return options_.planner; }

  // The answers to /api/status, browse, look, open and trend (routes.cc).
  std::string status_json() const;
  Result<std::string> browse(const Query& query) const;
  Result<std::string> look(const Query& query) const;
  Result<std::string> open(const Query& query);
  Result<ApiAnswer> trend(const Query& query);
  bool busy() const;  // something is being read or answered, and destroying this waits for it

 private:
  struct Entry {
    Paths paths, others;
    std::string title, other_title;
    Paths shown, others_shown;  // how pages call the paths: for a drop, by the names that its files had
    std::shared_ptr<ViewRun> run;
    uint64_t used = 0;
  };
  // A path that the page has named.
  struct Named {
    std::string path, shown;
  };

  Result<std::string> allowed(const std::string& path, size_t max_entries) const;
  Result<std::vector<Named>> named(const Query& query, std::string_view path, std::string_view drop) const;
  void start(Entry& entry);
  void forget_some();

  Options options_;
  DropBox drops_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // run N is entries_[N − 1]
  uint64_t uses_ = 0;
  AnswerDesk desk_;  // reads runs and makes trends. Declared last: its threads end before what they use is destroyed
};

}  // namespace stageline
