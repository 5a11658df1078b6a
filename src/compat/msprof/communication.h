// Reads the forward and backward ranges of one rank with their time on the device, as msprof-analyze's query returns
// them: MSTX_EVENTS ⋈ TASK on connectionId, kept by what the message contains. Each table is read once, and joined by
// hashing.
#pragma once

#include "base/sqlite_db.h"

namespace stageline {

struct DeviceRange {
  int64_t start_ns = 0, end_ns = 0;
  int64_t step = 0;       // STEP_TIME.id; 0 when the database has no such table
  bool has_step = false;  // the range lies inside a step, or there is no such table
  bool forward = false;   // the message contains "forward"
};

// A stretch of time on the host, with both ends included.
struct HostWindow {
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
};

struct DeviceRanges {
  std::vector<DeviceRange> rows;  // ordered by start on the device
  std::string missing;  // what the database lacks, "MSTX_EVENTS" or "TASK.connectionId"; then there are no rows
};

// A message counts when it contains "forward", "backward", or "WeightGradStore", any character and "pop", in upper or
// lower case. `pops` restricts pops to those that the host opened in that time. A range inside two steps occurs twice,
// and one with several tasks several times. Errors: kBadInput for a damaged page, kLimit above kMaxDeviceRanges rows.
// O(rows · log), or more where overlapping steps multiply rows.
inline constexpr size_t kMaxDeviceRanges = 10'000'000;
Result<DeviceRanges> read_device_ranges(const SqliteDb& db, const HostWindow& pops);

// Returns the time of a step on the host; nullopt without STEP_TIME or without such a step.
std::optional<HostWindow> window_of_step(const SqliteDb& db, int64_t step);

// Reads the communication of one rank from its database: sends and receives with their peers (COMMUNICATION_OP and its
// tasks). Level_none lacks that table; there it reads the ranges with which torch_npu marks every operation.

// A send, a receive, or a batch of both with one peer. Ranks are numbers within the group.
struct PeerOp {
  enum class Kind : uint8_t { kSend, kReceive, kBatch };
  Kind kind = Kind::kSend;
  int64_t src = -1, dst = -1;  // for a batch: this rank and its peer
  int64_t start_ns = 0, end_ns = 0;
  std::string tag;                   // three digits of the group's hash, as in names of operations
  std::string group;                 // name of the communicator
  std::vector<int64_t> row_numbers;  // rowid in COMMUNICATION_OP, or index into MarkedOps::ops
};

// Reads operations by their names, `hcom_send__<tag>_<n>_<m>` and the like. Their Notify_Record and Notify_Wait tasks
// must agree on one source and one destination, and the host must have called them within `window`. `batches` also
// includes hcom_batchSendRecv. Ordered by start; empty where tables are missing. Errors: kBadInput for a damaged page.
// Each table is read once.
Result<std::vector<PeerOp>> read_peer_ops(const SqliteDb& db, const HostWindow& window, bool batches);

// A communication operation seen as a range of the mstx domain "communication".
struct MarkedOp {
  int64_t start_ns = 0, end_ns = 0, connection = 0;
  std::string name, type, group;  // "HcclSend__612_0_1", "HcclSend_", "group_name_0"
  std::string count, op_name;     // as in the message: "33554432", "HcclSend"
  int64_t data_type = 0;          // a value of ENUM_HCCL_DATA_TYPE
  int64_t peer = -1;              // rank within the group; −1 when the message does not say
  int64_t op_id = 0;
};

struct MarkedOps {
  std::vector<MarkedOp> ops;  // ordered by start on the device
  std::string lost;           // why there are none although there are ranges
};

// Ranges are joined with their device interval by connectionId alone. (msprof-analyze from 18 Aug 2026 on also joins
// all tasks of a stream, which gives n² rows with wrong times.) With `as_msprof`, names are those of its mstx2commop,
// and there are no operations at all when one message has a data type that the table does not list. Otherwise names are
// those of Level1 (hcom_send__612_0_1), which Insight recognises, and such a type becomes 65534 (N/A). Errors:
// kBadInput.
Result<MarkedOps> read_marked_ops(const SqliteDb& db, const HostWindow& window, bool as_msprof);

}  // namespace stageline
