// Which files of a source are worker logs, and of which machine and device.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "readers/reader.h"

namespace stageline {

struct WorkerLog {
  std::string path;
  std::string machine_name;  // folder it was found in; "" at the root
  int32_t machine = 0;       // index in natural order of the folders
  int64_t size_bytes = 0;    // as it lies on disk
  int32_t device = 0;        // N of workerlog.N: the process index inside the machine, not a GPU id
  int32_t rank = 0;          // machines count on; missing logs keep their numbers, unless the numbers are wild
};

// workerlog.N (also .gz, .zst) at the root or in folders (machine0/workerlog.3); files that the
// user named himself are taken whatever their name, numbered in order. Natural order: machine2
// before machine10. `devices` keeps only those numbers.
std::vector<WorkerLog> find_worker_logs(const Source& source, const std::vector<int32_t>& devices,
                                        Diagnostics& diagnostics);

// Counts gaps in the numbers of the logs that parts were read from ("paddle.missing_rank").
void say_missing_logs(const std::vector<Part>& parts, Diagnostics& diagnostics);

// N of "workerlog.N"; -1 for any other name.
int32_t worker_log_number(std::string_view file_name);

}  // namespace stageline
