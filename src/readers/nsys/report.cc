#include "base/json_writer.h"
#include "model/source_limits.h"
#include "readers/nsys/problems.h"
#include "readers/nsys/tables.h"
#include "readers/reader.h"

namespace stageline::nsys {
namespace {

using namespace gpu_rows;

class ReportReader {
 public:
  ReportReader(const SqliteDb& db, Report& report) : tables_(db, report) {}

  void read() {
    read_identity();
    read_calls();
    read_device();
    read_host_tables();
    read_ranges(tables_);
    read_memory();
    read_metrics();
    read_diagnostics();
    finish();
  }

 private:
  void read_identity() {
    tables_.scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs?"}, [&](const SqliteRows& rows) {
      tables_.report.utc_ns = rows.integer(0);
      tables_.report.system_ns = rows.integer_or(1, -1);
    });
    tables_.scan("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const SqliteRows& rows) {
      if (rows.text(0) == "Hostname") tables_.report.host = valid_utf8(rows.text(1));
    });
    tables_.scan("META_DATA_EXPORT", {"name", "value"}, [&](const SqliteRows& rows) {
      if (rows.text(0) == "EXPORT_PRODUCT_VERSION") tables_.report.version = valid_utf8(rows.text(1));
      if (rows.text(0) == "EXPORT_CONFIG_TIME_SHIFT") shift_ns_ = rows.integer(1);
    });
    tables_.scan("TARGET_INFO_GPU", {"id", "name"},
                 [&](const SqliteRows& rows) { gpu_name_[rows.integer(0)] = valid_utf8(rows.text(1)); });
    tables_.scan("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"},
                 [&](const SqliteRows& rows) { gpu_of_[{rows.integer(2), rows.integer(1)}] = rows.integer(0); });
    tables_.scan("PROCESSES", {"globalPid", "pid"},
                 [&](const SqliteRows& rows) { real_pid_[process_of(rows.integer(0))] = rows.integer(1); });
    std::map<int64_t, int64_t> priority;
    tables_.scan("ThreadNames", {"nameId", "priority", "globalTid"}, [&](const SqliteRows& rows) {
      const auto [at, is_new] = priority.try_emplace(rows.integer(2), rows.integer(1));
      if (!is_new && at->second <= rows.integer(1)) return;
      at->second = rows.integer(1);
      tables_.thread_names[rows.integer(2)] = tables_.raw_text(rows.integer(0));
    });
  }

  void read_calls() {
    const std::vector<std::string> columns = tables_.db.columns("CUPTI_ACTIVITY_KIND_KERNEL");
    const bool unstated = !columns.empty() && std::find(columns.begin(), columns.end(), "globalPid") == columns.end();
    tables_.scan("CUPTI_ACTIVITY_KIND_RUNTIME",
                 {"start", "end", "globalTid", "nameId", "correlationId?", "eventClass?"}, [&](const SqliteRows& rows) {
                   Process* p = tables_.process(rows.integer(2));
                   if (!p) return;
                   const int64_t name_id = rows.integer(3);
                   uint32_t name = p->call_names.get(name_id);
                   if (name == NumberMap::kNone)
                     name = p->call_names.put(name_id, p->out.text(api_name(tables_.raw_text(name_id))));
                   const uint32_t number = tables_.correlation(rows, 4);
                   const int64_t start = tables_.time(rows, 0);
                   if (tables_.host_row(*p, rows.integer_or(5, 0) == 1 ? kDriver : kRuntime, rows.integer(2), start,
                                        tables_.time(rows, 1), name, number) == kNoRow)
                     return;
                   if (number == kNoCorrelation) return;
                   p->launched.add_launch(rows.integer(2), start, number);
                   if (!unstated) return;
                   const auto [caller, is_new] = caller_of_.try_emplace(number, p);
                   if (!is_new && caller->second != p) caller->second = nullptr;  // processes count on their own
                 });
  }

  // Returns the process of a row of a device. If an old export does not record it, it is the process whose call alone
  // has its number. Otherwise it is the process that worked on the device before, or the only one.
  Process* device_process(const SqliteRows& rows) {
    if (!rows.is_null(6)) return tables_.process(rows.integer(6));
    Process*& worked_before = on_device_[rows.integer_or(2, 0)];
    const auto caller = caller_of_.find(tables_.correlation(rows, 5));
    if (caller != caller_of_.end() && caller->second) return worked_before = caller->second;
    if (worked_before) return worked_before;
    return tables_.processes.empty() ? tables_.process(0) : tables_.processes.begin()->second.get();
  }

  // `columns` begin with start, end, deviceId, contextId, streamId, correlationId, globalPid.
  uint32_t device_row(const SqliteRows& rows, gpu_rows::Kind kind, Process& process, uint32_t name) {
    const int64_t stream = rows.integer_or(4, -1);
    const uint32_t lane =
        process.device_lane(rows.integer_or(2, 0), rows.integer_or(3, 0), stream == kNone32 ? -1 : stream);
    const int64_t start = tables_.time(rows, 0), end = tables_.time(rows, 1);
    const uint32_t number = tables_.correlation(rows, 5);
    const uint32_t row = process.out.add(lane, kind, start, end, name, number);
    if (row == kNoRow) return row;
    ++process.device_rows;
    if (kind != kSync) process.launched.add_work({lane, row, start, end, number});
    return row;
  }

  void read_device() {
    read_kernels();
    read_copies();
    read_graphs();
    read_waits();
  }

  void read_kernels() {
    tables_.scan("CUPTI_ACTIVITY_KIND_KERNEL",
                 {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?",
                  "demangledName?", "shortName?", "gridX?", "gridY?", "gridZ?", "blockX?", "blockY?", "blockZ?",
                  "registersPerThread?", "staticSharedMemory?", "dynamicSharedMemory?"},
                 [&](const SqliteRows& rows) {
                   Process* p = device_process(rows);
                   if (!p) return;
                   const uint32_t name = tables_.text(*p, rows.integer_or(7, rows.integer_or(8, -1)));
                   const uint32_t row = device_row(rows, kKernel, *p, name);
                   if (row == kNoRow) return;
                   p->nccl_kernels += p->out.text_of(name).starts_with("nccl");
                   if (rows.is_null(9)) return;
                   const auto shape = [&](int column) {
                     return p->shape_text({rows.integer(column), rows.integer(column + 1), rows.integer(column + 2)});
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
  }

  void read_copies() {
    tables_.scan("CUPTI_ACTIVITY_KIND_MEMCPY",
                 {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "bytes",
                  "copyKind", "srcKind?", "dstKind?"},
                 [&](const SqliteRows& rows) {
                   if (Process* p = device_process(rows))
                     copy_row(rows, *p, kMemcpy,
                              copy_name(*p, rows.integer(8), rows.integer_or(9, -1), rows.integer_or(10, -1)));
                 });
    tables_.scan(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "bytes", "memKind?"},
        [&](const SqliteRows& rows) {
          if (Process* p = device_process(rows))
            copy_row(rows, *p, kMemset,
                     p->out.text("Memset (" + std::string(memory_kind(rows.integer_or(8, -1))) + ")"));
        });
  }

  // Of graphs that were recorded as a whole.
  void read_graphs() {
    tables_.scan("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                 {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "graphId"},
                 [&](const SqliteRows& rows) {
                   if (Process* p = device_process(rows))
                     device_row(rows, kKernel, *p, p->out.text("CUDA graph " + std::to_string(rows.integer(7))));
                   tables_.report.notes.add(problem::nsys_whole_graphs, {tables_.report.path});
                 });
  }

  void read_waits() {
    std::map<std::tuple<int64_t, int64_t>, int64_t> recorded;  // (process, eventSyncId) → correlation of the record
    tables_.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", {"eventSyncId?", "correlationId", "globalPid?"},
                 [&](const SqliteRows& rows) {
                   if (!rows.is_null(0) && rows.integer(0) != kNone32)
                     recorded[{process_of(rows.integer_or(2, 0)), rows.integer(0)}] = rows.integer(1);
                 });
    tables_.scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                 {"start", "end", "deviceId", "contextId?", "streamId", "correlationId?", "globalPid?", "syncType?",
                  "deprecatedSyncType?", "eventSyncId?"},
                 [&](const SqliteRows& rows) {
                   Process* p = device_process(rows);
                   if (!p) return;
                   const uint32_t row =
                       device_row(rows, kSync, *p, p->out.text(sync_name(rows.integer_or(7, rows.integer_or(8, 0)))));
                   if (row == kNoRow) return;
                   SyncFact fact{.slice = row};
                   const auto at = recorded.find({process_of(rows.integer_or(6, 0)), rows.integer_or(9, kNone32)});
                   if (at != recorded.end()) fact.wait_on_record_correlation = at->second;
                   p->out.syncs.push_back(fact);
                 });
  }

  uint32_t copy_name(Process& p, int64_t kind, int64_t from, int64_t to) {
    const std::tuple key(p.process, kind, from, to);
    if (key != last_copy_) {
      last_copy_ = key;
      last_copy_name_ = p.out.text("Memcpy " + std::string(copy_kind(kind)) + " (" + memory_kind(from) + " -> " +
                                   memory_kind(to) + ")");
    }
    return last_copy_name_;
  }
  void copy_row(const SqliteRows& rows, Process& process, gpu_rows::Kind kind, uint32_t name) {
    const uint32_t row = device_row(rows, kind, process, name);
    if (row == kNoRow) return;
    CopyFact fact{.slice = row, .bytes = rows.integer(7)};
    const double ns = rows.integer(1) - rows.integer(0);
    if (fact.bytes >= 0 && ns > 0) fact.bandwidth_gbps = fact.bytes / ns;
    process.out.copies.push_back(fact);
  }

  void read_host_tables() {
    const auto calls = [&](const char* table, std::initializer_list<std::string_view> columns, gpu_rows::Kind kind) {
      tables_.scan(table, columns, [&](const SqliteRows& rows) {
        if (Process* p = tables_.process(rows.integer(2)))
          tables_.host_row(*p, kind, rows.integer(2), tables_.time(rows, 0), tables_.time(rows, 1),
                           tables_.text(*p, rows.integer(3)));
      });
    };
    calls("CUPTI_ACTIVITY_KIND_OVERHEAD", {"start", "end", "globalTid", "nameId"}, kOverhead);
    calls("PROFILER_OVERHEAD", {"start", "end", "globalTid", "nameId"}, kOverhead);
    calls("CUDNN_EVENTS", {"start", "end", "globalTid", "nameId"}, kHostCall);
    calls("CUBLAS_EVENTS", {"start", "end", "globalTid", "nameId"}, kHostCall);
    for (const char* table : {"MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_OTHER_EVENTS", "MPI_START_WAIT_EVENTS"})
      calls(table, {"start", "end", "globalTid", "textId"}, kHostCall);
    tables_.scan("MPI_RANKS", {"globalTid", "rank"}, [&](const SqliteRows& rows) {
      if (Process* p = tables_.process(rows.integer(0))) p->mpi_rank = rows.integer(1);
    });
  }

  void read_memory() {
    tables_.scan("CUDA_GPU_MEMORY_USAGE_EVENTS",
                 {"start", "globalPid", "deviceId", "address", "bytes", "memoryOperationType"},
                 [&](const SqliteRows& rows) {
                   Process* p = tables_.process(rows.integer(1));
                   if (!p) return;
                   MemoryRecord record;
                   record.time_ns = tables_.time(rows, 0);
                   record.address = rows.integer(3);
                   record.bytes = rows.integer(5) == 1 ? -rows.integer(4) : rows.integer(4);
                   record.device_type = 1;
                   record.device_id = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(2), -1, 4096));
                   record.file_index = static_cast<uint32_t>(p->out.part.memory.size());
                   p->out.part.memory.push_back(record);
                 });
  }

  // Reads hardware counters of whole GPUs (nsys profile --gpu-metrics-devices). The low byte of a type is the GPU's
  // number.
  void read_metrics() {
    std::map<std::pair<int64_t, int64_t>, std::string> names;
    tables_.scan("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"},
                 [&](const SqliteRows& rows) { names[{rows.integer(0), rows.integer(1)}] = valid_utf8(rows.text(2)); });
    std::map<std::pair<int64_t, int64_t>, size_t> series;
    int64_t unnamed = 0;
    tables_.scan("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, [&](const SqliteRows& rows) {
      const std::pair key(rows.integer(1), rows.integer(2));
      const int64_t at = tables_.time(rows, 0);
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
    tables_.report.notes.add(problem::nsys_bad_metric, {tables_.report.path}, unnamed);
  }
  struct Metric {
    int64_t gpu = 0;
    CounterSeries series;
  };
  // The metrics of a GPU belong to the rank that works on it; those of no rank's to the first.
  void place_metrics(Part& part, bool is_last) {
    for (Metric& metric : metrics_)
      if (!metric.series.time_ns.empty() && (metric.gpu == part.device || is_last)) {
        part.counters.push_back(std::move(metric.series));
        metric.series = {};
      }
  }

  void read_diagnostics() {
    constexpr int64_t kWarning = 2, kError = 3;
    tables_.scan("DIAGNOSTIC_EVENT", {"severity", "text"}, [&](const SqliteRows& rows) {
      if (rows.integer(0) != kWarning && rows.integer(0) != kError) return;
      std::string what = valid_utf8(rows.text(1));
      what.resize(std::min<size_t>(what.size(), 200));
      const bool lost = what.find("lost") != std::string::npos || what.find("dropped") != std::string::npos;
      tables_.report.notes.add(lost ? problem::nsys_lost_events : problem::nsys_warning,
                               Args().set("text", valid_utf8(what)), {tables_.report.path});
    });
  }

  void finish() {
    bool any_device = false;
    for (const auto& [id, p] : tables_.processes) any_device = any_device || p->device_rows > 0;
    for (auto& [id, p] : tables_.processes) {
      if (any_device ? p->device_rows == 0 : p->out.row_count() == 0) {
        if (p->out.row_count() > 0)
          ++tables_.report.left_out_processes, tables_.report.left_out_rows += static_cast<int64_t>(p->out.row_count());
        continue;
      }
      p->project();
      p->add_steps(tables_.report.notes);
      ProcessPart done;
      done.pid = real_pid_.contains(id) ? real_pid_[id] : pid_of(id);
      done.device_rows = p->device_rows;
      done.host_rows = p->host_rows;
      done.first_device = p->first_device;
      done.communicator_rank = p->communicator_rank;
      done.communicator_size = p->communicator_size;
      done.mpi_rank = p->mpi_rank;
      Part& part = p->out.part;
      part.machine_name = tables_.report.host;
      part.event_count = p->out.row_count();
      const auto gpu = gpu_of_.find({done.pid, done.first_device});
      part.device =
          static_cast<int32_t>(std::clamp<int64_t>(gpu != gpu_of_.end() ? gpu->second : done.first_device, -1, 4096));
      const auto name = gpu_name_.find(part.device);
      place_metrics(part, false);
      if (name != gpu_name_.end())
        part.metadata.push_back({"deviceProperties", "[{\"id\":" + std::to_string(part.device) +
                                                         ",\"name\":" + json_quoted(name->second) + "}]"});
      if (!tables_.report.version.empty())
        part.metadata.push_back({"nsight_systems", json_quoted(tables_.report.version)});
      done.part = p->out.finish(done.names);
      if (tables_.report.utc_ns > 0 && !tables_.report.is_normalized)
        shift_part(done.part, tables_.report.utc_ns - shift_ns_);
      done.notes = std::move(p->out.notes);
      p.reset();
      tables_.report.processes.push_back(std::move(done));
    }
    if (tables_.report.processes.empty()) return;
    // The work of GPUs on which no rank works goes to the first rank, on its clock.
    Part rest;
    place_metrics(rest, true);
    if (tables_.report.utc_ns > 0 && !tables_.report.is_normalized) shift_part(rest, tables_.report.utc_ns - shift_ns_);
    for (CounterSeries& series : rest.counters)
      tables_.report.processes.front().part.counters.push_back(std::move(series));
  }

  Tables tables_;
  std::unordered_map<uint32_t, Process*> caller_of_;  // by correlation, of exports that do not say processes
  std::map<int64_t, Process*> on_device_;
  std::tuple<int64_t, int64_t, int64_t, int64_t> last_copy_{-1, -1, -1, -1};  // process, kind, from, to
  uint32_t last_copy_name_ = 0;
  std::map<int64_t, std::string> gpu_name_;
  std::map<std::pair<int64_t, int64_t>, int64_t> gpu_of_;  // (pid, CUDA ordinal) → GPU
  std::map<int64_t, int64_t> real_pid_;
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
  TRY(db, SqliteDb::open_read(path, report.notes));
  if (std::none_of(std::begin(kTables), std::end(kTables), [&](const char* table) { return db->has_table(table); }))
    return input_error("nsys.no_tables", {path});
  ReportReader(*db, report).read();
  if (report.processes.empty()) return input_error("nsys.empty", {path});
  return report;
}

}  // namespace stageline::nsys
