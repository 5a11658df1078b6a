// The contents of what AMD's profilers wrote for one process or machine, whichever form it has: an SQLite database
// (database.cc), tables (tables.cc) or JSON (tool_json.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
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

// Reads one database of AMD's profilers: rocpd, from rocprofv3 and rocprof-sys, or rocmProfileData's older .rpd.
// Tables, columns and what becomes of them: docs/formats/rocpd.md.
enum class Dialect : uint8_t { kNone, kRocpd, kRpd };
Dialect dialect_of(const std::string& path);

// Returns true for an SQLite file of which not even the names of tables can be read.
bool is_damaged(const std::string& path);

// Errors: those of SqliteDb::open_read; kBadInput when nothing in it could be drawn.
Result<Record> read_database(const std::string& path);

// Reads tables of rocprofv3 (--output-format csv) and of rocpd convert: PID_kernel_trace.csv and its neighbours, which
// together are one process's record. docs/formats/rocpd.md describes the columns and their use.

// The tables that are read. Sums (…_stats.csv) and counters of single dispatches are not among them.
enum class TableKind : uint8_t { kAgents, kCalls, kKernels, kCopies, kAllocations };
// Returns the kind of a table by the columns in its first line; nullopt for any other table.
std::optional<TableKind> table_kind(std::string_view head);

// Returns the stem of a path, "node0/4242_kernel_trace.csv" → "node0/4242"; tables with the same stem belong together.
std::string table_stem(std::string_view path);

struct TableFile {
  std::string path;
  TableKind kind;
};
// Reads `files`, which have the same stem. Errors: kBadInput when nothing in them could be drawn. A file that cannot be
// read to its end is noted.
Result<Record> read_tables(std::vector<TableFile> files, Progress* progress);

// Reads the JSON of rocprofv3 (--output-format json), PID_results.json. Fields and what becomes of them:
// docs/formats/rocpd.md.
bool is_tool_json(std::string_view head);

// Errors: those of Input when nothing was read; kBadInput when nothing in it could be drawn.
Result<Record> read_tool_json(const std::string& path, Progress* progress);

}  // namespace stageline::rocpd
