// The contents of what AMD's profilers wrote for one process or machine, whichever form it has: an SQLite database
// (database.h), tables (tables.h) or JSON (tool_json.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "model/trace.h"
#include "readers/common/relate_slices.h"

namespace stageline::rocpd {

struct ProcessPart {
  Part part;  // with ids of `names`; times count from the machine's start, or are the file's own (.rpd)
  FileNames names;
  Diagnostics notes;
  int64_t pid = 0, device_rows = 0, host_rows = 0, first_device = -1;
  int64_t stated_rank = -1;  // from RANK or the like in the process's environment
};

struct Record {
  std::string path, written_by;        // the file, or the first of several; and "rocprofiler-sdk, rocpd schema 3.0.0"
  std::vector<ProcessPart> processes;  // those with device work; if none has any, all with calls
  int64_t left_out_processes = 0;
  Diagnostics notes;
};

}  // namespace stageline::rocpd
