// Reads one file of Chrome-trace JSON into rows and top-level members.
#pragma once

#include <chrono>
#include <mutex>

#include "readers/common/relate_slices.h"
#include "readers/common/rows/file_rows.h"
#include "readers/common/rows/identity.h"
#include "readers/reader.h"

namespace stageline::kineto {

using SeeRows = std::function<void(const rows::FileRows&)>;
// Returns the recordings of a file: merged files have several, one after another. Files whose processes have labels
// ("[TP00] 4711") are one.
//
// Reads `path` in windows, and `workers` stretches of a window at once. Memory: the rows, and a few MiB for each
// worker. `so_far` (may be empty) is shown the rows after each window. Errors: kNotFound, kIo; kBadInput when the file
// holds no events.
Result<std::vector<rows::FileRows>> read_file(const std::string& path, size_t workers, Progress* progress,
                                              const SeeRows& so_far = {});

// Finds which files are Chrome traces, and which of those are PyTorch profiler traces by their own words.
// `head` is the first bytes of the file. kCertain: it has Kineto's own words; kMaybe: it is any other Chrome trace.
Match sniff_head(std::string_view head);
inline constexpr size_t kMaxPreambleBytes = size_t{16} << 20;
// Does the same for a file. It looks further when the head ends before the first event (after long lists of devices,
// settings or log lines), at most kMaxPreambleBytes bytes.
Match sniff_file(const Source& source, size_t file);

// Shows a run before it has been read completely: slices with their names and classes. They are copied from the rows of
// a file that is half read, or from the files that are finished.

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

// Lays execution traces (torch.profiler.ExecutionTraceObserver; Chakra's JSON) over the profile of the same run. They
// are graphs of operators and tensors without times.
//
//   node  attr rf_id 10  ──  event  args "Record function id" 10   (older Kineto: "External id")
bool looks_like_execution_trace(std::string_view head);

// Fills Part::graph_nodes of the ranks that the traces belong to. Trace and rank are paired by the rank in the trace's
// name; a single trace belongs to a single rank. A trace whose names differ from the profile's comes from another run
// and is left out; the trace's diagnostics report all of this. Each paired profile is read once more.
void lay_over(const std::vector<std::string>& paths, Trace& trace);

}  // namespace stageline::kineto
