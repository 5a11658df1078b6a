#include "readers/nsys/report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/sqlite_db.h"
#include "base/text.h"
#include "model/ops.h"
#include "model/torch_facts.h"
#include "readers/common/launched_work.h"
#include "readers/common/number_map.h"
#include "readers/common/part_builder.h"
#include "readers/common/range_message.h"
#include "readers/nsys/payload.h"

namespace stageline::nsys {
namespace {

enum Kind : uint8_t {
  kOperator,
  kAnnotation,
  kRuntime,
  kDriver,
  kKernel,
  kMemcpy,
  kMemset,
  kSync,
  kOverhead,
  kDeviceRange,
  kHostCall
};
constexpr RowCategory kCategories[] = {
    {"cpu_op", Category::kCpuOp, KernelClass::kNone},
    {"user_annotation", Category::kUserAnnotation, KernelClass::kNone},
    {"cuda_runtime", Category::kRuntime, KernelClass::kNone},
    {"cuda_driver", Category::kDriver, KernelClass::kNone},
    {"kernel", Category::kKernel, KernelClass::kNone},
    {"gpu_memcpy", Category::kMemcpy, KernelClass::kNone},
    {"gpu_memset", Category::kMemset, KernelClass::kNone},
    {"cuda_sync", Category::kDeviceSync, KernelClass::kNone},
    {"overhead", Category::kOverhead, KernelClass::kNone},
    {"gpu_user_annotation", Category::kGpuAnnotation, KernelClass::kNone},
    {"host_call", Category::kOther, KernelClass::kNone},
};

constexpr int64_t kNone32 = 4294967295;                   // "no number" in 32-bit columns
constexpr int64_t kEpochTimes = 100'000'000'000'000'000;  // stamps above are of --ts-normalize
constexpr size_t kMostProcesses = 4096;

// nvtxEventType in NVTX_EVENTS.
constexpr int64_t kNvtxMark = 34, kNvtxPushPop = 59, kNvtxStartEnd = 60, kNvtxDomain = 75;

int64_t process_of(int64_t global) { return static_cast<int64_t>(static_cast<uint64_t>(global) >> 24); }
int64_t pid_of(int64_t process) { return process & 0xffffff; }
int64_t thread_of(int64_t global_tid) { return global_tid & 0xffffff; }

// "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz" → the function.
std::string_view api_name(std::string_view name) {
  if (name.ends_with("_ptsz")) name.remove_suffix(5);
  const size_t v = name.rfind("_v");
  if (v != std::string_view::npos && v + 2 < name.size() &&
      name.find_first_not_of("0123456789", v + 2) == std::string_view::npos)
    name = name.substr(0, v);
  return name;
}

const char* memory_kind(int64_t kind) {
  constexpr const char* kNames[] = {"Pageable", "Pinned",        "Device",        "Array",
                                    "Managed",  "Device Static", "Managed Static"};
  return kind >= 0 && kind < 7 ? kNames[kind] : "Unknown";
}
const char* copy_kind(int64_t kind) {
  constexpr const char* kNames[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                    "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
  return kind >= 0 && kind < 14 ? kNames[kind] : "Unknown";
}
const char* sync_name(int64_t type) {
  constexpr const char* kNames[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
  return type >= 0 && type < 5 ? kNames[type] : "Unknown Sync";
}

// torch's emit_nvtx: "aten::mul, seq = 46174, op_id = 993406, sizes = [[8], []]".
struct TorchRange {
  std::string_view name, sizes;
  int64_t sequence = -1;
  bool is_operator = false;
};
TorchRange torch_range(std::string_view text) {
  TorchRange out{text, {}, -1, false};
  size_t first = std::string_view::npos;
  for (const std::string_view key : {", op_id = ", ", seq = ", ", sizes = "}) first = std::min(first, text.find(key));
  if (first == std::string_view::npos) return out;
  out.is_operator = true;
  out.name = text.substr(0, first);
  if (const size_t at = text.find(", seq = "); at != std::string_view::npos) {
    const size_t from = at + 8, end = text.find_first_not_of("0123456789", from);
    out.sequence = parse_int(text.substr(from, end == std::string_view::npos ? end : end - from)).value_or(-1);
  }
  if (const size_t at = text.find(", sizes = "); at != std::string_view::npos) {
    out.sizes = text.substr(at + 10);
    if (const size_t end = out.sizes.rfind(']'); end != std::string_view::npos)
      out.sizes = out.sizes.substr(0, end + 1);
  }
  return out;
}

// "iteration 12", "Step 3", "train_step": a step of a training loop, and its number where it says one.
std::optional<int64_t> step_of(std::string_view name, bool* counted) {
  *counted = false;
  std::string lower;
  for (const char c : name.substr(0, 64)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view word : {"iteration", "train_step", "training_step", "step"}) {
    if (!lower.starts_with(word)) continue;
    std::string_view rest = std::string_view(lower).substr(word.size());
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '_' || rest[0] == ':' || rest[0] == '#' || rest[0] == '='))
      rest.remove_prefix(1);
    if (rest.empty()) {
      *counted = word != "step";
      return *counted ? std::optional<int64_t>(0) : std::nullopt;
    }
    const auto number = parse_int(rest);
    return number && *number >= 0 && *number < 1'000'000'000 ? number : std::nullopt;
  }
  return std::nullopt;
}

// One process while its rows come in.
struct Process {
  Process(const std::string& path, int64_t id) : out(path, kCategories, "nsys"), process(id) {}

  PartBuilder out;
  int64_t process;
  std::unordered_map<int64_t, uint32_t> texts;  // of StringIds → of the builder
  int64_t device_rows = 0, host_rows = 0, first_device = -1;
  std::set<std::pair<int64_t, int64_t>> contexts;  // (device, context) with work
  struct StepRange {
    int64_t global_tid, number, start_ns, end_ns;
    std::string kind;
  };
  LaunchedWork launched;
  std::vector<StepRange> steps;
  bool has_profiler_steps = false;
  std::map<std::pair<int64_t, int64_t>, int64_t> thread_end;  // last stamp seen of a thread, for ranges left open
  std::map<int64_t, std::string> thread_names;
  int64_t nccl_kernels = 0;
  int64_t communicator_rank = -1, communicator_size = 0, mpi_rank = -1;
  std::map<uint64_t, int64_t> communicator_calls;
  struct Call {  // of NCCL, with what it says
    int64_t global_tid, start_ns, end_ns;
    CollectiveFact fact;
  };
  std::vector<Call> calls;
};

class ReportReader {
 public:
  ReportReader(const SqliteDb& db, Report& report) : db_(db), report_(report), schemas_(db) {}

  void read() {
    read_texts();
    read_identity();
    read_calls();
    read_device();
    read_host_tables();
    read_nvtx();
    read_memory();
    read_metrics();
    read_diagnostics();
    finish();
  }

 private:
  template <class Use>
  bool scan(std::string_view table, std::initializer_list<std::string_view> columns, Use use) {
    std::string missing;
    SqliteRows rows = rows_of(db_, table, columns, &missing);
    while (rows.next()) use(rows);
    if (!rows.ok())
      report_.notes.add("nsys.damaged_table", Severity::kLoss,
                        "table " + std::string(table) + " is damaged after " + std::to_string(rows.count()) +
                            " rows, which were kept",
                        {report_.path});
    if (missing.find('.') != std::string::npos)
      report_.notes.add("nsys.missing_column", Severity::kLoss,
                        "a table without a column that it must have was left out: " + missing, {report_.path});
    return missing.empty();
  }

  Process* process(int64_t global) {
    const int64_t id = process_of(global);
    if (last_ && last_->process == id) return last_;
    const auto at = processes_.find(id);
    if (at != processes_.end()) return last_ = at->second.get();
    if (processes_.size() >= kMostProcesses) return nullptr;
    return last_ = processes_.emplace(id, std::make_unique<Process>(report_.path, id)).first->second.get();
  }

  // A text of StringIds in a process' own texts.
  uint32_t text(Process& p, int64_t id) {
    const auto [at, is_new] = p.texts.try_emplace(id, 0);
    if (is_new) at->second = p.out.text(raw_text(id));
    return at->second;
  }
  std::string_view raw_text(int64_t id) const {
    const uint32_t at = text_of_id_.get(id);
    return at == NumberMap::kNone ? std::string_view() : std::string_view(texts_[at]);
  }

  void read_texts() {
    scan("StringIds", {"id", "value"}, [&](const SqliteRows& rows) {
      text_of_id_.put(rows.integer(0), static_cast<uint32_t>(texts_.size()));
      texts_.push_back(valid_utf8(rows.text(1)));
    });
  }

  void read_identity() {
    scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs?"}, [&](const SqliteRows& rows) {
      report_.utc_ns = rows.integer(0);
      report_.system_ns = rows.integer_or(1, -1);
    });
    scan("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const SqliteRows& rows) {
      if (rows.text(0) == "Hostname") report_.host = valid_utf8(rows.text(1));
    });
    scan("META_DATA_EXPORT", {"name", "value"}, [&](const SqliteRows& rows) {
      if (rows.text(0) == "EXPORT_PRODUCT_VERSION") report_.version = valid_utf8(rows.text(1));
      if (rows.text(0) == "EXPORT_CONFIG_TIME_SHIFT") shift_ns_ = rows.integer(1);
    });
    scan("TARGET_INFO_GPU", {"id", "name"},
         [&](const SqliteRows& rows) { gpu_name_[rows.integer(0)] = valid_utf8(rows.text(1)); });
    scan("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"},
         [&](const SqliteRows& rows) { gpu_of_[{rows.integer(2), rows.integer(1)}] = rows.integer(0); });
    scan("PROCESSES", {"globalPid", "pid"},
         [&](const SqliteRows& rows) { real_pid_[process_of(rows.integer(0))] = rows.integer(1); });
    std::map<int64_t, int64_t> priority;
    scan("ThreadNames", {"nameId", "priority", "globalTid"}, [&](const SqliteRows& rows) {
      const auto [at, is_new] = priority.try_emplace(rows.integer(2), rows.integer(1));
      if (!is_new && at->second <= rows.integer(1)) return;
      at->second = rows.integer(1);
      thread_name_[rows.integer(2)] = raw_text(rows.integer(0));
    });
  }

  static uint32_t correlation(const SqliteRows& rows, int column) {
    const int64_t value = rows.integer_or(column, kNone32);
    return value >= 0 && value < kNone32 ? static_cast<uint32_t>(value) : kNoCorrelation;
  }
  int64_t time(const SqliteRows& rows, int column) {
    if (rows.is_null(column) || rows.type(column) == SQLITE_BLOB) return -1;
    const int64_t value = rows.integer(column);
    if (value > kEpochTimes) report_.is_normalized = true;
    return value;
  }

  uint32_t host_row(Process& p, Kind kind, int64_t global_tid, int64_t start, int64_t end, uint32_t name,
                    uint32_t number = kNoCorrelation) {
    const uint32_t lane = p.out.host_lane(pid_of(p.process), thread_of(global_tid));
    if (const auto name_of = thread_name_.find(global_tid); name_of != thread_name_.end() && !name_of->second.empty())
      p.out.part.lanes[lane].name =
          std::string(name_of->second) + " (thread " + std::to_string(thread_of(global_tid)) + ")";
    const uint32_t row = p.out.add(lane, kind, start, end, name, number);
    if (row == kNoRow) return row;
    ++p.host_rows;
    int64_t& last = p.thread_end[{p.process, global_tid}];
    last = std::max(last, end);
    return row;
  }

  void read_calls() {
    scan("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "nameId", "correlationId?", "eventClass?"},
         [&](const SqliteRows& rows) {
           Process* p = process(rows.integer(2));
           if (!p) return;
           const int64_t name_id = rows.integer(3);
           const auto [at, is_new] =
               p->texts.try_emplace(-1 - name_id, 0);  // names without versions: keys of their own
           if (is_new) at->second = p->out.text(api_name(raw_text(name_id)));
           const uint32_t number = correlation(rows, 4);
           const int64_t start = time(rows, 0);
           if (host_row(*p, rows.integer_or(5, 0) == 1 ? kDriver : kRuntime, rows.integer(2), start, time(rows, 1),
                        at->second, number) == kNoRow)
             return;
           if (number != kNoCorrelation) p->launched.add_launch(rows.integer(2), start, number);
         });
  }

  uint32_t device_lane(Process& p, int64_t device, int64_t context, int64_t stream) {
    if (stream == kNone32) stream = -1;
    if (p.first_device < 0 || device < p.first_device) p.first_device = device;
    const auto [at, is_new] = first_context_.try_emplace({p.process, device}, context);
    if (is_new || at->second == context) return p.out.stream_lane(device, stream);
    return p.out.named_stream_lane(device, "stream " + std::to_string(stream) + " context " + std::to_string(context));
  }

  // `columns` begin with start, end, deviceId, contextId, streamId, correlationId, globalPid.
  uint32_t device_row(const SqliteRows& rows, Kind kind, Process& p, uint32_t name) {
    const uint32_t lane = device_lane(p, rows.integer_or(2, 0), rows.integer_or(3, 0), rows.integer_or(4, -1));
    const int64_t start = time(rows, 0), end = time(rows, 1);
    const uint32_t number = correlation(rows, 5);
    const uint32_t row = p.out.add(lane, kind, start, end, name, number);
    if (row == kNoRow) return row;
    ++p.device_rows;
    if (kind != kSync) p.launched.add_work({lane, row, start, end, number});
    return row;
  }

  void read_device() {
    scan("CUPTI_ACTIVITY_KIND_KERNEL",
         {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "demangledName?",
          "shortName?", "gridX?", "gridY?", "gridZ?", "blockX?", "blockY?", "blockZ?", "registersPerThread?",
          "staticSharedMemory?", "dynamicSharedMemory?"},
         [&](const SqliteRows& rows) {
           Process* p = process(rows.integer_or(6, 0));
           if (!p) return;
           const uint32_t name = text(*p, rows.integer_or(7, rows.integer_or(8, -1)));
           const uint32_t row = device_row(rows, kKernel, *p, name);
           if (row == kNoRow) return;
           p->nccl_kernels += p->out.text_of(name).starts_with("nccl");
           if (rows.is_null(9)) return;
           const auto shape = [&](int column) {
             return p->out.text("[" + std::to_string(rows.integer(column)) + ", " +
                                std::to_string(rows.integer(column + 1)) + ", " +
                                std::to_string(rows.integer(column + 2)) + "]");
           };
           KernelFact fact;
           fact.slice = row;
           fact.registers = static_cast<int32_t>(std::clamp<int64_t>(rows.integer_or(15, -1), -1, INT32_MAX));
           fact.shared_bytes = static_cast<int32_t>(
               std::clamp<int64_t>(sum_or_limit(rows.integer_or(16, 0), rows.integer_or(17, 0)), 0, INT32_MAX));
           fact.grid = shape(9);
           fact.block = shape(12);
           p->out.kernels.push_back(fact);
         });
    scan("CUPTI_ACTIVITY_KIND_MEMCPY",
         {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "bytes", "copyKind",
          "srcKind?", "dstKind?"},
         [&](const SqliteRows& rows) {
           if (Process* p = process(rows.integer_or(6, 0)))
             copy_row(rows, *p, kMemcpy,
                      "Memcpy " + std::string(copy_kind(rows.integer(8))) + " (" + memory_kind(rows.integer_or(9, -1)) +
                          " -> " + memory_kind(rows.integer_or(10, -1)) + ")");
         });
    scan("CUPTI_ACTIVITY_KIND_MEMSET",
         {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "bytes", "memKind?"},
         [&](const SqliteRows& rows) {
           if (Process* p = process(rows.integer_or(6, 0)))
             copy_row(rows, *p, kMemset, "Memset (" + std::string(memory_kind(rows.integer_or(8, -1))) + ")");
         });
    scan("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
         {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "graphId"},
         [&](const SqliteRows& rows) {
           if (Process* p = process(rows.integer_or(6, 0)))
             device_row(rows, kKernel, *p, p->out.text("CUDA graph " + std::to_string(rows.integer(7))));
           report_.notes.add("nsys.whole_graphs", Severity::kInfo,
                             "CUDA graphs were recorded as wholes, and their kernels were not; --cuda-graph-trace=node "
                             "records these",
                             {report_.path});
         });
    std::map<std::tuple<int64_t, int64_t>, int64_t> recorded;  // (process, eventSyncId) → correlation of the record
    scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", {"eventSyncId", "correlationId", "globalPid?"}, [&](const SqliteRows& rows) {
      if (!rows.is_null(0) && rows.integer(0) != kNone32)
        recorded[{process_of(rows.integer_or(2, 0)), rows.integer(0)}] = rows.integer(1);
    });
    scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
         {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "syncType?",
          "deprecatedSyncType?", "eventSyncId?"},
         [&](const SqliteRows& rows) {
           Process* p = process(rows.integer_or(6, 0));
           if (!p) return;
           const uint32_t row =
               device_row(rows, kSync, *p, p->out.text(sync_name(rows.integer_or(7, rows.integer_or(8, 0)))));
           if (row == kNoRow) return;
           SyncFact fact;
           fact.slice = row;
           const auto at = recorded.find({process_of(rows.integer_or(6, 0)), rows.integer_or(9, kNone32)});
           if (at != recorded.end()) fact.wait_on_record_correlation = at->second;
           p->out.syncs.push_back(fact);
         });
  }

  void copy_row(const SqliteRows& rows, Process& p, Kind kind, const std::string& name) {
    const uint32_t row = device_row(rows, kind, p, p.out.text(name));
    if (row == kNoRow) return;
    CopyFact fact;
    fact.slice = row;
    fact.bytes = rows.integer(7);
    const auto ns = static_cast<double>(rows.integer(1) - rows.integer(0));
    if (fact.bytes >= 0 && ns > 0) fact.bandwidth_gbps = static_cast<double>(fact.bytes) / ns;
    p.out.copies.push_back(fact);
  }

  void read_host_tables() {
    const auto calls = [&](const char* table, std::initializer_list<std::string_view> columns, Kind kind) {
      scan(table, columns, [&](const SqliteRows& rows) {
        if (Process* p = process(rows.integer(2)))
          host_row(*p, kind, rows.integer(2), time(rows, 0), time(rows, 1), text(*p, rows.integer(3)));
      });
    };
    calls("CUPTI_ACTIVITY_KIND_OVERHEAD", {"start", "end", "globalTid", "nameId"}, kOverhead);
    calls("PROFILER_OVERHEAD", {"start", "end", "globalTid", "nameId"}, kOverhead);
    calls("CUDNN_EVENTS", {"start", "end", "globalTid", "nameId"}, kHostCall);
    calls("CUBLAS_EVENTS", {"start", "end", "globalTid", "nameId"}, kHostCall);
    for (const char* table : {"MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_OTHER_EVENTS", "MPI_START_WAIT_EVENTS"})
      calls(table, {"start", "end", "globalTid", "textId"}, kHostCall);
    scan("MPI_RANKS", {"globalTid", "rank"}, [&](const SqliteRows& rows) {
      if (Process* p = process(rows.integer(0))) p->mpi_rank = rows.integer(1);
    });
  }

  void read_nvtx() {
    std::map<int64_t, std::string> domains;
    scan("NVTX_EVENTS", {"eventType", "domainId?", "text?", "textId?"}, [&](const SqliteRows& rows) {
      if (rows.integer(0) == kNvtxDomain)
        domains[rows.integer_or(1, 0)] = rows.is_null(2) ? raw_text(rows.integer_or(3, -1)) : rows.text(2);
    });
    int64_t open = 0, payloads = 0;
    scan("NVTX_EVENTS",
         {"start", "end?", "eventType", "globalTid", "text?", "textId?", "domainId?", "endGlobalTid?", "binaryData?"},
         [&](const SqliteRows& rows) {
           const int64_t type = rows.integer(2);
           if (type != kNvtxPushPop && type != kNvtxStartEnd && type != kNvtxMark) return;
           Process* p = process(rows.integer(3));
           if (!p) return;
           const std::string full =
               rows.is_null(4) ? std::string(raw_text(rows.integer_or(5, -1))) : valid_utf8(rows.text(4));
           const int64_t start = time(rows, 0);
           if (type == kNvtxMark) {
             const uint32_t lane = p->out.host_lane(pid_of(p->process), thread_of(rows.integer(3)));
             if (start >= 0 && start <= kMaxTimeNs)
               p->out.part.marks.push_back(
                   {start, p->out.text(full), lane, static_cast<uint32_t>(p->out.part.marks.size())});
             return;
           }
           int64_t end = rows.is_null(1) ? -1 : time(rows, 1);
           if (end < 0) {
             ++open;
             end = std::max(start, p->thread_end[{p->process, rows.integer(3)}]);
           }
           const int64_t domain = rows.integer_or(6, 0);
           const bool nccl = domain != 0 && (domains[domain] == "NCCL" || full.starts_with("nccl"));
           add_range(*p, rows, full, start, end, nccl ? "NCCL" : domains[domain], payloads);
         });
    if (open > 0)
      report_.notes.add("nsys.open_ranges", Severity::kWarning,
                        "ranges that were never closed end with the last that their thread did before them",
                        {report_.path}, open);
    int64_t nccl_kernels = 0;
    for (const auto& [id, p] : processes_) nccl_kernels += p->nccl_kernels;
    if (nccl_kernels > 0 && payloads == 0)
      report_.notes.add("nsys.no_nccl_sizes", Severity::kInfo,
                        "how much NCCL's kernels moved, and between whom, is not in this export; nsys export "
                        "--include-blobs=true writes it where NVTX was traced",
                        {report_.path}, nccl_kernels);
  }

  void add_range(Process& p, const SqliteRows& rows, const std::string& full, int64_t start, int64_t end,
                 const std::string& domain, int64_t& payloads) {
    const int64_t tid = rows.integer(3);
    const TorchRange torch = torch_range(full);
    if (torch.is_operator) {
      const uint32_t row = host_row(p, kOperator, tid, start, end, p.out.text(torch.name));
      if (row == kNoRow) return;
      if (torch.sequence >= 0) p.out.operators.push_back({row, 0, torch.sequence});
      if (!torch.sizes.empty()) p.out.inputs.push_back({row, p.out.text(torch.sizes), 0, 0});
      return;
    }
    const RangeText said = parse_range_message(full);
    const uint32_t name = p.out.text(said.name);
    const uint32_t row = host_row(p, kAnnotation, tid, start, end, name);
    if (row == kNoRow) return;
    if (domain == "NCCL") {
      add_call(p, rows, said.name, tid, start, end, payloads);
      return;
    }
    p.out.ranges.push_back(
        {row, p.out.text(full), p.out.text(domain), said.micro_batch, said.chunk, said.stage, said.step});
    p.launched.add_range({tid, start, end, row, 0});
    if (profiler_step_number(full) >= 0) p.has_profiler_steps = true;
    bool counted = false;
    if (const auto number = step_of(full, &counted)) {
      std::string kind;
      for (const char c : full)
        if (c < '0' || c > '9') kind += c;
      p.steps.push_back({tid, counted ? -1 : *number, start, end, std::move(kind)});
    }
  }

  // What NCCL's call says of itself, for the kernels it launches.
  void add_call(Process& p, const SqliteRows& rows, const std::string& name, int64_t tid, int64_t start, int64_t end,
                int64_t& payloads) {
    if (rows.is_null(8)) return;
    const NcclPayload said = schemas_.read(rows.text(8));
    if (!said.is_known) return;
    ++payloads;
    if (said.rank >= 0 && said.ranks > p.communicator_size)
      p.communicator_rank = said.rank, p.communicator_size = said.ranks;
    if (said.bytes < 0) return;
    Process::Call call{tid, start, end, {}};
    std::string short_name = name.starts_with("nccl") ? name.substr(4) : name;
    call.fact.name = p.out.text(short_name);
    call.fact.group = p.out.text("communicator " + std::to_string(said.communicator));
    call.fact.peer = said.peer;
    call.fact.bytes = said.bytes;
    call.fact.seq = p.communicator_calls[said.communicator]++;
    p.calls.push_back(call);
  }

  void read_memory() {
    scan("CUDA_GPU_MEMORY_USAGE_EVENTS", {"start", "globalPid", "deviceId", "address", "bytes", "memoryOperationType"},
         [&](const SqliteRows& rows) {
           Process* p = process(rows.integer(1));
           if (!p) return;
           MemoryRecord record;
           record.time_ns = time(rows, 0);
           record.address = static_cast<uint64_t>(rows.integer(3));
           record.bytes = rows.integer(5) == 1 ? -rows.integer(4) : rows.integer(4);
           record.device_type = 1;
           record.device_id = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(2), -1, 4096));
           record.file_index = static_cast<uint32_t>(p->out.part.memory.size());
           p->out.part.memory.push_back(record);
         });
  }

  // Hardware counters of whole GPUs (nsys profile --gpu-metrics-devices). The low byte of a type is the GPU's number.
  void read_metrics() {
    std::map<std::pair<int64_t, int64_t>, std::string> names;
    scan("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"},
         [&](const SqliteRows& rows) { names[{rows.integer(0), rows.integer(1)}] = valid_utf8(rows.text(2)); });
    std::map<std::pair<int64_t, int64_t>, size_t> series;
    int64_t unnamed = 0;
    scan("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, [&](const SqliteRows& rows) {
      const std::pair key(rows.integer(1), rows.integer(2));
      const int64_t at = time(rows, 0);
      const auto name = names.find(key);
      if (name == names.end() || at < 0 || at > kMaxTimeNs) {
        ++unnamed;
        return;
      }
      const auto [one, is_new] = series.try_emplace(key, metrics_.size());
      if (is_new) {
        const int64_t gpu = key.first & 0xff;
        metrics_.push_back({gpu, {"GPU " + std::to_string(gpu) + " / " + name->second, {}, {}}});
      }
      metrics_[one->second].series.time_ns.push_back(at);
      metrics_[one->second].series.value.push_back(rows.real(3));
    });
    if (unnamed > 0)
      report_.notes.add("nsys.bad_metric", Severity::kLoss,
                        "values of GPU metrics without a name or a time were left out", {report_.path}, unnamed);
  }
  struct Metric {
    int64_t gpu = 0;
    CounterSeries series;
  };
  // The metrics of a GPU stand at the rank that works on it; those of no rank's at the first.
  void place_metrics(Part& part, bool is_last) {
    for (Metric& metric : metrics_)
      if (!metric.series.time_ns.empty() && (metric.gpu == part.device || is_last)) {
        part.counters.push_back(std::move(metric.series));
        metric.series = {};
      }
  }

  void read_diagnostics() {
    constexpr int64_t kWarning = 2, kError = 3;
    scan("DIAGNOSTIC_EVENT", {"severity", "text"}, [&](const SqliteRows& rows) {
      if (rows.integer(0) != kWarning && rows.integer(0) != kError) return;
      std::string what = valid_utf8(rows.text(1));
      what.resize(std::min<size_t>(what.size(), 200));
      const bool lost = what.find("lost") != std::string::npos || what.find("dropped") != std::string::npos;
      report_.notes.add(lost ? "nsys.lost_events" : "nsys.warning", lost ? Severity::kLoss : Severity::kInfo,
                        "Nsight Systems says: " + valid_utf8(what), {report_.path});
    });
  }

  // Ranges on the devices, and what NCCL's calls say on the kernels they launched.
  void project(Process& p) {
    p.launched.settle();
    p.launched.project(p.out, kDeviceRange);
    for (Process::Call& call : p.calls)
      p.launched.for_launched(call.global_tid, call.start_ns, call.end_ns, [&](const LaunchedWork::Work& work) {
        if (!p.out.text_of(p.out.name_of(work.row)).starts_with("nccl")) return;
        CollectiveFact fact = call.fact;
        fact.slice = work.row;
        p.out.collectives.push_back(fact);
      });
    if (p.launched.gave_up())
      p.out.notes.add("nsys.not_projected", Severity::kLoss,
                      "so many launches lie in nested ranges that the last of these were not drawn on the devices",
                      {report_.path});
  }

  // Steps that the user's own ranges mark: of one thread and one wording, apart from each other, two at least.
  void add_steps(Process& p) {
    if (p.has_profiler_steps) return;
    std::map<std::pair<int64_t, std::string>, std::vector<const Process::StepRange*>> kinds;
    for (const Process::StepRange& step : p.steps) kinds[{step.global_tid, step.kind}].push_back(&step);
    const std::vector<const Process::StepRange*>* best = nullptr;
    for (auto& [kind, steps] : kinds) {
      std::sort(steps.begin(), steps.end(), [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
      bool apart = steps.size() >= 2;
      for (size_t i = 1; i < steps.size() && apart; ++i) apart = steps[i]->start_ns >= steps[i - 1]->end_ns;
      if (apart && (!best || steps.size() > best->size())) best = &steps;
    }
    if (!best) return;
    for (size_t i = 0; i < best->size(); ++i) {
      const Process::StepRange& step = *(*best)[i];
      p.out.step(step.number >= 0 ? step.number : static_cast<int64_t>(i), step.start_ns, step.end_ns);
    }
    report_.notes.add("nsys.steps", Severity::kInfo,
                      "ranges such as \"" + (*best)[0]->kind + "\" were taken for training steps", {report_.path},
                      static_cast<int64_t>(best->size()));
  }

  void finish() {
    bool any_device = false;
    for (const auto& [id, p] : processes_) any_device = any_device || p->device_rows > 0;
    for (auto& [id, p] : processes_) {
      if (any_device ? p->device_rows == 0 : p->out.row_count() == 0) {
        if (p->out.row_count() > 0)
          ++report_.left_out_processes, report_.left_out_rows += static_cast<int64_t>(p->out.row_count());
        continue;
      }
      project(*p);
      add_steps(*p);
      ProcessPart done;
      done.pid = real_pid_.contains(id) ? real_pid_[id] : pid_of(id);
      done.device_rows = p->device_rows;
      done.host_rows = p->host_rows;
      done.first_device = p->first_device;
      done.communicator_rank = p->communicator_rank;
      done.communicator_size = p->communicator_size;
      done.mpi_rank = p->mpi_rank;
      Part& part = p->out.part;
      part.machine_name = report_.host;
      part.event_count = static_cast<int64_t>(p->out.row_count());
      const auto gpu = gpu_of_.find({done.pid, done.first_device});
      part.device =
          static_cast<int32_t>(std::clamp<int64_t>(gpu != gpu_of_.end() ? gpu->second : done.first_device, -1, 4096));
      const auto name = gpu_name_.find(part.device);
      place_metrics(part, false);
      if (name != gpu_name_.end())
        part.metadata.push_back({"deviceProperties", "[{\"id\":" + std::to_string(part.device) +
                                                         ",\"name\":" + json_quoted(name->second) + "}]"});
      if (!report_.version.empty()) part.metadata.push_back({"nsight_systems", json_quoted(report_.version)});
      done.part = p->out.finish(done.names);
      if (report_.utc_ns > 0 && !report_.is_normalized) shift_part(done.part, report_.utc_ns - shift_ns_);
      done.notes = std::move(p->out.notes);
      p.reset();
      report_.processes.push_back(std::move(done));
    }
    if (report_.processes.empty()) return;
    // Of GPUs on which no rank works: at the first rank, on its clock.
    Part rest;
    place_metrics(rest, true);
    if (report_.utc_ns > 0 && !report_.is_normalized) shift_part(rest, report_.utc_ns - shift_ns_);
    for (CounterSeries& series : rest.counters) report_.processes.front().part.counters.push_back(std::move(series));
  }

  const SqliteDb& db_;
  Report& report_;
  PayloadSchemas schemas_;
  std::vector<std::string> texts_;
  NumberMap text_of_id_;
  std::map<int64_t, std::unique_ptr<Process>> processes_;  // by vm and pid
  Process* last_ = nullptr;
  std::map<std::pair<int64_t, int64_t>, int64_t> first_context_;  // (process, device) → the context of its plain lanes
  std::map<int64_t, std::string> gpu_name_;
  std::map<std::pair<int64_t, int64_t>, int64_t> gpu_of_;  // (pid, CUDA ordinal) → GPU
  std::map<int64_t, int64_t> real_pid_;
  std::unordered_map<int64_t, std::string_view> thread_name_;
  std::vector<Metric> metrics_;  // in order of first value
  int64_t shift_ns_ = 0;
};

constexpr const char* kTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
                                   "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS"};

}  // namespace

bool is_report(const std::string& path) {
  Diagnostics ignored;
  const Result<SqliteDb> db = SqliteDb::open_read(path, ignored);
  if (!db || !db->has_table("StringIds")) return false;
  return db->has_table("META_DATA_EXPORT") || db->has_table("TARGET_INFO_SESSION_START_TIME") ||
         db->has_table("CUPTI_ACTIVITY_KIND_RUNTIME");
}

Result<Report> read_report(const std::string& path) {
  Report report;
  report.path = path;
  Result<SqliteDb> db = SqliteDb::open_read(path, report.notes);
  if (!db) return std::move(db).error();
  if (std::none_of(std::begin(kTables), std::end(kTables), [&](const char* table) { return db->has_table(table); }))
    return Error{ErrorCode::kBadInput,
                 "this export of Nsight Systems has no kernels, no CUDA calls and no NVTX ranges",
                 {path},
                 "record with nsys profile -t cuda,nvtx"};
  ReportReader(*db, report).read();
  if (report.processes.empty())
    return Error{ErrorCode::kBadInput, "the tables of this export of Nsight Systems are empty", {path}, ""};
  return report;
}

}  // namespace stageline::nsys
