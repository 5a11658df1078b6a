// Notes on a run: times with a word each, kept in a file beside it, so that whoever opens the run next finds them, and
// a report has them.
//
//   {"format": "stageline notes 1", "notes": [{"at_ns": 1760000000123456789, "text": "checkpoint begins"}]}
//
// In the file times are the run's own; a page counts from the run's first moment.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

// Where a run's notes stand: beside the first of `paths`. "" of runs that are no files: a pipe, an address.
std::string notes_path(const std::vector<std::string>& paths);

class RunNotes {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20, kMostNotes = 2'000, kMostText = 1'000;
  using Keep = std::function<Status(const std::string& path, const std::string& bytes)>;

  // Reads the file where there is one. `path` "" or no `keep`: notes are told, and not kept.
  explicit RunNotes(std::string path = {}, Keep keep = {});

  // {"notes": [{t, text}], file, keeps, why_not}; `origin_ns`: the page's 0. `file`: where they are kept; "" in a
  // report, which keeps none and goes to other machines. `why_not`: "no-file", "read-only" (its folder), "unreadable"
  // (what stands there is no file of notes, and is left alone); "". Any thread.
  std::string json(int64_t origin_ns) const;
  // Takes {"notes": [{t, text}]} in the place of all there were, and writes the file. Errors: kUsage for what is none
  // of that, kLimit, kUnavailable where notes are not kept, those of `keep`. Any thread.
  Status take(std::string_view body, int64_t origin_ns);

 private:
  struct Note {
    int64_t at_ns = 0;
    std::string text;
  };
  std::string path_, why_not_;
  Keep keep_;
  mutable std::mutex mutex_;
  std::vector<Note> notes_;
};

}  // namespace stageline
