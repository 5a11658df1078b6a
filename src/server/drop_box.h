// Files that are dropped on the start page: what a browser sends is written below one folder, which is removed when the
// program ends. A drop is a number and files with names of their own ("machine0/workerlog.1"); a name never leads out
// of the drop. Bounds: kMostFiles of a drop, kMostBytes of all together.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

class DropBox {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{16} << 30;
  static constexpr size_t kMostFiles = 20'000, kMostDrops = 10'000;

  // `folder` is there, and may be written to. "": nothing is taken.
  explicit DropBox(std::string folder) : folder_(std::move(folder)) {}
  bool takes() const { return !folder_.empty(); }

  struct Place {
    int64_t drop = 0;
    std::string path;  // of a file that is not there yet
  };
  // Where a file of this name is to be written: into a new drop (0) or one of before, folders on its way are made.
  // Errors: kUnavailable where nothing is taken, kUsage for a name that is none, kLimit, kIo.
  Result<Place> place(int64_t drop, std::string_view name);
  // Bytes that are about to be written. false: they are more than fit; give_back() what is not written after all.
  bool take_bytes(uint64_t bytes);
  void give_back(uint64_t bytes) { bytes_ -= bytes; }
  // What was dropped at once: its one file or folder, or the folder that holds them. Errors: kNotFound.
  Result<std::string> path_of(int64_t drop) const;
  // What people call it: the first part of its first file's name. "" for none.
  std::string name_of(int64_t drop) const;

 private:
  struct Drop {
    std::string first_name;
    size_t files = 0;
    bool several = false;  // beside what first_name begins with
  };
  std::string folder_of(int64_t drop) const { return folder_ + "/drop-" + std::to_string(drop); }

  std::string folder_;
  mutable std::mutex mutex_;
  std::map<int64_t, Drop> drops_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace stageline
