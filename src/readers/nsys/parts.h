// Converts one report: its processes become parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "model/trace.h"
#include "readers/common/relate_slices.h"

namespace stageline::nsys {

// One process of a report.
struct ProcessPart {
  Part part;  // times since the epoch, where the report says when it began; ids of `names`
  FileNames names;
  Diagnostics notes;
  int64_t pid = 0;
  int64_t device_rows = 0, host_rows = 0;
  int64_t first_device = -1;                              // lowest CUDA ordinal it worked on
  int64_t communicator_rank = -1, communicator_size = 0;  // of the widest NCCL communicator it initialised
  int64_t mpi_rank = -1;
};

struct Report {
  std::string path, host, version;
  std::vector<ProcessPart> processes;  // those with device work; where none has any, all with ranges or calls
  int64_t utc_ns = 0, system_ns = -1;  // of the session's start; system_ns −1: not recorded
  bool is_normalized = false;          // times count from the epoch already
  int64_t left_out_processes = 0, left_out_rows = 0;
  Diagnostics notes;
};

}  // namespace stageline::nsys
