#include "readers/rocpd/database.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/json_tree.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/sqlite_db.h"
#include "base/text.h"
#include "model/ops.h"
#include "readers/common/launched_work.h"
#include "readers/common/number_map.h"
#include "readers/common/part_builder.h"
#include "readers/common/range_message.h"
#include "readers/common/row_kinds.h"

namespace stageline::rocpd {
namespace {

using namespace gpu_rows;

constexpr size_t kMostProcesses = 4096, kMostSuffixes = 1024;

// "MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice" → "Memcpy HtoD".
std::string copy_name(std::string_view name) {
  std::string upper;
  for (const char c : name)
    if (c != '_') upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  const auto has = [&](std::string_view word) { return upper.find(word) != std::string::npos; };
  for (const auto& [word, text] : {std::pair("HOSTTODEVICE", "Memcpy HtoD"), std::pair("DEVICETOHOST", "Memcpy DtoH"),
                                   std::pair("DEVICETODEVICE", "Memcpy DtoD"), std::pair("HOSTTOHOST", "Memcpy HtoH")})
    if (has(word)) return text;
  return std::string(name);
}

std::string three(int64_t x, int64_t y, int64_t z) {
  return "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]";
}

// The rank that a process was told in its environment. Nothing else of it is looked at: it may hold secrets.
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

struct Process {
  Process(const std::string& path) : out(path, kKinds, "rocpd") {}
  PartBuilder out;
  int64_t pid = 0, device_rows = 0, host_rows = 0, first_device = -1, said_rank = -1;
  std::string host;
  LaunchedWork launched;
  std::map<int64_t, int64_t> size_at;  // address → bytes of what is allocated: frees do not say
};

class DatabaseReader {
 public:
  DatabaseReader(const SqliteDb& db, Database& out) : db_(db), out_(out) {}

  void read_rocpd() {
    for (const std::string& suffix : suffixes()) {
      texts_.clear();
      text_of_ = {};
      events_.clear();
      event_of_ = {};
      agents_.clear();
      threads_.clear();
      symbols_.clear();
      stacks_.clear();
      read_identity(suffix);
      read_events(suffix);
      read_regions(suffix);
      read_work(suffix);
      read_memory(suffix);
      read_counters(suffix);
      pids_.clear();
      ++generation_;
    }
    finish();
  }

  // rocmProfileData's .rpd: one process's calls and operations, linked by a table of pairs.
  void read_rpd() {
    out_.schema = "rpd";
    scan("rocpd_string", {"id", "string"}, [&](const SqliteRows& rows) { add_text(rows.integer(0), rows.text(1)); });
    std::map<int64_t, int64_t> copied;  // call → bytes
    scan("rocpd_copyapi", {"api_ptr_id", "size"},
         [&](const SqliteRows& rows) { copied[rows.integer(0)] = rows.integer(1); });
    NumberMap number_of_call, call_of_op;
    std::map<int64_t, Process*> of_call;
    uint32_t next = 1;
    scan("rocpd_api", {"id", "pid", "tid", "start", "end", "apiName_id", "args_id?"}, [&](const SqliteRows& rows) {
      Process* p = process(0, rows.integer(1), rows.integer(1));
      if (!p) return;
      const std::string_view name = text(rows.integer(5));
      const uint32_t number = next++;
      const bool is_marker = name == "UserMarker" || name == "roctxRangePush";
      const std::string_view arguments = text(rows.integer_or(6, -1));
      const uint32_t row =
          host_row(*p, is_marker ? kAnnotation : kRuntime, rows.integer(2), time(rows, 3), time(rows, 4),
                   is_marker && !arguments.empty() ? arguments : name, is_marker ? kNoCorrelation : number);
      if (row == kNoRow) return;
      number_of_call.put(rows.integer(0), number);
      of_call[rows.integer(0)] = p;
    });
    scan("rocpd_api_ops", {"api_id", "op_id"}, [&](const SqliteRows& rows) {
      const int64_t call = rows.integer(0);
      if (call >= 0 && call < UINT32_MAX) call_of_op.put(rows.integer(1), static_cast<uint32_t>(call));
    });
    scan("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"},
         [&](const SqliteRows& rows) {
           const uint32_t call = call_of_op.get(rows.integer(0));
           Process* p = call == NumberMap::kNone || !of_call.contains(call) ? any_process() : of_call[call];
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
           const uint32_t number = call == NumberMap::kNone ? kNoCorrelation : number_of_call.get(call);
           const uint32_t row = device_row(*p, kind, rows.integer_or(1, 0), rows.integer_or(2, 0), time(rows, 3),
                                           time(rows, 4), name, number == NumberMap::kNone ? kNoCorrelation : number);
           if (row == kNoRow || !copy) return;
           if (const auto bytes = copied.find(call); bytes != copied.end())
             add_copy(*p, row, bytes->second, rows, 3, 4);
         });
    finish();
  }

 private:
  // Tables bear a uuid at their ends, one a process; merged files have several. Without any: one of "".
  std::vector<std::string> suffixes() {
    std::vector<std::string> out;
    SqliteRows rows(db_,
                    "SELECT name FROM sqlite_master WHERE type='table' AND name LIKE 'rocpd_string%' ORDER BY name");
    while (rows.next() && out.size() < kMostSuffixes)
      out.push_back(std::string(rows.text(0).substr(std::string_view("rocpd_string").size())));
    return out;
  }

  template <class Use>
  bool scan(const std::string& table, std::initializer_list<std::string_view> columns, Use use) {
    std::string missing;
    SqliteRows rows = rows_of(db_, table, columns, &missing);
    while (rows.next()) use(rows);
    if (!rows.ok())
      out_.notes.add("rocpd.damaged_table", Severity::kLoss,
                     "table " + table + " is damaged after " + std::to_string(rows.count()) + " rows, which were kept",
                     {out_.path});
    if (missing.find('.') != std::string::npos)
      out_.notes.add("rocpd.missing_column", Severity::kLoss,
                     "a table without a column that it must have was left out: " + missing +
                         "; rocpd convert --output-format pftrace makes a file that is read",
                     {out_.path});
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

  Process* process(int generation, int64_t id, int64_t pid) {
    const std::pair key(generation, id);
    const auto at = processes_.find(key);
    if (at != processes_.end()) return at->second.get();
    if (processes_.size() >= kMostProcesses) return nullptr;
    Process* made = processes_.emplace(key, std::make_unique<Process>(out_.path)).first->second.get();
    made->pid = pid;
    return made;
  }
  Process* any_process() { return processes_.empty() ? process(0, 0, 0) : processes_.begin()->second.get(); }
  // Columns "pid" name a row of rocpd_info_process; in most files the two are the same number.
  Process* process_of(int64_t id) {
    const auto pid = pids_.find(id);
    return process(generation_, id, pid == pids_.end() ? id : pid->second);
  }

  uint32_t host_row(Process& p, Kind kind, int64_t tid, int64_t start, int64_t end, std::string_view name,
                    uint32_t number) {
    const uint32_t lane = p.out.host_lane(p.pid, tid);
    const uint32_t row = p.out.add(lane, kind, start, end, p.out.text(name), number);
    if (row == kNoRow) return row;
    ++p.host_rows;
    if (number != kNoCorrelation) p.launched.add_launch(tid, start, number);
    if (kind == kAnnotation) p.launched.add_range({tid, start, end, row, 0});
    return row;
  }
  uint32_t device_row(Process& p, Kind kind, int64_t device, int64_t stream, int64_t start, int64_t end,
                      std::string_view name, uint32_t number) {
    const uint32_t lane = p.out.stream_lane(device, stream);
    const uint32_t row = p.out.add(lane, kind, start, end, p.out.text(name), number);
    if (row == kNoRow) return row;
    ++p.device_rows;
    if (kind != kSync) p.launched.add_work({lane, row, start, std::max(start, end), number});
    if (p.first_device < 0 || device < p.first_device) p.first_device = device;
    return row;
  }
  static void add_copy(Process& p, uint32_t row, int64_t bytes, const SqliteRows& rows, int start, int end) {
    if (bytes < 0) return;
    const int64_t ns = between_ns(time(rows, start), time(rows, end));
    p.out.copies.push_back({row, bytes, ns > 0 ? static_cast<double>(bytes) / static_cast<double>(ns) : 0});
  }

  struct Agent {
    int64_t device = 0;  // among the GPUs
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
      if (rows.text(0) == "schema_version") out_.schema = valid_utf8(rows.text(1));
    });
    std::map<int64_t, std::string> host;
    scan("rocpd_info_node" + suffix, {"id", "hostname?", "system_name?"},
         [&](const SqliteRows& rows) { host[rows.integer(0)] = valid_utf8(rows.text(1)); });
    scan("rocpd_info_process" + suffix, {"id", "nid?", "pid", "environment?"}, [&](const SqliteRows& rows) {
      pids_[rows.integer(0)] = rows.integer(2);
      Process* p = process_of(rows.integer(0));
      if (!p) return;
      p->host = host[rows.integer(1)];
      p->said_rank = rank_of_environment(rows.text(3));
    });
    scan("rocpd_info_thread" + suffix, {"id", "tid"},
         [&](const SqliteRows& rows) { threads_[rows.integer(0)] = rows.integer(1); });
    scan("rocpd_info_agent" + suffix, {"id", "type", "type_index?", "product_name?", "name?"},
         [&](const SqliteRows& rows) {
           if (rows.text(1) != "GPU") return;
           const std::string_view product = rows.text(3);
           agents_[rows.integer(0)] = {rows.integer_or(2, static_cast<int64_t>(agents_.size())),
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
  // The profiler's numbers of calls may be of 64 bits; they are counted anew.
  uint32_t number_of(const Event* of) {
    if (!of || of->stack == 0) return kNoCorrelation;
    return stacks_.try_emplace(of->stack, ++last_number_).first->second;
  }

  int64_t thread(int64_t id) const {
    const auto at = threads_.find(id);
    return at == threads_.end() ? id : at->second;
  }

  void read_regions(const std::string& suffix) {
    std::map<int64_t, std::map<std::string, std::string>> arguments;  // of RCCL's calls
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
      Kind kind = kHostCall;
      if (category.starts_with("HIP_")) kind = kRuntime;
      if (category.starts_with("HSA_")) kind = kDriver;
      if (category.starts_with("MARKER_")) kind = kAnnotation;
      if (category.starts_with("RCCL_")) kind = kOperator;
      const bool launches = kind == kRuntime || kind == kDriver;
      const std::string said = kind == kAnnotation && of && !of->message.empty() ? of->message : std::string(name);
      const RangeText range = kind == kAnnotation ? parse_range_message(said) : RangeText{};
      const uint32_t row = host_row(*p, kind, thread(rows.integer(1)), time(rows, 2), time(rows, 3),
                                    kind == kAnnotation ? std::string_view(range.name) : std::string_view(said),
                                    launches ? number_of(of) : kNoCorrelation);
      if (row == kNoRow) return;
      if (kind == kAnnotation)
        p->out.ranges.push_back(
            {row, p->out.text(said), p->out.text("roctx"), range.micro_batch, range.chunk, range.stage, range.step});
      if (kind == kOperator) {
        calls.push_back({p, row, rows.integer_or(5, -1), std::string(name)});
        wanted.insert(rows.integer_or(5, -1));
      }
    });
    if (calls.empty()) return;
    scan("rocpd_arg" + suffix, {"event_id", "name", "value"}, [&](const SqliteRows& rows) {
      if (wanted.contains(rows.integer(0)))
        arguments[rows.integer(0)][std::string(rows.text(1))] = valid_utf8(rows.text(2));
    });
    for (const Call& call : calls) add_collective(*call.process, call.row, call.name, arguments[call.event]);
  }

  // ncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream): names of the arguments as RCCL has them.
  static void add_collective(Process& p, uint32_t row, const std::string& name,
                             std::map<std::string, std::string>& arguments) {
    const auto count = parse_int(arguments["count"].empty() ? arguments["sendcount"] : arguments["count"]);
    if (!count || *count < 0 || !name.starts_with("nccl")) return;
    CollectiveFact fact;
    fact.slice = row;
    fact.name = p.out.text(name.substr(4));
    const std::string& type = arguments["datatype"];
    constexpr std::pair<std::string_view, std::pair<const char*, int>> kTypes[] = {
        {"Float16", {"Half", 2}},   {"Half", {"Half", 2}},  {"Bfloat16", {"BFloat16", 2}}, {"Float32", {"Float", 4}},
        {"Float64", {"Double", 8}}, {"Int8", {"Char", 1}},  {"Uint8", {"Byte", 1}},        {"Int32", {"Int", 4}},
        {"Int64", {"Long", 8}},     {"Float", {"Float", 4}}};
    for (const auto& [spelt, known] : kTypes)
      if (type.find(spelt) != std::string::npos) {
        fact.dtype = p.out.text(known.first);
        if (*count < (int64_t{1} << 58)) fact.bytes = *count * known.second;
        break;
      }
    fact.in_elements = *count;
    if (!arguments["comm"].empty()) fact.group = p.out.text("communicator " + arguments["comm"]);
    if (const auto peer = parse_int(arguments["peer"])) fact.peer = *peer;
    p.out.collectives.push_back(fact);
  }

  const Agent& agent(Process& p, int64_t id) {
    const auto [at, is_new] = agents_.try_emplace(id, Agent{id, ""});
    if (!at->second.name.empty() && !device_names_.contains({&p, at->second.device}))
      device_names_[{&p, at->second.device}] = at->second.name;
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
           const Event* of = event(rows.integer_or(7, -1));
           const int64_t stream = rows.integer_or(4, rows.integer_or(3, 0));
           const uint32_t row = device_row(*p, kKernel, agent(*p, rows.integer_or(1, 0)).device, stream, time(rows, 5),
                                           time(rows, 6), name, number_of(of));
           if (row == kNoRow) return;
           KernelFact fact;
           fact.slice = row;
           if (symbol != symbols_.end())
             fact.registers = static_cast<int32_t>(std::clamp<int64_t>(symbol->second.vgprs, -1, 65'536));
           fact.shared_bytes = static_cast<int32_t>(std::clamp<int64_t>(rows.integer_or(14, -1), -1, INT32_MAX));
           if (!rows.is_null(8) && !rows.is_null(11)) {
             // The grid is of work items; blocks are what other profilers count.
             int64_t group[3], blocks[3];
             for (int i = 0; i < 3; ++i) {
               group[i] = std::clamp<int64_t>(rows.integer_or(8 + i, 1), 1, 1 << 20);
               const int64_t items = std::clamp<int64_t>(rows.integer_or(11 + i, 1), 1, int64_t{1} << 40);
               blocks[i] = (items + group[i] - 1) / group[i];
             }
             fact.block = p->out.text(three(group[0], group[1], group[2]));
             fact.grid = p->out.text(three(blocks[0], blocks[1], blocks[2]));
           }
           p->out.kernels.push_back(fact);
         });
    scan("rocpd_memory_copy" + suffix,
         {"pid", "start", "end", "name_id", "dst_agent_id?", "src_agent_id?", "size?", "queue_id?", "stream_id?",
          "event_id?"},
         [&](const SqliteRows& rows) {
           Process* p = process_of(rows.integer(0));
           if (!p) return;
           // A copy is drawn at the device that takes part; of two devices at the one that receives.
           const int64_t to = rows.integer_or(4, -1), from = rows.integer_or(5, -1);
           const int64_t at = agents_.contains(to) ? to : agents_.contains(from) ? from : to;
           const uint32_t row =
               device_row(*p, kMemcpy, agent(*p, at).device, rows.integer_or(8, rows.integer_or(7, 0)), time(rows, 1),
                          time(rows, 2), copy_name(text(rows.integer(3))), number_of(event(rows.integer_or(9, -1))));
           if (row != kNoRow) add_copy(*p, row, rows.integer_or(6, -1), rows, 1, 2);
         });
  }

  void read_memory(const std::string& suffix) {
    scan("rocpd_memory_allocate" + suffix, {"pid", "agent_id?", "type", "start", "address", "size?"},
         [&](const SqliteRows& rows) {
           Process* p = process_of(rows.integer(0));
           const int64_t at = time(rows, 3), address = rows.integer(4);
           if (!p || at < 0 || at > kMaxTimeNs) return;
           const std::string_view type = rows.text(2);
           MemoryRecord record;
           record.time_ns = at;
           record.address = static_cast<uint64_t>(address);
           if (type == "FREE") {
             const auto known = p->size_at.find(address);
             if (known == p->size_at.end()) return;
             record.bytes = -known->second;
             p->size_at.erase(known);
           } else {
             record.bytes = rows.integer_or(5, 0);
             if (record.bytes <= 0) return;
             p->size_at[address] = record.bytes;
           }
           record.device_type = 1;
           record.device_id =
               static_cast<int32_t>(std::clamp<int64_t>(agent(*p, rows.integer_or(1, 0)).device, -1, 4096));
           record.file_index = static_cast<uint32_t>(p->out.part.memory.size());
           p->out.part.memory.push_back(record);
         });
  }

  void read_counters(const std::string& suffix) {
    std::map<int64_t, std::string> names;
    scan("rocpd_info_pmc" + suffix, {"id", "name"},
         [&](const SqliteRows& rows) { names[rows.integer(0)] = valid_utf8(rows.text(1)); });
    NumberMap time_of;  // event → into times
    std::vector<int64_t> times;
    scan("rocpd_sample" + suffix, {"timestamp", "event_id?"}, [&](const SqliteRows& rows) {
      if (rows.is_null(1)) return;
      time_of.replace(rows.integer(1), static_cast<uint32_t>(times.size()));
      times.push_back(rows.integer(0));
    });
    if (times.empty() || processes_.empty()) return;
    Process* p = nullptr;
    for (auto& [key, one] : processes_)
      if (key.first == generation_) p = one.get();
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

  void finish() {
    bool any_device = false;
    for (const auto& [key, p] : processes_) any_device = any_device || p->device_rows > 0;
    for (auto& [key, p] : processes_) {
      if (any_device ? p->device_rows == 0 : p->host_rows == 0) {
        out_.left_out_processes += p->host_rows > 0;
        continue;
      }
      ProcessPart done;
      done.pid = p->pid;
      done.device_rows = p->device_rows;
      done.host_rows = p->host_rows;
      done.first_device = p->first_device;
      done.said_rank = p->said_rank;
      p->launched.settle();
      p->launched.project(p->out, kDeviceRange);
      if (p->launched.gave_up())
        p->out.notes.add("rocpd.not_projected", Severity::kLoss,
                         "so many launches lie in nested ranges that the last of these were not drawn on the devices",
                         {out_.path});
      Part& part = p->out.part;
      part.machine_name = p->host;
      part.device = static_cast<int32_t>(std::clamp<int64_t>(p->first_device, -1, 4096));
      part.event_count = static_cast<int64_t>(p->out.row_count());
      std::string devices;
      for (const auto& [of, name] : device_names_)
        if (of.first == p.get())
          devices += (devices.empty() ? "[" : ",") + std::string("{\"id\":") + std::to_string(of.second) +
                     ",\"name\":" + json_quoted(name) + "}";
      if (!devices.empty()) part.metadata.push_back({"deviceProperties", devices + "]"});
      done.part = p->out.finish(done.names);
      done.notes = std::move(p->out.notes);
      out_.processes.push_back(std::move(done));
    }
  }

  const SqliteDb& db_;
  Database& out_;
  int generation_ = 0;
  std::vector<std::string> texts_;
  NumberMap text_of_;
  std::vector<Event> events_;
  NumberMap event_of_;
  std::map<int64_t, Agent> agents_;
  std::map<int64_t, int64_t> threads_, pids_;
  std::map<int64_t, Symbol> symbols_;
  std::map<int64_t, uint32_t> stacks_;
  uint32_t last_number_ = 0;
  std::map<std::pair<Process*, int64_t>, std::string> device_names_;
  std::map<std::pair<int, int64_t>, std::unique_ptr<Process>> processes_;
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

Result<Database> read_database(const std::string& path) {
  Database out;
  out.path = path;
  const Dialect dialect = dialect_of(path);
  Result<SqliteDb> db = SqliteDb::open_read(path, out.notes);
  if (!db) return std::move(db).error();
  if (dialect == Dialect::kRpd)
    DatabaseReader(*db, out).read_rpd();
  else
    DatabaseReader(*db, out).read_rocpd();
  if (out.processes.empty())
    return Error{ErrorCode::kBadInput,
                 "this database of AMD's profiler has no calls and no work of a device that could be read",
                 {path},
                 "record with rocprofv3 --sys-trace, or rocpd convert -i FILE.db --output-format pftrace"};
  return out;
}

}  // namespace stageline::rocpd
