// One database of AMD's profilers: rocpd of rocprofv3 and rocprof-sys, or rocmProfileData's older .rpd. Tables, columns
// and what becomes of them: docs/formats/rocpd.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "model/trace.h"
#include "readers/common/relate_slices.h"

namespace stageline::rocpd {

struct ProcessPart {
  Part part;  // ids of `names`; times count from the machine's start (rocpd), or are the file's own (.rpd)
  FileNames names;
  Diagnostics notes;
  int64_t pid = 0, device_rows = 0, host_rows = 0, first_device = -1;
  int64_t said_rank = -1;  // RANK and the like in the process's environment
};

struct Database {
  std::string path, schema;            // "3.0.0"; "rpd"
  std::vector<ProcessPart> processes;  // those with device work; where none has any, all with calls
  int64_t left_out_processes = 0;
  Diagnostics notes;
};

enum class Dialect : uint8_t { kNone, kRocpd, kRpd };
Dialect dialect_of(const std::string& path);

// An SQLite file of which not even the names of its tables can be read.
bool is_damaged(const std::string& path);

// Errors: those of SqliteDb::open_read; kBadInput when nothing in it could be drawn.
Result<Database> read_database(const std::string& path);

}  // namespace stageline::rocpd
