// Communication of one rank as its database has it: sends and receives with their peers (COMMUNICATION_OP and its
// tasks), and at Level_none, where that table is missing, the ranges that torch_npu marks every operation with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sqlite_db.h"
#include "compat/msprof/device_ranges.h"

namespace stageline {

// A send, a receive, or a batch of both with one peer. Rank numbers are those within the group.
struct PeerOp {
  enum class Kind : uint8_t { kSend, kReceive, kBatch };
  Kind kind = Kind::kSend;
  int64_t src = -1, dst = -1;  // of a batch: this rank and its peer
  int64_t start_ns = 0, end_ns = 0;
  std::string tag;                   // three digits of the group's hash, as operation names carry them
  std::string group;                 // name of the communicator
  std::vector<int64_t> row_numbers;  // rowid in COMMUNICATION_OP, or index into MarkedOps::ops
};

// By operation name: `hcom_send__<tag>_<n>_<m>` and its kin whose Notify_Record and Notify_Wait tasks agree on one
// source and one destination, which the host called within `window`. `batches`: hcom_batchSendRecv too. By start. Empty
// where tables are missing. Errors: kBadInput for a damaged page. One scan a table.
Result<std::vector<PeerOp>> read_peer_ops(const SqliteDb& db, const HostWindow& window, bool batches);

// A communication operation seen as a range of mstx domain "communication".
struct MarkedOp {
  int64_t start_ns = 0, end_ns = 0, connection = 0;
  std::string name, type, group;  // "HcclSend__612_0_1", "HcclSend_", "group_name_0"
  std::string count, op_name;     // as the message says: "33554432", "HcclSend"
  int64_t data_type = 0;          // into ENUM_HCCL_DATA_TYPE
  int64_t peer = -1;              // within the group; −1: the message does not say
  int64_t op_id = 0;
};

struct MarkedOps {
  std::vector<MarkedOp> ops;  // by start on the device
  std::string lost;           // why there are none although there are ranges
};

// Joined to their device interval by connectionId alone: msprof-analyze from 18 Aug 2026 on also joins all tasks of a
// stream, n² rows with wrong times. `as_msprof`: names as its mstx2commop gives them, and nothing at all when one
// message has a data type that the table does not list; else those of Level1 (hcom_send__612_0_1), which Insight
// recognises, and 65534 (N/A) for such a type. Errors: kBadInput.
Result<MarkedOps> read_marked_ops(const SqliteDb& db, const HostWindow& window, bool as_msprof);

}  // namespace stageline
