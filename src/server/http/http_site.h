// An HTTP server has this content. The server handles addresses, limits and bytes; the functions here handle runs
// (page/routes.h). Every function may be called on any thread.
#pragma once

#include <atomic>
#include <mutex>

#include "server/http/api_answer.h"

namespace stageline {

// Files that are dropped on the start page. Files from the browser are written below one folder, which is removed when
// the program ends. A drop has a number and contains files with their own names ("machine0/workerlog.1"); a name never
// leads out of its drop. A drop has at most kMaxFiles files, and all drops together at most kMaxBytes bytes.
class DropBox {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{16} << 30;
  static constexpr size_t kMaxFiles = 20'000, kMaxDrops = 10'000;

  // `folder` must exist and be writable. "": no files are taken.
  explicit DropBox(std::string folder) : folder_(std::move(folder)) {}
  bool takes() const { return !folder_.empty(); }

  struct Place {
    int64_t drop = 0;
    std::string path;  // of a file that does not exist yet
  };
  // Where a file of this name is to be written: in a new drop (0) or in an earlier one. Folders on the way are made.
  // Errors: kUnavailable where no files are taken, kUsage for an improper name, kLimit, kIo.
  Result<Place> place(int64_t drop, std::string_view name);
  // Reserves bytes that are about to be written; false where they do not fit. give_back() returns what is not written
  // after all.
  bool take_bytes(uint64_t bytes);
  void give_back(uint64_t bytes) { bytes_ -= bytes; }
  // The path of what was dropped at once: its one file or folder, or the folder that contains all. Errors: kNotFound.
  Result<std::string> path_of(int64_t drop) const;
  // Returns the name of a drop for people: the first part of its first file's name. "" for an empty one.
  std::string name_of(int64_t drop) const;

 private:
  struct Drop {
    std::string first_name;
    size_t files = 0;
    bool several = false;  // it has files that do not begin with the first part of first_name
  };
  std::string folder_of(int64_t drop) const { return folder_ + "/drop-" + std::to_string(drop); }

  std::string folder_;
  mutable std::mutex mutex_;
  std::map<int64_t, Drop> drops_;
  std::atomic<uint64_t> bytes_{0};
};

// A part with addresses of its own: one run, or the start page on which runs are opened.
struct HttpPart {
  std::function<ApiAnswer(std::string_view target)> answer;  // to GET and HEAD
  // To PUT /api/notes. Empty: this part takes no notes.
  std::function<ApiAnswer(std::string_view target, std::string_view body)> take;
  // The data of /api/events, and whether it will not change any more. Empty: there are no events.
  std::function<std::string()> status;
  std::function<bool()> settled;
};

struct HttpSite {
  // The part that a target names; what names it ("/runs/3") is removed from the target.
  std::function<std::shared_ptr<const HttpPart>(std::string& target)> part_of;
  DropBox* drops = nullptr;   // takes the files of PUT /api/drop; nullptr: none are taken
  size_t max_body_bytes = 0;  // of PUT /api/notes
};

// Where and within which bounds the viewer's server answers.
inline constexpr uint16_t kDefaultPort = 8765;
inline constexpr size_t kMaxConnections = 1000;

struct ServeOptions {
  std::string host;   // "": the loopback of IPv4 and, where it exists, of IPv6; otherwise an address or a name
  int32_t port = -1;  // −1: kDefaultPort or the next free one; 0: any free one
  bool token = true;  // the address contains a secret; false only on the loopback
  int64_t request_seconds = 20;  // seconds in which a request must arrive, and after which an idle connection is closed
  int64_t answer_seconds = 60;   // seconds in which an answer must be read, and one second more for each MB
};

}  // namespace stageline
