// The rows of one rank's database while it is being filled. Callers pass true times; they are written as times of the
// rank's own clock.
#pragma once

#include "base/sqlite_db.h"
#include "exporters/ascend_db/plan.h"
#include "model/intervals.h"

namespace stageline::ascend_db {

// Defines the tables of an Ascend profiler database, as in schema 1.2.0.
inline constexpr int64_t kNone32 = 4'294'967'295;     // "no value" in the profiler's own tables
inline constexpr int64_t kFirstMark = 4'000'000'001;  // connection id of the first range that has a device side
inline constexpr int64_t kBfp16 = 11, kHccsLink = 1, kRoceLink = 3, kSdma = 0, kRdma = 1, kInvalid = 65535;
inline constexpr int64_t kApiNode = 10000, kApiAcl = 20000, kApiHccl = 5500, kApiOp = 50001;

// Creates the tables that a profile of this level has, and fills the enumeration tables. Runs in the caller's
// transaction.
Status create_tables(const SqliteDb& db, AscendLevel level, bool step_time);
Status create_analysis_tables(const SqliteDb& db, AscendLevel level);

// The table STRING_IDS: it holds every text once, numbered in the order of first use.
class Strings {
 public:
  int64_t operator()(std::string_view text);
  void write(SqliteInsert& into) const;

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<const std::string*> order_;
};

struct Span {
  int64_t start = 0, end = 0;
};

struct RankIdentity {
  int32_t rank = 0, stage = 0, device = 0;
  int64_t pid = 0, offset_ns = 0;
  const std::vector<Part>* parts = nullptr;  // one for each rank; shows which peers are on the same host
};

struct CommunicationOp {
  std::string_view kind;  // "send", "receive", "batchSendRecv", "allReduce"
  const Group* group = nullptr;
  Span host, device;
  int64_t stream = 0, elements = 0;
  int64_t transit_ns = 0;
  int32_t step = 0;
  std::vector<std::pair<int32_t, int32_t>> transfers;  // (source, destination), as indices into the group
};

struct CommunicationRow {  // one communication operation, as analysis.db sums it up
  std::string name;
  std::string_view kind;
  const Group* group;
  Span device;
  int64_t transit_ns, bytes;
  int32_t step;
  std::vector<std::pair<int32_t, int32_t>> transfers;
};

class RankRows {
 public:
  RankRows(const SqliteDb& db, const AscendDbOptions& options, RankIdentity me);

  // Adds a marked range: its time on the host, and its interval on the device.
  void range(Span host, std::string_view message, std::string_view domain, Span device, int64_t stream);
  struct KernelName {
    std::string_view framework, name, op_type, task_type, task_core, shapes, out_shape;
  };
  // Adds a kernel with its operator and the launch that started it. Writes nothing at Level_none.
  void kernel(Span host, const KernelName& name, Span device);
  // Adds a communication operation. At Level_none only a communication range is written, and only when the options ask
  // for it.
  void communication(const CommunicationOp& op);
  Status finish(const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& host_name,
                const std::vector<Span>& steps);

  const std::vector<Interval>& computing() const { return computing_; }
  const std::vector<CommunicationRow>& communications() const { return communications_; }

 private:
  int64_t task(Span device, int64_t connection, std::string_view type, int64_t stream);
  void transfer_rows(const CommunicationOp& op, const std::string& name, int64_t op_id, int64_t connection);
  int64_t own(int64_t true_ns) const { return true_ns + me_.offset_ns; }

  const SqliteDb& db_;
  const AscendDbOptions& o_;
  RankIdentity me_;
  int64_t thread_;
  Strings strings_;
  SqliteInsert mstx_, task_;
  struct Work {
    SqliteInsert compute, op, transfer, cann, api, connection;
  };
  std::optional<Work> work_;
  int64_t marks_ = 0, tasks_ = 0, connections_ = 0, launches_ = 0, ops_ = 0;
  std::vector<std::pair<const Group*, int64_t>> numbers_;  // for each group: how many operations it has had so far
  std::vector<Interval> computing_;
  std::vector<CommunicationRow> communications_;
};

// Writes analysis.db: the sums that Ascend's own profiler computes for one rank.
// Writes the sums of each step. `steps` are the [start, end) of each step on the device. All times in `rows` are true
// times; `offset_ns` is added to them to give the rank's own stamps. Errors: kIo.
Status write_analysis_db(const RankRows& rows, const AscendDbOptions& options, const std::vector<Span>& steps,
                         int64_t offset_ns, const std::string& path);

}  // namespace stageline::ascend_db
