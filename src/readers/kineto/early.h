// Shows a run before it has been read completely: slices with their names and classes. They are copied from the rows of
// a file that is half read, or from the files that are finished.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "readers/common/relate_slices.h"
#include "readers/common/rows/file_rows.h"
#include "readers/common/rows/identity.h"
#include "readers/reader.h"

namespace stageline::kineto {

// Decides when to show a partial trace: first after a moment, then each time when reading has taken three times as
// long. So copying costs only part of the reading time. It stops when more than half has been read.
class EarlyShow {
 public:
  EarlyShow(const EarlyTrace& take, int64_t after_ms, const Progress* progress)
      : take_(take), progress_(progress), next_(after_ms) {}

  // Offers the rows of the only file; called from the thread that appends to them.
  void offer_rows(const rows::FileRows& rows);

  struct Done {
    const Part* part;
    const FileNames* names;
    const rows::FileFacts* facts;
  };
  // Offers a finished file, which must not change until the last file is finished. May be called from any thread.
  void offer_file(Done file);

 private:
  bool is_due();

  const EarlyTrace& take_;  // may be empty: then nothing is wanted
  const Progress* progress_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds next_;
  std::mutex files_mutex_, showing_mutex_;
  std::vector<Done> files_;
};

}  // namespace stageline::kineto
