// Scans one Paddle workerlog for lines of the job profiler. It knows these lines and nothing of traces; both the reader
// and the drop-in converter are built on it.
//
// A job line may stand anywhere in a physical line (after a glog prefix, a progress bar or other text), and several may
// share one line:
//
//   Profiler Info: Job (<id>), type = <type>, micro_batch_id = <mb>, job_start_time = <ms>, job_end_time = <ms>.
//
// Source of the definition: Paddle's standalone_executor.cc prints the line, and profiler_helper_static.py reads it;
// docs/formats/paddle-log.md lists every form.
#pragma once

#include "base/diagnostics.h"
#include "base/progress.h"
#include "model/kind.h"

namespace stageline {

enum PaddleJobFlag : uint8_t {
  kJobChunkForm = 1,      // "forward(chunk0)", which Paddle's own script does not recognise
  kJobZero = 2,           // both times are 0.000000, since the sub-program had no compute operator
  kJobNegative = 4,       // the job ends before it starts
  kJobCut = 8,            // the end time was cut off (process killed, disk full)
  kJobDecimalComma = 16,  // a time is written "123,456", on which Paddle's own script raises an exception
  kJobBadNumber = 32,     // a time that only Paddle's regular expression accepts ("12 34")
  kJobRepeated = 64,      // set by the reader: the same job is in the log before
};

struct PaddleJob {
  double start_us, end_us;   // float(text) * 1000, as Paddle's script computes it
  int64_t start_ns, end_ns;  // exact
  uint32_t id;               // the number in "Job (…)", which in released builds is the micro-batch again
  uint32_t micro_batch;
  uint16_t type;  // index into PaddleLog::types
  uint8_t flags;  // PaddleJobFlag
};
// Returns true for jobs that can be drawn.
inline bool is_usable(const PaddleJob& job) {
  return (job.flags & (kJobZero | kJobNegative | kJobCut | kJobBadNumber | kJobRepeated)) == 0;
}

struct PaddleFlaw {
  int64_t count = 0;
  int64_t first_offset = -1;  // decompressed position of the first one
  void add(int64_t offset) {
    if (count++ == 0) first_offset = offset;
  }
};

struct PaddleLog {
  std::string path;
  std::vector<PaddleJob> jobs;     // in file order
  std::vector<std::string> types;  // distinct texts of types, in order of appearance
  int64_t start_step = -1;         // from the first "Schedule Profiler start at step N"; −1 when there is no such line
  int64_t bytes = 0;               // size decompressed
  PaddleFlaw damaged;              // "Profiler Info: Job (" that no complete record follows
  PaddleFlaw zero, negative, cut, decimal_comma, bad_number, chunk_form;
  PaddleFlaw bad_utf8;  // windows with invalid UTF-8
  Error read_error;     // what() is empty when the file could be read to its end
};

// Limits: kMaxPaddleTypes distinct types per file, and times up to kMaxPaddleTimeNs (the year 2096), so that sums and
// differences of times do not overflow. Lines beyond these count as damaged.
inline constexpr size_t kMaxPaddleTypes = 4096;
inline constexpr int64_t kMaxPaddleTimeNs = 4'000'000'000'000'000'000;

// Errors: kNotFound, kIo, when nothing can be read. A file that fails midway gives what came before, with read_error
// set. O(bytes), memory O(jobs).
Result<PaddleLog> scan_paddle_log(const std::string& path, Progress* progress = nullptr);

// Scans text in memory and appends to `log`. `at_end` says whether the text ends the file.
void scan_paddle_text(PaddleLog& log, std::string_view text, int64_t offset, bool at_end);

// Reports the flaws that the scan survived in `diagnostics`, with line numbers. Only when there are flaws does this
// read the file again, up to the first flaw of each kind.
void report_paddle_flaws(const PaddleLog& log, Diagnostics& diagnostics);

// Returns the meaning of a job type of Paddle's pipeline passes: "backward_w1_reduce" is a weight gradient of chunk 1.
struct JobType {
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;            // virtual stage on the rank, counted from 0
  bool has_micro_batch = true;  // false where the id in the line is only the default, 0
};

// Types have the forms forward[N], forward(chunkN), backward[N], backward_b[N], backward_w[N][_reduce], optimizer,
// recv_forward, send_forward, recv_backward, send_backward, lr, default. An unknown type is kOther and keeps its
// micro-batch.
JobType job_type(std::string_view text);

// Finds steps in worker logs: which jobs belong to one run of the executor, and which runs of different ranks are the
// same step.

inline constexpr int32_t kOutsideSteps = -1;

// One burst: the jobs that one run of the executor printed.
struct PaddleBurst {
  size_t begin = 0, end = 0;         // jobs [begin, end)
  int64_t start_ns = 0, end_ns = 0;  // over its usable jobs; 0 and 0 when it has none
};

struct PaddleRepeats {
  int64_t lines = 0, steps = 0;
};
// Marks jobs that are in the log twice with exactly the same times (kJobRepeated). Such a job is a line that was
// printed twice in a row, or part of a whole step that is repeated because a log was appended to itself. O(jobs).
PaddleRepeats mark_repeated_jobs(PaddleLog& log);

// Cuts a log into bursts; repeated jobs belong to none. Within one run of the executor every (type, micro-batch) occurs
// once, so the first repetition starts the next burst. This holds for every schedule, for bursts that were cut short,
// and for logs to which a second run was appended. Jobs of type `default` are runs of programs without a pipeline:
// where a log has nothing else, each is a burst; otherwise they belong to no burst. O(jobs).
std::vector<PaddleBurst> cut_bursts(const PaddleLog& log, std::vector<int32_t>& burst_of_job);

// Gives every burst of every rank the number of its step (0, 1, …; unique and increasing within a rank). Ranks with as
// many bursts as the longest rank are matched by position. A rank that lost bursts is matched with the longest one by
// time, and counted. `bursts` and the result are indexed by rank; `paths[rank]` is the rank's log.
std::vector<std::vector<int32_t>> match_steps(const std::vector<std::vector<PaddleBurst>>& bursts,
                                              const std::vector<std::string>& paths, Diagnostics& diagnostics);

}  // namespace stageline
