// Finds the worker logs of a source, and the machine and device of each.
#pragma once

#include "readers/reader.h"

namespace stageline {

struct WorkerLog {
  std::string path;
  std::string machine_name;  // the folder it was found in; "" at the root
  int32_t machine = 0;       // index of the folder in natural order
  int64_t size_bytes = 0;    // size on disk
  int32_t device = 0;        // N of workerlog.N, which is the process index within the machine and not a GPU id
  int32_t rank = 0;          // counts on over machines; missing logs keep their numbers unless the numbers are wild
};

// Takes workerlog.N (also .gz, .zst) at the root or in folders (machine0/workerlog.3), in natural order (machine2
// before machine10). Files that the user named himself are taken whatever their name, and numbered in order. `devices`
// keeps only those numbers.
std::vector<WorkerLog> find_worker_logs(const Source& source, const std::vector<int32_t>& devices,
                                        Diagnostics& diagnostics);

// Reports gaps in the numbers of the logs that parts were read from ("paddle.missing_rank").
void report_missing_logs(const std::vector<Part>& parts, Diagnostics& diagnostics);

// Lines that Paddle's profilers print: jobs of the static graph, or details of the dynamic graph's pipeline.
inline constexpr std::string_view kProfilerJob = "Profiler Info: Job (";
inline constexpr std::string_view kPipelineDetails = "[Pipeline details] ";
enum class WorkerLines : uint8_t { kNone, kJobs, kDetails };
// Returns which of these a log has first; the first may come late.
WorkerLines first_lines(const std::string& path);
// Returns the same of a source's first worker logs, or of files that the user named; kNone after eight without any.
WorkerLines first_worker_lines(const Source& source);

// Returns N of "workerlog.N"; −1 for any other name.
int32_t worker_log_number(std::string_view file_name);

}  // namespace stageline
