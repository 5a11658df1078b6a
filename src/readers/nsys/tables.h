// The tables of an export as all of its readers see them: rows, texts by number, processes, stamps.
#pragma once

#include "base/sqlite_db.h"
#include "readers/common/launched_work.h"
#include "readers/common/number_map.h"
#include "readers/common/row_kinds.h"

namespace stageline::nsys {

// The number contains vm, pid and thread: these return the part above the thread, and its pieces.
inline int64_t process_of(int64_t global) { return static_cast<uint64_t>(global) >> 24; }
inline int64_t pid_of(int64_t process) { return process & 0xffffff; }
inline int64_t thread_of(int64_t global_tid) { return global_tid & 0xffffff; }

class Process {
 public:
  Process(const std::string& path, int64_t id) : out(path, gpu_rows::kKinds, "nsys"), process(id) {}

  PartBuilder out;
  const int64_t process;
  int64_t device_rows = 0, host_rows = 0, first_device = -1, nccl_kernels = 0;
  int64_t communicator_rank = -1, communicator_size = 0, mpi_rank = -1;
  LaunchedWork launched;
  NumberMap texts, call_names;  // of StringIds → of the builder; names of calls lose their versions

  struct Thread {
    uint32_t lane = 0;
    int64_t last_ns = 0;  // last timestamp seen, for ranges left open
  };
  // `name`: what the report calls the thread; "" where it says nothing.
  template <class Name> Thread& thread(int64_t global_tid, Name&& name) {
    if (last_thread_ && last_tid_ == global_tid) return *last_thread_;
    const auto [at, is_new] = threads_.try_emplace(global_tid);
    if (is_new) add_thread(global_tid, name(), at->second);
    last_tid_ = global_tid;
    return *(last_thread_ = &at->second);
  }
  // A stream's lane; work of a second context has lanes of its own.
  uint32_t device_lane(int64_t device, int64_t context, int64_t stream);
  // Returns "[1, 2, 3]" as a text of the builder.
  uint32_t shape_text(const std::array<int64_t, 3>& shape);

  // Holds the content of a range's text. Most texts are repeated, so each is parsed only once.
  struct KnownRange {
    uint32_t name = 0, full = 0;  // of the builder
    int32_t micro_batch = -1, chunk = -1, stage = -1, step = -1;
    bool is_profiler_step = false, is_step = false, starts_with_nccl = false;
    int64_t step_number = -1;  // −1: of a step that does not say it
  };
  // By value: a later call may move it.
  KnownRange known_range(std::string_view text);

  struct StepRange {
    int64_t global_tid, number, start_ns, end_ns;
    uint32_t text;  // of the builder
  };
  std::vector<StepRange> steps;
  bool has_profiler_steps = false;

  struct Call {  // of NCCL, with what it says
    int64_t global_tid, start_ns, end_ns;
    uint64_t communicator;
    CollectiveFact fact;  // its bytes are those of the call's count
  };
  std::vector<Call> calls;
  std::map<uint64_t, int64_t> communicator_calls, communicator_sizes;

  // Once all rows are there: ranges on the devices, and what NCCL's calls say on the kernels they launched.
  void project();
  // Steps that the user's own ranges mark: of one thread and one wording, apart from each other, two at least.
  void add_steps(Diagnostics& notes);

 private:
  void add_thread(int64_t global_tid, std::string_view name, Thread& thread);

  std::unordered_map<int64_t, Thread> threads_;
  Thread* last_thread_ = nullptr;
  int64_t last_tid_ = 0;
  std::map<int64_t, int64_t> first_context_;  // device → the context of its plain lanes
  std::array<int64_t, 3> last_stream_{};      // device, context, stream
  uint32_t last_stream_lane_ = UINT32_MAX;
  struct Shape {
    std::array<int64_t, 3> shape{};
    uint32_t text = 0;
    bool is_known = false;
  };
  std::array<Shape, 64> shapes_{};  // the last of each remainder
  TextInterner range_texts_;
  std::vector<KnownRange> ranges_;  // by id of range_texts_
};

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

inline constexpr int64_t kNone32 = 4294967295;  // "no number" in 32-bit columns

class Tables {
 public:
  // Reads StringIds.
  Tables(const SqliteDb& database, Report& into);

  const SqliteDb& db;
  Report& report;
  std::map<int64_t, std::unique_ptr<Process>> processes;       // by vm and pid
  std::unordered_map<int64_t, std::string_view> thread_names;  // by globalTid

  // Calls use(rows) for every row; columns as in rows_of(). False where the table or a column is missing.
  template <class Use> bool scan(std::string_view table, std::initializer_list<std::string_view> columns, Use use) {
    std::string missing;
    SqliteRows rows = rows_of(db, table, columns, &missing);
    while (rows.next()) use(rows);
    note_end(table, rows, missing);
    return missing.empty();
  }

  // Null where there are too many processes.
  Process* process(int64_t global) {
    const int64_t id = process_of(global);
    return last_ && last_->process == id ? last_ : find_process(id);
  }
  // A text of StringIds, "" without one, and in a process' own texts.
  std::string_view raw_text(int64_t id) const {
    const uint32_t at = text_of_id_.get(id);
    return at == NumberMap::kNone ? std::string_view() : std::string_view(texts_[at]);
  }
  uint32_t text(Process& p, int64_t id) {
    const uint32_t known = p.texts.get(id);
    return known != NumberMap::kNone ? known : p.texts.put(id, p.out.text(raw_text(id)));
  }

  static uint32_t correlation(const SqliteRows& rows, int column) {
    const int64_t value = rows.integer_or(column, kNone32);
    return value >= 0 && value < kNone32 ? static_cast<uint32_t>(value) : kNoCorrelation;
  }
  // Returns −1 for values that are not times.
  int64_t time(const SqliteRows& rows, int column) {
    const int type = rows.type(column);
    if (type == SQLITE_NULL || type == SQLITE_BLOB) return -1;
    const int64_t value = rows.integer(column);
    if (value > kEpochTimes) report.is_normalized = true;
    return value;
  }

  Process::Thread& thread(Process& p, int64_t global_tid) const {
    return p.thread(global_tid, [&] {
      const auto name = thread_names.find(global_tid);
      return name == thread_names.end() ? std::string_view() : name->second;
    });
  }
  uint32_t host_row(Process& p, gpu_rows::Kind kind, int64_t global_tid, int64_t start, int64_t end, uint32_t name,
                    uint32_t number = kNoCorrelation);

 private:
  static constexpr int64_t kEpochTimes = 100'000'000'000'000'000;  // timestamps above are of --ts-normalize
  void note_end(std::string_view table, const SqliteRows& rows, const std::string& missing);
  Process* find_process(int64_t id);
  void make_room(Process& p) const;

  std::vector<std::string> texts_;
  NumberMap text_of_id_;
  Process* last_ = nullptr;
};

// NVTX_EVENTS: marks, pushes, ranges, and what NCCL says of its calls there.
void read_ranges(Tables& tables);

// One report of Nsight Systems, exported to SQLite: its processes as parts. Tables, columns and what becomes of them:
// docs/formats/nsys.md. Returns true if an SQLite file is such an export.
bool is_report(const std::string& path);

// Errors: those of SqliteDb::open_read; kBadInput when it has no table that could be drawn.
Result<Report> read_report(const std::string& path);

// Names for the texts and numbers of an export: calls, copies, and the range texts of frameworks.

// Returns the function: "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz" → "cudaLaunchKernel", "cudaMemcpyAsync".
std::string_view api_name(std::string_view name);

// Return the names of the numbers of ENUM_CUDA_MEM_KIND, ENUM_CUDA_MEMCPY_OPER and syncType.
const char* memory_kind(int64_t kind);
const char* copy_kind(int64_t kind);
const char* sync_name(int64_t type);

// torch's emit_nvtx: "aten::mul, seq = 46174, op_id = 993406, sizes = [[8], []]".
struct TorchRange {
  std::string_view name, sizes;
  int64_t sequence = -1;
  bool is_operator = false;
};
TorchRange torch_range(std::string_view text);

// Returns the number of a step of a training loop: "iteration 12", "Step 3", "train_step". `counted` is set if the name
// has no number; then its position among names with the same wording is its number.
std::optional<int64_t> step_of(std::string_view name, bool* counted);

}  // namespace stageline::nsys
