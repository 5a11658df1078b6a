// What of a run can be looked at before it is read: slices with their names and classes, copied out of the rows of a
// file that is half read, or of the files that are through.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "readers/common/relate_slices.h"
#include "readers/common/rows/file_rows.h"
#include "readers/common/rows/identity.h"
#include "readers/reader.h"

namespace stageline::kineto {

// When to hand something over: first after a moment, then each time reading has taken three times as long, so that
// copies cost a part of the reading and no more; and not once most is read.
class EarlyShow {
 public:
  EarlyShow(const EarlyTrace& take, int64_t after_ms, const Progress* progress)
      : take_(take), progress_(progress), next_(after_ms) {}

  // The rows of the only file. From the thread that appends to them.
  void offer_rows(const FileRows& rows);

  struct Done {
    const Part* part;
    const FileNames* names;
    const FileFacts* facts;
  };
  // A file that is through; stays as it is until the last one is. From any thread.
  void offer_file(Done file);

 private:
  bool is_due();

  const EarlyTrace& take_;  // may be empty: nothing is wanted
  const Progress* progress_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds next_;
  std::mutex files_mutex_, showing_mutex_;
  std::vector<Done> files_;
};

}  // namespace stageline::kineto
