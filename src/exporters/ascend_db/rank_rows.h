// The rows of one rank's database while it is being filled. Callers pass true times; they are written as times of the
// rank's own clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporters/ascend_db/groups.h"
#include "exporters/ascend_db/plan.h"
#include "exporters/ascend_db/tables.h"
#include "model/intervals.h"

namespace stageline::ascend_db {

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
  // Adds a kernel with its operator and the launch that started it. Writes nothing at Level_none.
  struct KernelName {
    std::string_view framework, name, op_type, task_type, task_core, shapes, out_shape;
  };
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

}  // namespace stageline::ascend_db
