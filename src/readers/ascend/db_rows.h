// Reads one rank's database table by table, in the order that read_rank_db() in rank_db.cc sets. Every table is read
// once, in the order of its rows, and joined through flat maps, since the files have no indexes.
//
//   MSTX_EVENTS ──connectionId──┐
//   CANN_API ─────connectionId──┼── TASK ──globalTaskId── COMPUTE_TASK_INFO, COMMUNICATION_TASK_INFO, MEMCPY_INFO
//   COMMUNICATION_OP ─connectionId┘   PYTORCH_API ──connectionId── CONNECTION_IDS ──connectionId── (the above)
#pragma once

#include "base/sqlite_db.h"
#include "readers/ascend/find_ranks.h"
#include "readers/common/number_map.h"
#include "readers/common/range_message.h"

namespace stageline::ascend {

// The texts in STRING_IDS of one database, read only when a row names them. A 20 GB file may hold more text than fits
// into memory, and a pipeline needs little of it.
class DbTexts {
 public:
  DbTexts(const SqliteDb& db, PartBuilder& builder);
  DbTexts(const DbTexts&) = delete;

  // Returns the builder's id of the STRING_IDS row `id`; 0 for NULL. A missing row gives the text "#<id>" and is
  // counted.
  uint32_t of(const SqliteRows& rows, int column);
  uint32_t of(int64_t id);
  bool has(int64_t id);

 private:
  uint32_t find(int64_t id);  // kNone when there is no such row
  uint32_t look_up(int64_t id);
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  PartBuilder& builder_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  NumberMap known_;
};

// Counts a scan's rows for the part, and its damage and missing columns in the notes. Returns whether the table exists.
bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing);

// Calls use(rows) for every row of a table. Returns false when the table, or a column without '?', does not exist.
// Damage is counted, and what came before it is kept.
template <class Use>
bool scan_table(const SqliteDb& db, PartBuilder& out, std::string_view table,
                std::initializer_list<std::string_view> columns, Use use) {
  std::string missing;
  SqliteRows rows = rows_of(db, table, columns, &missing);
  while (rows.next()) use(rows);
  return count_scan(out, table, rows, missing);
}

inline constexpr int64_t kNone32 = 4294967295;         // stands for "no value" in the profiler's tables
inline constexpr int64_t kHostOnlyRange = 4000000000;  // connectionId of a range that has no device side
inline constexpr uint32_t kNoIndex = NumberMap::kNone;

struct CommGroup {             // an entry of parallel_group_info
  std::string description;     // "pp", "tp", "dp_cp", …
  std::vector<int32_t> ranks;  // global ranks, by rank within the group
  int32_t own_rank = -1;
};

struct RangeRow {  // a row of MSTX_EVENTS
  uint32_t row = kNoRow;
  uint32_t text = kNoIndex;  // index into RankDb::range_texts
  uint32_t op = kNoIndex;    // for recordings of Level_none, index into RankDb::ops
};

struct RangeTextInfo {  // one for each distinct message and domain
  RangeText parsed;
  uint32_t message = 0, domain = 0, name = 0;
  bool communication = false;
};

struct CommOp {
  uint32_t row = kNoRow;
  uint32_t name = 0, group = 0, type = 0, dtype = 0, link = 0;  // ids of texts
  int64_t count = -1, bytes_each = 0;
  int64_t own = -1, peer = -1;  // for sends and receives, ranks within the group
  bool disagree = false;        // its tasks name different peers
  int32_t rank_size = -1;
};

struct TransferInfo {  // a row of COMMUNICATION_TASK_INFO
  uint32_t task = 0, transport = 0, link = 0, group = 0, op = kNoIndex;
  int64_t bytes = -1, notify = -1;
  int32_t plane = -1;
  int64_t src = -1, dst = -1;
};

struct ComputeInfo {  // a row of COMPUTE_TASK_INFO
  uint32_t name = 0, shapes = 0, types = 0, outputs = 0, op_type = 0, unit = 0;
  int32_t blocks = -1;
};

struct CopyInfo {  // a row of MEMCPY_INFO
  int64_t bytes = -1, operation = -1;
};

struct RankDb {
  RankDb(const SqliteDb& database, const RankFiles& rank_files, PartBuilder& builder, bool ranges_alone)
      : db(database), files(rank_files), out(builder), texts(database, builder), only_ranges(ranges_alone) {}

  const SqliteDb& db;
  const RankFiles& files;
  PartBuilder& out;
  DbTexts texts;
  const bool only_ranges;

  std::map<std::string, std::map<int64_t, std::string>> enums;  // table → id → name
  std::map<std::string, CommGroup> groups;                      // by the name that operations use
  std::vector<RangeTextInfo> range_texts;
  std::vector<RangeRow> ranges;
  NumberMap range_of_connection;
  std::vector<CommOp> ops;
  NumberMap op_of_connection, op_of_id;
  bool has_ops = false;  // there is a table COMMUNICATION_OP with rows
  std::vector<TransferInfo> transfers;
  NumberMap transfer_of_task;
  std::vector<ComputeInfo> computes;
  NumberMap compute_of_task;
  std::vector<CopyInfo> copies;
  NumberMap copy_of_task;
  std::vector<std::pair<uint32_t, uint32_t>> transfer_rows;  // (row, index into `transfers`)
  bool has_compute_info = false;

  // Calls use(rows) for every row of a table. Returns false when the table, or a column without '?', does not exist.
  // Damage is counted, and what came before it is kept.
  template <class Use> bool scan(std::string_view table, std::initializer_list<std::string_view> columns, Use use) {
    return scan_table(db, out, table, columns, use);
  }
  // Reads start and end from two columns, from `column` on. Returns false, and counts the row, when they are not
  // numbers.
  bool times(const SqliteRows& rows, int column, int64_t& start_ns, int64_t& end_ns);
  std::string_view enum_name(const std::string& table, int64_t id);
};

inline uint32_t correlation_of(int64_t connection) {
  return connection == kHostOnlyRange ? kNoCorrelation : fold_number(connection);
}

void read_identity(RankDb& rank);       // META_DATA and the files next to it, HOST_INFO, NPU_INFO, RANK_DEVICE_MAP
void read_ranges(RankDb& rank);         // MSTX_EVENTS
void read_communication(RankDb& rank);  // COMMUNICATION_OP, COMMUNICATION_TASK_INFO
void read_tasks(RankDb& rank);          // COMPUTE_TASK_INFO, MEMCPY_INFO, TASK
// For Level_none.
void add_range_operation(RankDb& rank, uint32_t range, int64_t device, int64_t start_ns, int64_t end_ns);
void finish_communication(RankDb& rank);  // peers and facts; to be called when all rows are known
void read_host_calls(RankDb& rank);       // CANN_API, PYTORCH_API, CONNECTION_IDS, PYTORCH_CALLCHAINS, GC_RECORD
void read_steps(RankDb& rank);            // STEP_TIME
void read_counters(RankDb& rank);         // memory, bandwidth, clocks

}  // namespace stageline::ascend
