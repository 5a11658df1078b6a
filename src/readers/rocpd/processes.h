// The contents of what AMD's profilers wrote for one process or machine, whichever form it has: an SQLite database
// (database.cc), tables (tables.cc) or JSON (tool_json.cc).
#pragma once

#include "base/progress.h"
#include "readers/common/launched_work.h"
#include "readers/common/row_kinds.h"

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

// The processes of a record of AMD's profilers while it is being read. Calls, device work, allocations and counters
// come in any order; finish() joins and links them. Times are nanoseconds as in the file; a negative one is not a time.

// Renames copies: "MEMORY_COPY_HOST_TO_DEVICE" and "CopyHostToDevice" → "Memcpy HtoD". Other names are not changed.
std::string copy_name(std::string_view name);
// Parses "0x00007ffb26354000"; without 0x the number is decimal.
std::optional<uint64_t> parse_address(std::string_view text);

class Processes {
 public:
  struct Process {
    explicit Process(const std::string& path) : out(path, gpu_rows::kKinds, "rocpd") {}
    PartBuilder out;
    int64_t pid = 0, device_rows = 0, host_rows = 0, first_device = -1, stated_rank = -1;
    std::string host;
    LaunchedWork launched;
    std::map<int64_t, int64_t> size_at;  // address → bytes of what is allocated, since frees do not say how much
    std::map<int64_t, std::string> device_name;  // by the device's number
    std::set<int64_t> communicator_sizes;        // of RCCL; 0: unknown
  };

  explicit Processes(std::string path) : path_(std::move(path)) {}

  // Returns the process with this number, made if it is new; `pid` is the operating system's. nullptr when there are
  // too many.
  Process* of(int64_t id, int64_t pid);
  bool empty() const { return all_.empty(); }
  Process* first() { return empty() ? nullptr : all_.begin()->second.get(); }
  // For merged files: from here on, numbers of processes and launches have another meaning.
  void begin_next();
  Process* last_of_these();  // nullptr when none was made since begin_next()

  // Adds a call of the host. `category` is "HIP_RUNTIME_API", "HSA_CORE_API", "MARKER_CORE_API", "RCCL_API", …; for a
  // marker `name` is its message. Device work names the `launch` that made it; 0 means none. Returns kNoRow when the
  // row cannot be.
  uint32_t add_call(Process& p, std::string_view category, int64_t thread, int64_t start, int64_t end,
                    std::string_view name, int64_t launch);
  // Adds device work. `kind` is kKernel, kMemcpy, kMemset or kSync; `bytes` is a copy's, −1 when not known.
  uint32_t add_work(Process& p, gpu_rows::Kind kind, int64_t device, int64_t stream, int64_t start, int64_t end,
                    std::string_view name, int64_t launch, int64_t bytes = -1);
  // Work items of a group and of the grid. Other profilers count the grid in blocks, and so do the facts made of this.
  struct Shape {
    int64_t group[3] = {1, 1, 1}, items[3] = {1, 1, 1};
    bool known = false;
    int64_t registers = -1, shared_bytes = -1;
  };
  static void describe_kernel(Process& p, uint32_t row, const Shape& shape);
  // Reads ncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream); arguments have RCCL's names.
  static void describe_collective(Process& p, uint32_t row, std::string_view name,
                                  std::map<std::string, std::string>& arguments);
  // Adds an allocation; with `bytes` ≤ 0, what is at the address is freed.
  static void add_allocation(Process& p, int64_t at, int64_t address, int64_t bytes, int64_t device);

  // Links everything, draws ranges on the devices, and moves what is kept to `out`. Afterwards there are no processes
  // here.
  void finish(Record& out);

 private:
  uint32_t number_of(int64_t launch);
  static void settle_sizes(Process& p);

  std::string path_;
  int generation_ = 0;
  std::map<std::pair<int, int64_t>, std::unique_ptr<Process>> all_;
  // Numbers of launches. The profilers' own numbers may need 64 bits, so launches get new numbers here.
  std::map<int64_t, uint32_t> numbers_;
  uint32_t last_number_ = 0;
};

}  // namespace stageline::rocpd
