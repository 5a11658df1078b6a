#include "base/json_places.h"
#include "base/json_tree.h"
#include "readers/reader.h"
#include "readers/rocpd/problems.h"
#include "readers/rocpd/processes.h"

namespace stageline::rocpd {
namespace {

using namespace gpu_rows;
using Process = Processes::Process;

constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr std::string_view kRoot = "rocprofiler-sdk-tool";

int64_t whole(Value value, int64_t otherwise = -1) { return value.integer().value_or(otherwise); }
int64_t handle(Value value) { return whole(value["handle"]); }

// The numbers of a kind, and of an operation within it, are indices into these lists of names.
struct Names {
  struct Kind {
    std::string name;
    std::vector<std::string> operations;
  };
  std::vector<Kind> kinds;

  std::string_view kind(Value record) const {
    const Kind* at = find(record);
    return at ? std::string_view(at->name) : std::string_view();
  }
  std::string operation(Value record) const {
    const Kind* at = find(record);
    const int64_t k = whole(record["operation"]);
    if (at && k >= 0 && static_cast<size_t>(k) < at->operations.size()) return at->operations[k];
    return "operation " + std::to_string(k);
  }

 private:
  const Kind* find(Value record) const {
    const int64_t k = whole(record["kind"]);
    return k >= 0 && static_cast<size_t>(k) < kinds.size() ? &kinds[k] : nullptr;
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& path) : path_(path), processes_(path) {}

  Result<Record> read(Progress* progress) {
    out_.path = path_;
    out_.written_by = "rocprofiler-sdk";
    TRY(input, Input::open(path_, progress));
    const Result<JsonWalk> walk = walk_json(
        *input, [&](const JsonPath& path) { return place(path); },
        [&](const JsonPath& path, std::string_view text) { take(path, text); });
    flush();
    if (!walk)
      out_.notes.add(problem::rocpd_read_stopped, Args().set("why", error_text(walk.error())),
                     {path_, 0, walk.error().where.byte});
    else if (!walk->whole) out_.notes.add(problem::rocpd_read_stopped_damaged, {path_, 0, walk->broken_at});
    if (walk && walk->too_long > 0) out_.notes.add(problem::rocpd_bad_row_long, {path_}, walk->too_long);
    out_.notes.add(problem::rocpd_bad_row_json, {path_}, bad_);
    processes_.finish(out_);
    if (out_.processes.empty()) return input_error("rocpd.empty_json", {path_});
    return std::move(out_);
  }

 private:
  // From a path in {"rocprofiler-sdk-tool": [{…}, …]}, returns the section below a process, and the kind of record
  // within it.
  static std::pair<std::string_view, std::string_view> section(const JsonPath& path) {
    const size_t skip = path.size() > 1 && path[1].empty() ? 2 : 1;  // a single process may stand without the list
    if (path.size() <= skip) return {};
    return {path[skip], path.size() > skip + 1 ? std::string_view(path[skip + 1]) : std::string_view()};
  }

  JsonPlace place(const JsonPath& path) {
    if (path.empty()) return JsonPlace::kEnter;
    if (path[0] != kRoot) return JsonPlace::kPass;
    if (path.size() == 1 || (path.size() == 2 && path[1].empty())) {
      begin_process();
      return JsonPlace::kEnter;
    }
    const auto [name, kind] = section(path);
    if (name == "metadata" || name == "agents" || name == "kernel_symbols") return JsonPlace::kTake;
    if (name == "strings")
      return kind.empty()                                       ? JsonPlace::kEnter
             : kind == "buffer_records" || kind == "marker_api" ? JsonPlace::kTake
                                                                : JsonPlace::kPass;
    if (name != "buffer_records") return JsonPlace::kPass;
    if (kind.empty()) return JsonPlace::kEnter;
    constexpr std::string_view kKinds[] = {"kernel_dispatch", "hip_api",     "hsa_api",          "marker_api",
                                           "rccl_api",        "memory_copy", "memory_allocation"};
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) return JsonPlace::kPass;
    return path.back().empty() ? JsonPlace::kTake : JsonPlace::kEnter;
  }

  void take(const JsonPath& path, std::string_view text) {
    const auto [name, kind] = section(path);
    if (name == "buffer_records") {
      if (kind != batch_kind_ || batch_.size() > kBatchBytes) flush();
      batch_kind_ = kind;
      pieces_.emplace_back(batch_.size(), text.size());
      batch_ += text;
      batch_ += ',';
      return;
    }
    flush();
    const Result<JsonTree> tree = parse_json_tree(text, path_);
    if (!tree) {
      ++bad_;
      return;
    }
    const Value root = tree->tree.root();
    if (name == "metadata") take_metadata(root);
    if (name == "agents") take_agents(root);
    if (name == "kernel_symbols") take_symbols(root);
    if (name == "strings" && kind == "buffer_records") take_names(root);
    if (name == "strings" && kind == "marker_api")
      for (size_t i = 0; i < root.size(); ++i)
        messages_[whole(root.item(i)["key"])] = valid_utf8(root.item(i)["value"].text());
  }

  void begin_process() {
    flush();
    processes_.begin_next();
    agents_.clear();
    symbols_.clear();
    messages_.clear();
    names_ = {};
    process_ = processes_.of(0, 0);
  }

  void take_metadata(Value root) {
    if (!process_) return;
    process_->pid = whole(root["pid"], 0);
    process_->host = valid_utf8(root["node"]["hostname"].text());
  }
  void take_agents(Value root) {
    int64_t next = 0;
    for (size_t i = 0; i < root.size(); ++i) {
      const Value one = root.item(i);
      if (whole(one["type"]) != 2) continue;  // 1 is a CPU
      const std::string_view product = one["product_name"].text();
      agents_[handle(one["id"])] = {whole(one["logical_node_type_id"], next++),
                                    valid_utf8(product.empty() ? one["name"].text() : product)};
    }
  }
  void take_symbols(Value root) {
    for (size_t i = 0; i < root.size(); ++i) {
      const Value one = root.item(i);
      std::string_view name;
      for (const char* key : {"formatted_kernel_name", "demangled_kernel_name", "kernel_name"})
        if (name.empty()) name = one[key].text();
      symbols_[whole(one["kernel_id"])] = {valid_utf8(name), whole(one["arch_vgpr_count"])};
    }
  }
  void take_names(Value root) {
    for (size_t i = 0; i < root.size(); ++i) {
      Names::Kind& kind = names_.kinds.emplace_back();
      kind.name = root.item(i)["kind"].text();
      const Value operations = root.item(i)["operations"];
      for (size_t k = 0; k < operations.size(); ++k) kind.operations.push_back(valid_utf8(operations.item(k).text()));
    }
  }

  void flush() {
    if (batch_.empty()) return;
    batch_.back() = ']';
    const Result<JsonTree> all = parse_json_tree("[" + batch_, path_);
    if (all && all->broken_at < 0) {
      for (size_t i = 0; i < all->tree.root().size(); ++i) take_record(all->tree.root().item(i));
    } else {  // one of them is not JSON
      for (const auto& [at, size] : pieces_) {
        const Result<JsonTree> one = parse_json_tree(valid_utf8(std::string_view(batch_).substr(at, size)), path_);
        if (one && one->broken_at < 0) take_record(one->tree.root());
        else ++bad_;
      }
    }
    batch_.clear();
    pieces_.clear();
  }

  void take_record(Value record) {
    if (!process_) return;
    const auto start = record["start_timestamp"].integer(), end = record["end_timestamp"].integer();
    if (!start || !end) {
      ++bad_;
      return;
    }
    const int64_t launch = whole(record["correlation_id"]["internal"], 0);
    Process& p = *process_;
    if (batch_kind_ == "kernel_dispatch") {
      take_kernel(p, record, *start, *end, launch);
    } else if (batch_kind_ == "memory_copy") {
      const int64_t to = handle(record["dst_agent_id"]), from = handle(record["src_agent_id"]);
      const int64_t at = agents_.contains(to) ? to : agents_.contains(from) ? from : to;
      processes_.add_work(p, kMemcpy, device(p, at), std::max<int64_t>(handle(record["stream_id"]), 0), *start, *end,
                          copy_name(names_.operation(record)), launch, whole(record["bytes"]));
    } else if (batch_kind_ == "memory_allocation") {
      take_allocation(p, record, *start);
    } else {
      const std::string_view category = names_.kind(record);
      std::string name = names_.operation(record);
      if (category.starts_with("MARKER_"))
        if (const auto message = messages_.find(launch); message != messages_.end() && !message->second.empty())
          name = message->second;
      processes_.add_call(p, category, whole(record["thread_id"], p.pid), *start, *end, name, launch);
    }
  }

  void take_kernel(Process& process, Value record, int64_t start, int64_t end, int64_t launch) {
    const Value info = record["dispatch_info"];
    const int64_t id = whole(info["kernel_id"]);
    const auto symbol = symbols_.find(id);
    const bool named = symbol != symbols_.end() && !symbol->second.name.empty();
    const int64_t stream = handle(record["stream_id"]) >= 0 ? handle(record["stream_id"]) : handle(info["queue_id"]);
    const uint32_t row =
        processes_.add_work(process, kKernel, device(process, handle(info["agent_id"])), std::max<int64_t>(stream, 0),
                            start, end, named ? symbol->second.name : "kernel " + std::to_string(id), launch);
    if (row == kNoRow) return;
    Processes::Shape shape;
    shape.known = info["workgroup_size"].is_dict() && info["grid_size"].is_dict();
    for (int i = 0; i < 3; ++i) {
      constexpr const char* kAxes[] = {"x", "y", "z"};
      shape.group[i] = whole(info["workgroup_size"][kAxes[i]], 1);
      shape.items[i] = whole(info["grid_size"][kAxes[i]], 1);
    }
    if (symbol != symbols_.end()) shape.registers = symbol->second.registers;
    shape.shared_bytes = whole(info["group_segment_size"]);
    Processes::describe_kernel(process, row, shape);
  }

  void take_allocation(Process& process, Value record, int64_t start) {
    const std::string operation = names_.operation(record);
    const Value address = record["address"];  // "0x00007f…", or a number
    const std::optional<uint64_t> at =
        address.text().empty() ? address.unsigned_integer() : parse_address(address.text());
    const int64_t bytes = operation.ends_with("FREE") ? 0 : whole(record["allocation_size"], 0);
    if (at && (bytes > 0 || operation.ends_with("FREE")))
      Processes::add_allocation(process, start, *at, bytes, device(process, handle(record["agent_id"])));
  }

  int64_t device(Process& process, int64_t agent) {
    const auto at = agents_.find(agent);
    if (at == agents_.end()) return 0;
    if (!at->second.name.empty()) process.device_name.try_emplace(at->second.device, at->second.name);
    return at->second.device;
  }

  struct Agent {
    int64_t device = 0;  // number among the GPUs
    std::string name;
  };
  struct Symbol {
    std::string name;
    int64_t registers = -1;
  };
  const std::string path_;
  Record out_;
  Processes processes_;
  Process* process_ = nullptr;
  Names names_;
  std::map<int64_t, Agent> agents_;
  std::map<int64_t, Symbol> symbols_;
  std::map<int64_t, std::string> messages_;  // messages of markers, by correlation
  std::string batch_, batch_kind_;           // records, each followed by a comma, all of one kind
  std::vector<std::pair<size_t, size_t>> pieces_;
  int64_t bad_ = 0;
};

}  // namespace

bool is_tool_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return at != std::string_view::npos && head[at] == '{' &&
         head.substr(at, 4096).find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
}

Result<Record> read_tool_json(const std::string& path, Progress* progress) { return JsonReader(path).read(progress); }

}  // namespace stageline::rocpd
