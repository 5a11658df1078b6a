#include "base/csv.h"
#include "base/input.h"
#include "readers/common/cut_table.h"
#include "readers/reader.h"
#include "readers/rocpd/problems.h"
#include "readers/rocpd/processes.h"

namespace stageline::rocpd {
namespace {

using namespace gpu_rows;
using Process = Processes::Process;

struct Header {
  std::map<std::string, size_t, std::less<>> at;  // column → position

  explicit Header(const std::vector<std::string_view>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) at.try_emplace(std::string(trim(fields[i])), i);
  }
  bool has(std::initializer_list<std::string_view> columns) const {
    return std::ranges::all_of(columns, [&](std::string_view c) { return at.contains(c); });
  }
};

std::optional<TableKind> kind_of(const Header& header) {
  if (header.has({"Agent_Type", "Node_Id"})) return TableKind::kAgents;
  if (!header.has({"Start_Timestamp", "End_Timestamp"}) || header.has({"Counter_Name"})) return {};
  if (header.has({"Kernel_Name", "Agent_Id"})) return TableKind::kKernels;
  if (header.has({"Direction"})) return TableKind::kCopies;
  if (header.has({"Operation", "Allocation_Size", "Address"})) return TableKind::kAllocations;
  if (header.has({"Domain", "Function"})) return TableKind::kCalls;
  return {};
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// One row, by the names of its columns.
class Row {
 public:
  Row(const Header& header, const std::vector<std::string_view>& fields) : header_(header), fields_(fields) {}
  std::string_view text(std::string_view column) const {
    const auto at = header_.at.find(column);
    return at == header_.at.end() || at->second >= fields_.size() ? std::string_view() : fields_[at->second];
  }
  int64_t number(std::string_view column, int64_t otherwise) const {
    return parse_int(trim(text(column))).value_or(otherwise);
  }
  std::optional<int64_t> time(std::string_view column) const { return parse_int(trim(text(column))); }

 private:
  const Header& header_;
  const std::vector<std::string_view>& fields_;
};

class TablesReader {
 public:
  TablesReader(const std::string& path, std::string host) : path_(path), host_(std::move(host)), processes_(path) {}

  Result<Record> read(const std::vector<TableFile>& files, Progress* progress) {
    out_.path = path_;
    out_.written_by = "rocprofiler-sdk";
    for (const TableFile& file : files) {
      bad_ = 0;
      read_file(file, progress);
      out_.notes.add(problem::rocpd_bad_row, {file.path}, bad_);
    }
    processes_.finish(out_);
    if (out_.processes.empty()) return input_error("rocpd.empty_tables", {path_});
    return std::move(out_);
  }

 private:
  void read_file(const TableFile& file, Progress* progress) {
    Result<Input> input = Input::open(file.path, progress);
    std::optional<Error> stopped;
    if (input) {
      std::optional<Header> header;
      bool whole_row = true;
      std::vector<std::string_view> fields;
      std::vector<std::string> storage;
      const Result<int64_t> end = for_each_window(*input, [&](std::string_view window, int64_t offset) {
        if (offset == 0) window = without_mark(window);
        whole_row = window.ends_with('\n');
        int64_t lines = 0;
        while (next_csv_record(window, fields, storage, &lines)) {
          if (fields.size() == 1 && trim(fields[0]).empty()) continue;
          if (!header) header.emplace(fields);
          else if (fields.size() < header->at.size() || is_damaged(fields, header->at.size())) ++bad_;
          else take(file.kind, Row(*header, fields));
        }
      });
      if (!end) stopped = end.error();
      if (end && !whole_row) note_cut_table(file.path, out_.notes);
    } else {
      stopped = input.error();
    }
    if (stopped)
      out_.notes.add(problem::rocpd_read_stopped_table, Args().set("why", error_text(*stopped)),
                     {file.path, 0, stopped->where.byte});
  }

  // A block of a file that was lost is zeros. A row that lost its end has the fields of the next row, too.
  static bool is_damaged(const std::vector<std::string_view>& fields, size_t width) {
    for (size_t i = 0; i < fields.size(); ++i)
      if ((i >= width && !trim(fields[i]).empty()) || fields[i].find('\0') != std::string_view::npos) return true;
    return false;
  }

  void take(TableKind kind, const Row& row) {
    if (kind == TableKind::kAgents) return take_agent(row);
    const auto start = row.time("Start_Timestamp"), end = row.time("End_Timestamp");
    if (!start || !end) {
      ++bad_;
      return;
    }
    Process* p = process_of(row);
    if (!p) return;
    const int64_t launch = row.number("Correlation_Id", 0);
    switch (kind) {
      case TableKind::kCalls:
        processes_.add_call(*p, row.text("Domain"), row.number("Thread_Id", p->pid), *start, *end,
                            valid_utf8(row.text("Function")), launch);
        break;
      case TableKind::kKernels: take_kernel(*p, row, *start, *end, launch); break;
      case TableKind::kCopies: {
        const Agent *to = agent(row.text("Destination_Agent_Id")), *from = agent(row.text("Source_Agent_Id"));
        processes_.add_work(*p, kMemcpy, device(*p, to ? to : from, row.text("Destination_Agent_Id")),
                            row.number("Stream_Id", 0), *start, *end, copy_name(row.text("Direction")), launch);
        break;
      }
      case TableKind::kAllocations: take_allocation(*p, row, *start); break;
      case TableKind::kAgents: break;
    }
  }

  // Tables of device work that rocprofv3 wrote itself name no process: they belong to the one whose calls are next to
  // them.
  Process* process_of(const Row& row) {
    const int64_t pid = row.number("Process_Id", -1);
    if (pid >= 0) return named(pid);
    return processes_.empty() ? named(pid_in_name()) : processes_.first();
  }
  // Returns the process in a name, "4242_kernel_trace.csv".
  int64_t pid_in_name() const {
    const std::string name = file_name(path_);
    return parse_int(std::string_view(name).substr(0, name.find('_'))).value_or(0);
  }
  Process* named(int64_t pid) {
    Process* p = processes_.of(pid, pid);
    if (p && p->host.empty()) p->host = host_;
    return p;
  }

  void take_agent(const Row& row) {
    if (row.text("Agent_Type") != "GPU") return;
    const std::string_view product = row.text("Product_Name");
    agents_.push_back({row.number("Node_Id", -1), row.number("Logical_Node_Id", -1), std::ssize(agents_),
                       valid_utf8(product.empty() ? row.text("Name") : product)});
  }

  struct Agent {
    int64_t node = -1, logical_node = -1;
    int64_t device = 0;  // number among the GPUs
    std::string name;
  };
  // Splits "Agent 4" and "4". These are the number of the machine's node or, with --agent-index relative, the one that
  // the process sees. "GPU 0" is a number among the GPUs.
  static std::pair<std::string_view, int64_t> agent_number(std::string_view text) {
    const size_t space = text.rfind(' ');
    const std::string_view digits = space == std::string_view::npos ? text : text.substr(space + 1);
    return {space == std::string_view::npos ? std::string_view() : text.substr(0, space),
            parse_int(digits).value_or(-1)};
  }
  const Agent* agent(std::string_view text) const {
    const auto [word, number] = agent_number(text);
    if (number < 0 || word == "CPU") return nullptr;
    for (const auto field : {&Agent::node, &Agent::logical_node}) {
      const auto wanted = word == "GPU" ? &Agent::device : field;
      for (const Agent& one : agents_)
        if (one.*wanted == number) return &one;
    }
    return nullptr;
  }
  static int64_t device(Process& process, const Agent* found, std::string_view text) {
    if (!found) return std::max<int64_t>(agent_number(text).second, 0);
    if (!found->name.empty()) process.device_name.try_emplace(found->device, found->name);
    return found->device;
  }

  void take_kernel(Process& process, const Row& row, int64_t start, int64_t end, int64_t launch) {
    const std::string_view at = row.text("Agent_Id");
    const std::string name = valid_utf8(row.text("Kernel_Name"));
    const uint32_t made = processes_.add_work(
        process, kKernel, device(process, agent(at), at), row.number("Stream_Id", row.number("Queue_Id", 0)), start,
        end, name.empty() ? "kernel " + std::to_string(row.number("Kernel_Id", 0)) : name, launch);
    if (made == kNoRow) return;
    Processes::Shape shape;
    constexpr const char* kAxes[] = {"X", "Y", "Z"};
    shape.known = row.number("Workgroup_Size_X", -1) > 0 && row.number("Grid_Size_X", -1) > 0;
    for (int i = 0; i < 3; ++i) {
      shape.group[i] = row.number(std::string("Workgroup_Size_") + kAxes[i], 1);
      shape.items[i] = row.number(std::string("Grid_Size_") + kAxes[i], 1);
    }
    shape.registers = row.number("VGPR_Count", -1);
    shape.shared_bytes = row.number("LDS_Block_Size", row.number("Group_Segment_Size", -1));
    Processes::describe_kernel(process, made, shape);
  }

  void take_allocation(Process& process, const Row& row, int64_t start) {
    const bool frees = row.text("Operation").ends_with("FREE");
    const int64_t bytes = frees ? 0 : row.number("Allocation_Size", 0);
    const std::optional<uint64_t> address = parse_address(trim(row.text("Address")));
    if (!address || (bytes <= 0 && !frees)) return;
    const std::string_view at = row.text("Agent_Id");
    // A free does not name its device, so that of its allocation is used.
    const int64_t on = frees ? device_of_[*address] : device(process, agent(at), at);
    device_of_[*address] = on;
    Processes::add_allocation(process, start, *address, bytes, on);
  }

  const std::string path_, host_;
  Record out_;
  Processes processes_;
  std::vector<Agent> agents_;
  std::map<uint64_t, int64_t> device_of_;
  int64_t bad_ = 0;
};

// rocprofv3 writes HOST/PID_….csv unless another place is given.
std::string folder_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : file_name(path.substr(0, slash));
}

}  // namespace

std::optional<TableKind> table_kind(std::string_view head) {
  head = without_mark(head);
  head = head.substr(0, head.find('\n'));
  if (!holds(head, "_Timestamp") && !holds(head, "Agent_Type")) return {};
  head = head.substr(0, head.find('\r'));
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  if (!next_csv_record(head, fields, storage, &lines)) return {};
  return kind_of(Header(fields));
}

std::string table_stem(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (const std::string_view end :
       {"agent_info", "kernel_trace", "memory_copy_trace", "memory_allocation_trace", "hip_api_trace", "hip_trace",
        "hip_runtime_api_trace", "hip_compiler_api_trace", "hsa_api_trace", "hsa_trace", "marker_api_trace",
        "marker_trace", "rccl_api_trace", "rccl_trace", "regions_trace", "rocdecode_api_trace", "rocjpeg_api_trace"}) {
    const size_t at = name.find(end);
    if (at == std::string_view::npos) continue;
    if (at == 0) return std::string(path.substr(0, path.size() - name.size()));
    if (name[at - 1] == '_' || name[at - 1] == '-' || name[at - 1] == '.')
      return std::string(path.substr(0, path.size() - name.size() + at - 1));
  }
  return std::string(path);
}

Result<Record> read_tables(std::vector<TableFile> files, Progress* progress) {
  // Names of devices come before what runs on them, and calls of processes before work that names no process.
  sort_stably(files, [](const auto& a, const auto& b) { return a.kind < b.kind; });
  const auto shown = std::ranges::find_if(files, [](const auto& f) { return f.kind != TableKind::kAgents; });
  const std::string path = shown == files.end() ? files.front().path : shown->path;
  return TablesReader(path, folder_name(path)).read(files, progress);
}

}  // namespace stageline::rocpd
