// Scans one Paddle workerlog for the lines of the job profiler. Knows the line, nothing of traces:
// both the reader and the drop-in converter stand on it.
//
// A job line, wherever it stands in a physical line (glog prefix, progress bar and other text may
// precede it; several may share a line):
//
//   Profiler Info: Job (<id>), type = <type>, micro_batch_id = <mb>, job_start_time = <ms>, job_end_time = <ms>
//
// Source of the definition: Paddle's standalone_executor.cc prints it, profiler_helper_static.py
// reads it; docs/formats/paddle-log.md has every form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"

namespace stageline {

enum PaddleJobFlag : uint8_t {
  kJobChunkForm = 1,      // "forward(chunk0)": Paddle's own script cannot see it
  kJobZero = 2,           // both times 0.000000: the sub-program had no compute op
  kJobNegative = 4,       // ends before it starts
  kJobCut = 8,            // the end time was cut off (killed process, full disk)
  kJobDecimalComma = 16,  // a time written "123,456": Paddle's own script raises on it
  kJobBadNumber = 32,     // a time that only Paddle's regular expression takes for one ("12 34")
  kJobRepeated = 64,      // the reader's own: the same job stands in the log before
};

struct PaddleJob {
  double start_us, end_us;   // float(text) * 1000, as Paddle's script computes them
  int64_t start_ns, end_ns;  // exact
  uint32_t id;               // the number in "Job (…)": the micro-batch again in released builds
  uint32_t micro_batch;
  uint16_t type;  // index into PaddleLog::types
  uint8_t flags;  // PaddleJobFlag
};

struct PaddleFlaw {
  int64_t count = 0;
  int64_t first_offset = -1;  // decompressed byte
  void add(int64_t offset) {
    if (count++ == 0) first_offset = offset;
  }
};

struct PaddleLog {
  std::string path;
  std::vector<PaddleJob> jobs;     // file order
  std::vector<std::string> types;  // distinct type texts, in order of appearance
  int64_t start_step = -1;         // from the first "Schedule Profiler start at step N"; -1: no such line
  int64_t bytes = 0;               // decompressed
  PaddleFlaw damaged;              // "Profiler Info: Job (" that is not followed by a whole record
  PaddleFlaw zero, negative, cut, decimal_comma, bad_number, chunk_form;
  PaddleFlaw bad_utf8;  // windows with invalid UTF-8
  Error read_error;     // what() empty when the file could be read to its end
};

// Limits: kMaxPaddleTypes distinct types per file, times up to kMaxPaddleTimeNs (the year 2096), so that
// sums and differences of times fit; lines beyond count as damaged.
inline constexpr size_t kMaxPaddleTypes = 4096;
inline constexpr int64_t kMaxPaddleTimeNs = 4'000'000'000'000'000'000;

// Errors: kNotFound, kIo when nothing can be read. A file that fails midway gives what came before,
// with read_error set. O(bytes), memory O(jobs).
Result<PaddleLog> scan_paddle_log(const std::string& path, Progress* progress = nullptr);

// Scans text that is in memory: `log` grows. `at_end` says whether the text ends the file.
void scan_paddle_text(PaddleLog& log, std::string_view text, int64_t offset, bool at_end);

// Adds what the scan survived to `diagnostics`, with line numbers (one more pass over the file up
// to the first flaw of each kind, only when there is one).
void report_paddle_flaws(const PaddleLog& log, Diagnostics& diagnostics);

}  // namespace stageline
