// Notes on a run: times with a text each, kept in a file next to the run. So the next user who opens the run finds
// them, and reports contain them.
//
//   {"format": "stageline notes 1", "notes": [{"at_ns": 1760000000123456789, "text": "checkpoint begins"}]}
//
// In the file, times are the run's own timestamps; a page counts from the run's first moment.
#pragma once

#include <mutex>

#include "base/vocabulary.h"

namespace stageline {

// Returns the path of a run's notes: next to the first of `paths`. "" for runs without a file (a pipe, an address).
std::string notes_path(const std::vector<std::string>& paths);

class RunNotes {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20, kMaxNotes = 2'000, kMaxText = 1'000;
  // Replaces the bytes of the file, if they still are `before` ("" where there is no file). Returns the bytes that are
  // there instead when another viewer wrote meanwhile, and nothing when they were replaced.
  using Keep = std::function<Result<std::optional<std::string>>(const std::string& path, const std::string& before,
                                                                const std::string& bytes)>;

  // Reads the file where there is one. With `path` "" or without `keep`, notes are shown but not kept.
  explicit RunNotes(std::string path = {}, Keep keep = {});

  // {"notes": [{t, text}], file, keeps, why_not}. `origin_ns` is the page's 0. `file` is where notes are kept, and ""
  // in a report, which keeps none and is passed on to other machines. `why_not` is "no-file", "read-only" (the folder),
  // "unreadable" (the file there has no notes in it and is left alone), or "". Any thread.
  std::string json(int64_t origin_ns) const;
  // Replaces all notes by those in {"notes": [{t, text}]} and writes the file. Notes that another viewer of the run
  // added or removed meanwhile stay so. Errors: kUsage for another form, kLimit, kUnavailable where notes are not kept,
  // those of `keep`. Any thread.
  Status take(std::string_view body, int64_t origin_ns);

 private:
  struct Note {
    int64_t at_ns = 0;
    std::string text;
    bool operator==(const Note&) const = default;
  };
  static std::optional<std::vector<Note>> notes_in(const std::string& bytes, const std::string& path);
  static std::string file_of(const std::vector<Note>& notes);
  std::string path_, why_not_;
  Keep keep_;
  mutable std::mutex mutex_;
  std::vector<Note> notes_;
  std::string bytes_;  // of the file, as far as this viewer knows
};

}  // namespace stageline
