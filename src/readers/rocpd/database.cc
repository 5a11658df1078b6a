#include "base/json_tree.h"
#include "base/sqlite_db.h"
#include "model/source_limits.h"
#include "readers/common/number_map.h"
#include "readers/reader.h"
#include "readers/rocpd/problems.h"
#include "readers/rocpd/processes.h"

namespace stageline::rocpd {
namespace {

using namespace gpu_rows;

using Process = Processes::Process;

constexpr size_t kMaxSuffixes = 1024;

// Returns the rank that a process was given in its environment. Nothing else of the environment is looked at, since it
// may hold secrets.
int64_t rank_of_environment(std::string_view json) {
  if (json.empty()) return -1;
  const Result<JsonTree> tree = parse_json_tree(json, "");
  if (!tree) return -1;
  const Value root = tree->tree.root();
  for (const std::string_view key : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}) {
    if (const auto rank = root[key].integer(); rank && *rank >= 0 && *rank <= kMaxRankNumber) return *rank;
    for (size_t i = 0; root.is_list() && i < root.size(); ++i) {
      const std::string_view pair = root.item(i).text();
      if (!pair.starts_with(key) || pair.size() <= key.size() || pair[key.size()] != '=') continue;
      if (const auto rank = parse_int(pair.substr(key.size() + 1)); rank && *rank >= 0 && *rank <= kMaxRankNumber)
        return *rank;
    }
  }
  return -1;
}

class DatabaseReader {
 public:
  DatabaseReader(const SqliteDb& db, Record& out) : db_(db), out_(out), processes_(out.path) {}

  void read_rocpd() {
    for (const std::string& suffix : suffixes()) {
      texts_.clear();
      text_of_ = {};
      events_.clear();
      event_of_ = {};
      agents_.clear();
      threads_.clear();
      symbols_.clear();
      read_identity(suffix);
      read_events(suffix);
      read_regions(suffix);
      read_work(suffix);
      read_memory(suffix);
      read_counters(suffix);
      pids_.clear();
      processes_.begin_next();
    }
    processes_.finish(out_);
  }

  // Reads rocmProfileData's .rpd: the calls and operations of one process, linked by a table of pairs.
  void read_rpd() {
    out_.written_by = "rocmProfileData";
    scan("rocpd_string", {"id", "string"}, [&](const SqliteRows& rows) { add_text(rows.integer(0), rows.text(1)); });
    std::map<int64_t, int64_t> copied;  // call → bytes
    scan("rocpd_copyapi", {"api_ptr_id", "size"},
         [&](const SqliteRows& rows) { copied[rows.integer(0)] = rows.integer(1); });
    struct Call {
      Process* process;
      int64_t id;
    };
    std::vector<Call> calls;
    NumberMap call_at, call_of_op;  // each call's and operation's index into `calls`
    scan("rocpd_api", {"id", "pid", "tid", "start", "end", "apiName_id", "args_id?"}, [&](const SqliteRows& rows) {
      Process* p = processes_.of(rows.integer(1), rows.integer(1));
      if (!p) return;
      const std::string_view name = text(rows.integer(5)), arguments = text(rows.integer_or(6, -1));
      const bool is_marker = name == "UserMarker" || name == "roctxRangePush";
      const uint32_t row =
          processes_.add_call(*p, is_marker ? "MARKER_CORE_API" : "HIP_RUNTIME_API", rows.integer(2), time(rows, 3),
                              time(rows, 4), is_marker && !arguments.empty() ? arguments : name, rows.integer(0));
      if (row == kNoRow) return;
      call_at.put(rows.integer(0), static_cast<uint32_t>(calls.size()));
      calls.push_back({p, rows.integer(0)});
    });
    scan("rocpd_api_ops", {"api_id", "op_id"}, [&](const SqliteRows& rows) {
      const uint32_t call = call_at.get(rows.integer(0));
      if (call != NumberMap::kNone) call_of_op.put(rows.integer(1), call);
    });
    scan("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"},
         [&](const SqliteRows& rows) {
           const uint32_t at = call_of_op.get(rows.integer(0));
           const Call* call = at == NumberMap::kNone ? nullptr : &calls[at];
           Process* p = call ? call->process : processes_.empty() ? processes_.of(0, 0) : processes_.first();
           if (!p) return;
           const std::string_view type = text(rows.integer(6)), description = text(rows.integer(5));
           const bool copy = type.find("Copy") != std::string_view::npos;
           const Kind kind =
               copy                                          ? kMemcpy
               : type.find("Fill") != std::string_view::npos ? kMemset
               : type.find("Barrier") != std::string_view::npos || type.find("Marker") != std::string_view::npos
                   ? kSync
                   : kKernel;
           const std::string name = copy ? copy_name(type) : std::string(description.empty() ? type : description);
           const auto bytes = call ? copied.find(call->id) : copied.end();
           processes_.add_work(*p, kind, rows.integer_or(1, 0), rows.integer_or(2, 0), time(rows, 3), time(rows, 4),
                               name, call ? call->id : 0, copy && bytes != copied.end() ? bytes->second : -1);
         });
    processes_.finish(out_);
  }

 private:
  // Tables have a uuid at the end of their names, one for each process; merged files have several. Without any, the
  // only suffix is "".
  std::vector<std::string> suffixes() {
    std::vector<std::string> out;
    SqliteRows rows(db_,
                    "SELECT name FROM sqlite_master WHERE type='table' AND name LIKE 'rocpd_string%' ORDER BY name");
    while (rows.next() && out.size() < kMaxSuffixes)
      out.push_back(std::string(rows.text(0).substr(std::string_view("rocpd_string").size())));
    return out;
  }

  template <class Use> bool scan(const std::string& table, std::initializer_list<std::string_view> columns, Use use) {
    std::string missing;
    SqliteRows rows = rows_of(db_, table, columns, &missing);
    while (rows.next()) use(rows);
    if (!rows.ok())
      out_.notes.add(problem::rocpd_damaged_table, Args().set("table", table).count("rows", rows.count()), {out_.path});
    if (missing.find('.') != std::string::npos)
      out_.notes.add(problem::rocpd_missing_column, Args().set("missing", missing), {out_.path});
    return missing.empty();
  }

  void add_text(int64_t id, std::string_view value) {
    text_of_.replace(id, static_cast<uint32_t>(texts_.size()));
    texts_.push_back(valid_utf8(value));
  }
  std::string_view text(int64_t id) const {
    const uint32_t at = text_of_.get(id);
    return at == NumberMap::kNone ? std::string_view() : std::string_view(texts_[at]);
  }
  static int64_t time(const SqliteRows& rows, int column) {
    return rows.is_null(column) || rows.type(column) == SQLITE_BLOB ? -1 : rows.integer(column);
  }

  // Columns "pid" refer to a row of rocpd_info_process; in most files the row's number equals the pid.
  Process* process_of(int64_t id) {
    const auto pid = pids_.find(id);
    return processes_.of(id, pid == pids_.end() ? id : pid->second);
  }

  struct Agent {
    int64_t device = 0;  // number among the GPUs
    std::string name;
  };
  struct Event {
    int64_t category = -1, stack = 0;
    std::string message;
  };
  struct Symbol {
    std::string name;
    int64_t vgprs = -1;
  };

  void read_identity(const std::string& suffix) {
    scan("rocpd_string" + suffix, {"id", "string"},
         [&](const SqliteRows& rows) { add_text(rows.integer(0), rows.text(1)); });
    scan("rocpd_metadata" + suffix, {"tag", "value"}, [&](const SqliteRows& rows) {
      if (rows.text(0) == "schema_version")
        out_.written_by = "rocprofiler-sdk, rocpd schema " + valid_utf8(rows.text(1));
    });
    std::map<int64_t, std::string> host;
    scan("rocpd_info_node" + suffix, {"id", "hostname?", "system_name?"},
         [&](const SqliteRows& rows) { host[rows.integer(0)] = valid_utf8(rows.text(1)); });
    scan("rocpd_info_process" + suffix, {"id", "nid?", "pid", "environment?"}, [&](const SqliteRows& rows) {
      pids_[rows.integer(0)] = rows.integer(2);
      Process* p = process_of(rows.integer(0));
      if (!p) return;
      p->host = host[rows.integer(1)];
      p->stated_rank = rank_of_environment(rows.text(3));
    });
    scan("rocpd_info_thread" + suffix, {"id", "tid"},
         [&](const SqliteRows& rows) { threads_[rows.integer(0)] = rows.integer(1); });
    scan("rocpd_info_agent" + suffix, {"id", "type", "type_index?", "product_name?", "name?"},
         [&](const SqliteRows& rows) {
           if (rows.text(1) != "GPU") return;
           const std::string_view product = rows.text(3);
           agents_[rows.integer(0)] = {rows.integer_or(2, agents_.size()),
                                       valid_utf8(product.empty() ? rows.text(4) : product)};
         });
    scan("rocpd_info_kernel_symbol" + suffix, {"id", "display_name?", "kernel_name?", "arch_vgpr_count?"},
         [&](const SqliteRows& rows) {
           symbols_[rows.integer(0)] = {valid_utf8(rows.text(1).empty() ? rows.text(2) : rows.text(1)),
                                        rows.integer_or(3, -1)};
         });
  }

  void read_events(const std::string& suffix) {
    scan("rocpd_event" + suffix, {"id", "category_id", "stack_id?", "extdata?"}, [&](const SqliteRows& rows) {
      event_of_.replace(rows.integer(0), static_cast<uint32_t>(events_.size()));
      Event event{rows.integer_or(1, -1), rows.integer_or(2, 0), {}};
      if (const std::string_view extra = rows.text(3); extra.find("\"message\"") != std::string_view::npos)
        if (const Result<JsonTree> json = parse_json_tree(extra, out_.path))
          event.message = valid_utf8(json->tree.root()["message"].text());
      events_.push_back(std::move(event));
    });
  }
  const Event* event(int64_t id) const {
    const uint32_t at = event_of_.get(id);
    return at == NumberMap::kNone ? nullptr : &events_[at];
  }
  int64_t launch_of(int64_t id) const {
    const Event* of = event(id);
    return of ? of->stack : 0;
  }

  int64_t thread(int64_t id) const {
    const auto at = threads_.find(id);
    return at == threads_.end() ? id : at->second;
  }

  void read_regions(const std::string& suffix) {
    std::map<int64_t, std::map<std::string, std::string>> arguments;  // arguments of RCCL's calls
    std::set<int64_t> wanted;
    struct Call {
      Process* process;
      uint32_t row;
      int64_t event;
      std::string name;
    };
    std::vector<Call> calls;
    scan("rocpd_region" + suffix, {"pid", "tid", "start", "end", "name_id", "event_id?"}, [&](const SqliteRows& rows) {
      Process* p = process_of(rows.integer(0));
      if (!p) return;
      const Event* of = event(rows.integer_or(5, -1));
      const std::string_view category = of ? text(of->category) : std::string_view(), name = text(rows.integer(4));
      const bool says_more = category.starts_with("MARKER_") && !of->message.empty();
      const uint32_t row = processes_.add_call(*p, category, thread(rows.integer(1)), time(rows, 2), time(rows, 3),
                                               says_more ? std::string_view(of->message) : name, of ? of->stack : 0);
      if (row == kNoRow || !category.starts_with("RCCL_")) return;
      calls.push_back({p, row, rows.integer_or(5, -1), std::string(name)});
      wanted.insert(rows.integer_or(5, -1));
    });
    if (calls.empty()) return;
    scan("rocpd_arg" + suffix, {"event_id", "name", "value"}, [&](const SqliteRows& rows) {
      if (wanted.contains(rows.integer(0)))
        arguments[rows.integer(0)][std::string(rows.text(1))] = valid_utf8(rows.text(2));
    });
    for (const Call& call : calls)
      Processes::describe_collective(*call.process, call.row, call.name, arguments[call.event]);
  }

  const Agent& agent(Process& process, int64_t id) {
    const auto [at, is_new] = agents_.try_emplace(id, Agent{id, ""});
    if (!at->second.name.empty()) process.device_name.try_emplace(at->second.device, at->second.name);
    return at->second;
  }

  void read_work(const std::string& suffix) {
    scan("rocpd_kernel_dispatch" + suffix,
         {"pid", "agent_id", "kernel_id", "queue_id?", "stream_id?", "start", "end", "event_id?", "workgroup_size_x?",
          "workgroup_size_y?", "workgroup_size_z?", "grid_size_x?", "grid_size_y?", "grid_size_z?",
          "group_segment_size?"},
         [&](const SqliteRows& rows) {
           Process* p = process_of(rows.integer(0));
           if (!p) return;
           const auto symbol = symbols_.find(rows.integer(2));
           const std::string name = symbol != symbols_.end() && !symbol->second.name.empty()
                                        ? symbol->second.name
                                        : "kernel " + std::to_string(rows.integer(2));
           const int64_t stream = rows.integer_or(4, rows.integer_or(3, 0));
           const uint32_t row =
               processes_.add_work(*p, kKernel, agent(*p, rows.integer_or(1, 0)).device, stream, time(rows, 5),
                                   time(rows, 6), name, launch_of(rows.integer_or(7, -1)));
           if (row == kNoRow) return;
           Processes::Shape shape;
           shape.known = !rows.is_null(8) && !rows.is_null(11);
           for (int i = 0; i < 3; ++i) {
             shape.group[i] = rows.integer_or(8 + i, 1);
             shape.items[i] = rows.integer_or(11 + i, 1);
           }
           if (symbol != symbols_.end()) shape.registers = symbol->second.vgprs;
           shape.shared_bytes = rows.integer_or(14, -1);
           Processes::describe_kernel(*p, row, shape);
         });
    scan("rocpd_memory_copy" + suffix,
         {"pid", "start", "end", "name_id", "dst_agent_id?", "src_agent_id?", "size?", "queue_id?", "stream_id?",
          "event_id?"},
         [&](const SqliteRows& rows) {
           Process* p = process_of(rows.integer(0));
           if (!p) return;
           // A copy is drawn on the device that takes part; between two devices, on the receiving one.
           const int64_t to = rows.integer_or(4, -1), from = rows.integer_or(5, -1);
           const int64_t at = agents_.contains(to) ? to : agents_.contains(from) ? from : to;
           processes_.add_work(*p, kMemcpy, agent(*p, at).device, rows.integer_or(8, rows.integer_or(7, 0)),
                               time(rows, 1), time(rows, 2), copy_name(text(rows.integer(3))),
                               launch_of(rows.integer_or(9, -1)), rows.integer_or(6, -1));
         });
  }

  void read_memory(const std::string& suffix) {
    scan("rocpd_memory_allocate" + suffix, {"pid", "agent_id?", "type", "start", "address", "size?"},
         [&](const SqliteRows& rows) {
           Process* p = process_of(rows.integer(0));
           if (!p) return;
           const int64_t bytes = rows.text(2) == "FREE" ? 0 : rows.integer_or(5, 0);
           if (bytes > 0 || rows.text(2) == "FREE")
             Processes::add_allocation(*p, time(rows, 3), rows.integer(4), bytes,
                                       agent(*p, rows.integer_or(1, 0)).device);
         });
  }

  void read_counters(const std::string& suffix) {
    std::map<int64_t, std::string> names;
    scan("rocpd_info_pmc" + suffix, {"id", "name"},
         [&](const SqliteRows& rows) { names[rows.integer(0)] = valid_utf8(rows.text(1)); });
    NumberMap time_of;  // event → index into times
    std::vector<int64_t> times;
    scan("rocpd_sample" + suffix, {"timestamp", "event_id?"}, [&](const SqliteRows& rows) {
      if (rows.is_null(1)) return;
      time_of.replace(rows.integer(1), static_cast<uint32_t>(times.size()));
      times.push_back(rows.integer(0));
    });
    Process* p = times.empty() ? nullptr : processes_.last_of_these();
    if (!p) return;
    std::map<int64_t, size_t> series;
    scan("rocpd_pmc_event" + suffix, {"event_id", "pmc_id", "value"}, [&](const SqliteRows& rows) {
      const uint32_t at = time_of.get(rows.integer(0));
      if (at == NumberMap::kNone || times[at] < 0 || times[at] > kMaxTimeNs) return;
      const auto [one, is_new] = series.try_emplace(rows.integer(1), p->out.part.counters.size());
      if (is_new) p->out.part.counters.push_back({names[rows.integer(1)], {}, {}});
      p->out.part.counters[one->second].time_ns.push_back(times[at]);
      p->out.part.counters[one->second].value.push_back(rows.real(2));
    });
  }

  const SqliteDb& db_;
  Record& out_;
  Processes processes_;
  std::vector<std::string> texts_;
  NumberMap text_of_;
  std::vector<Event> events_;
  NumberMap event_of_;
  std::map<int64_t, Agent> agents_;
  std::map<int64_t, int64_t> threads_, pids_;
  std::map<int64_t, Symbol> symbols_;
};

}  // namespace

Dialect dialect_of(const std::string& path) {
  Diagnostics ignored;
  const Result<SqliteDb> db = SqliteDb::open_read(path, ignored);
  if (!db) return Dialect::kNone;
  if (db->has_table("rocpd_api") && db->has_table("rocpd_op")) return Dialect::kRpd;
  SqliteRows rows(*db, "SELECT 1 FROM sqlite_master WHERE type='table' AND name LIKE 'rocpd_metadata%' LIMIT 1");
  return rows.next() ? Dialect::kRocpd : Dialect::kNone;
}

bool is_damaged(const std::string& path) {
  Diagnostics ignored;
  const Result<SqliteDb> db = SqliteDb::open_read(path, ignored);
  if (!db) return true;
  SqliteRows rows(*db, "SELECT name FROM sqlite_master");
  while (rows.next()) continue;
  return !rows.ok();
}

Result<Record> read_database(const std::string& path) {
  Record out;
  out.written_by = "rocprofiler-sdk";
  out.path = path;
  const Dialect dialect = dialect_of(path);
  TRY(db, SqliteDb::open_read(path, out.notes));
  if (dialect == Dialect::kRpd) DatabaseReader(*db, out).read_rpd();
  else DatabaseReader(*db, out).read_rocpd();
  if (out.processes.empty()) return input_error("rocpd.empty_database", {path});
  return out;
}

}  // namespace stageline::rocpd
