// Reads the marks of the host (MSTX_EVENTS) and the tasks of the device (TASK, with the tables that say more of them).
#include <cctype>

#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {

// Reads MSTX_EVENTS: marks of the user's code and of the profiler, on the host.

namespace {

constexpr int64_t kMarker = 0, kMarkerEx = 3;  // values of ENUM_MSTX_EVENT_TYPE that are instants

uint32_t range_text(RankDb& rank, uint32_t message, uint32_t domain, std::map<uint64_t, uint32_t>& known) {
  const auto [it, added] =
      known.try_emplace(static_cast<uint64_t>(message) << 32 | domain, static_cast<uint32_t>(rank.range_texts.size()));
  if (added) {
    RangeTextInfo info;
    info.parsed = parse_range_message(rank.out.text_of(message));
    info.message = message;
    info.domain = domain;
    info.communication = rank.out.text_of(domain) == "communication";
    info.name = rank.out.text(info.parsed.name);
    if (!info.communication) info.parsed.members.clear();
    rank.range_texts.push_back(std::move(info));
  }
  return it->second;
}

// Reads TASK: everything that ran on the device. Other tables say what a row is: a kernel (COMPUTE_TASK_INFO), a piece
// of a communication operation (COMMUNICATION_TASK_INFO), or the device side of a range (MSTX_EVENTS). The rest, copies
// and waits, is recognised by its type.

bool contains_no_case(std::string_view text, std::string_view upper_word) {
  const auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), upper_word.begin(), upper_word.end(), same) != text.end();
}

// Returns the kind of a task by its type alone. Some levels have no COMPUTE_TASK_INFO; then tasks of the compute units
// are kernels.
RowKind kind_of_type(std::string_view type, bool has_compute_info) {
  if (contains_no_case(type, "MEMSET")) return RowKind::kMemset;
  if (contains_no_case(type, "MEMCPY")) return RowKind::kMemcpy;
  if (contains_no_case(type, "MSTX")) return RowKind::kDeviceRange;
  if (!has_compute_info)
    for (const std::string_view unit : {"AI_CORE", "KERNEL_AI", "AICPU", "AI_CPU", "AI_VECTOR_CORE", "MIX_AI"})
      if (contains_no_case(type, unit)) return RowKind::kKernel;
  return RowKind::kDeviceSync;
}

// Names copies as other profilers do, so that every analysis of copies knows the direction.
std::string copy_name(RankDb& rank, std::string_view type, const CopyInfo& copy) {
  const std::string_view operation = rank.enum_name("ENUM_MEMCPY_OPERATION", copy.operation);
  if (operation.starts_with("host to host")) return "Memcpy HtoH";
  if (operation.starts_with("host to device")) return "Memcpy HtoD";
  if (operation.starts_with("device to host")) return "Memcpy DtoH";
  if (operation.ends_with("device to device")) return "Memcpy DtoD";
  return std::string(type);
}

void read_compute_info(RankDb& rank) {
  rank.scan("COMPUTE_TASK_INFO",
            {"globalTaskId", "name", "inputShapes?", "inputDataTypes?", "blockNum?", "blockDim?", "opType?",
             "taskType?", "outputShapes?"},
            [&](const SqliteRows& rows) {
              rank.has_compute_info = true;
              if (rank.only_ranges) return;
              ComputeInfo info;
              info.name = rank.texts.of(rows, 1);
              info.shapes = rank.texts.of(rows, 2);
              info.types = rank.texts.of(rows, 3);
              info.op_type = rank.texts.of(rows, 6);
              info.unit = rank.texts.of(rows, 7);
              info.outputs = rank.texts.of(rows, 8);
              // Since schema 1.2.0 blockNum is what blockDim was before.
              const int64_t blocks = rows.is_null(4) ? rows.integer_or(5, -1) : rows.integer(4);
              info.blocks = static_cast<int32_t>(std::clamp<int64_t>(blocks, -1, INT32_MAX));
              const auto index = static_cast<uint32_t>(rank.computes.size());
              if (rank.compute_of_task.put(rows.integer_or(0, -1), index) == index) rank.computes.push_back(info);
            });
  rank.scan("MEMCPY_INFO", {"globalTaskId", "size?", "memcpyOperation?"}, [&](const SqliteRows& rows) {
    const auto index = static_cast<uint32_t>(rank.copies.size());
    if (rank.copy_of_task.put(rows.integer_or(0, -1), index) == index)
      rank.copies.push_back({rows.integer_or(1, -1), rows.integer_or(2, -1)});
  });
}

struct TaskType {
  RowKind kind;
  uint32_t name;
};

class Tasks {
 public:
  explicit Tasks(RankDb& rank) : rank_(rank) {}

  void read() {
    rank_.scan("TASK", {"startNs", "endNs", "deviceId?", "connectionId?", "globalTaskId?", "taskType?", "streamId?"},
               [&](const SqliteRows& rows) { one(rows); });
  }

 private:
  void one(const SqliteRows& rows) {
    int64_t start = 0, end = 0;
    rank_.times(rows, 0, start, end);
    const int64_t connection = rows.integer_or(3, -1), task = rows.integer_or(4, -1);
    const uint32_t type = rank_.texts.of(rows, 5);
    const uint32_t compute = rank_.compute_of_task.get(task);
    const uint32_t transfer = compute == kNoIndex ? rank_.transfer_of_task.get(task) : kNoIndex;
    const uint32_t range =
        compute == kNoIndex && transfer == kNoIndex ? rank_.range_of_connection.get(connection) : kNoIndex;
    TaskType what = type_of(type);
    if (compute != kNoIndex) what = {RowKind::kKernel, rank_.computes[compute].name};
    else if (transfer != kNoIndex) what = {RowKind::kTransfer, rank_.transfers[transfer].task};
    else if (range != kNoIndex) what = {RowKind::kDeviceRange, rank_.range_texts[rank_.ranges[range].text].name};
    if (rank_.only_ranges && what.kind != RowKind::kDeviceRange) return;
    const uint32_t copy = what.kind == RowKind::kMemcpy ? rank_.copy_of_task.get(task) : kNoIndex;
    if (copy != kNoIndex) what.name = rank_.out.text(copy_name(rank_, rank_.out.text_of(type), rank_.copies[copy]));
    const int64_t device = rows.integer_or(2, rank_.out.part.device);
    const uint32_t row = rank_.out.add(rank_.out.stream_lane(device, rows.integer_or(6, -1)), what.kind, start, end,
                                       what.name, correlation_of(connection));
    if (row == kNoRow) return;
    if (compute != kNoIndex) kernel_facts(row, rank_.computes[compute]);
    if (transfer != kNoIndex) rank_.transfer_rows.emplace_back(row, transfer);
    if (copy != kNoIndex) rank_.out.copies.push_back({row, rank_.copies[copy].bytes, 0});
    if (range == kNoIndex) return;
    rank_.out.pair(rank_.ranges[range].row, row);
    add_range_operation(rank_, range, device, start, end);
  }

  TaskType type_of(uint32_t type) {
    if (type >= types_.size()) types_.resize(type + 1, {RowKind::kGarbage, 0});
    if (types_[type].kind == RowKind::kGarbage)
      types_[type] = {kind_of_type(rank_.out.text_of(type), rank_.has_compute_info), type};
    return types_[type];
  }

  void kernel_facts(uint32_t row, const ComputeInfo& info) {
    if (info.blocks > 0) {
      KernelFact fact{.slice = row, .grid = rank_.out.text("[" + std::to_string(info.blocks) + ", 1, 1]")};
      rank_.out.kernels.push_back(fact);
    }
    if (info.op_type != 0 || info.unit != 0) rank_.out.tasks.push_back({row, info.op_type, info.unit, info.outputs});
    if (info.shapes != 0 || info.types != 0) rank_.out.inputs.push_back({row, info.shapes, info.types, 0});
  }

  RankDb& rank_;
  std::vector<TaskType> types_;  // for each text of a type; kGarbage when it has not been asked for yet
};

}  // namespace

void read_ranges(RankDb& rank) {
  std::map<uint64_t, uint32_t> known;
  uint64_t last_key = UINT64_MAX;
  uint32_t last_text = 0;
  rank.scan(
      "MSTX_EVENTS", {"startNs", "endNs", "message", "globalTid", "eventType?", "domainId?", "connectionId?"},
      [&](const SqliteRows& rows) {
        int64_t start = 0, end = 0;
        rank.times(rows, 0, start, end);
        const uint32_t message = rank.texts.of(rows, 2), domain = rank.texts.of(rows, 5);
        const uint64_t key = static_cast<uint64_t>(message) << 32 | domain;
        if (key != last_key) last_text = range_text(rank, message, domain, known), last_key = key;
        const RangeTextInfo& text = rank.range_texts[last_text];
        const uint64_t tid = rows.integer(3);
        const uint32_t lane = rank.out.host_lane(tid >> 32, tid & 0xffffffffu);
        const int64_t type = rows.integer_or(4, -1);
        const int64_t connection = rows.integer_or(6, -1);
        if ((type == kMarker || type == kMarkerEx) && start >= 0 && start == end) {
          rank.out.part.marks.push_back({start, text.name, lane, static_cast<uint32_t>(rank.out.part.marks.size())});
          return;
        }
        const uint32_t row = rank.out.add(lane, RowKind::kRange, start, end, text.name, correlation_of(connection));
        if (row == kNoRow) return;
        if (!text.communication)
          rank.out.ranges.push_back({row, text.message, text.domain, text.parsed.micro_batch, text.parsed.chunk,
                                     text.parsed.stage, text.parsed.step});
        if (correlation_of(connection) == kNoCorrelation) return;
        const auto index = static_cast<uint32_t>(rank.ranges.size());
        rank.ranges.push_back({row, last_text, kNoIndex});
        if (rank.range_of_connection.put(connection, index) != index)
          rank.out.notes.add(problem::ascend_repeated_connection, {rank.db.path()});
      });
}

void read_tasks(RankDb& rank) {
  read_compute_info(rank);
  Tasks(rank).read();
}

}  // namespace stageline::ascend
