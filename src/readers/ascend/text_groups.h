// Finds the process group of an operation from the pieces that text exports give. They are "hcom_allReduce__377_4_1"
// (three digits of the group's number), "@13681369207305868844" (the number), and parallel_group_info in the metadata
// (the group's full name, its purpose and its ranks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"

namespace stageline::ascend {

// A parsed name: "hcom_allReduce__377_4_1" is allReduce, 377, 4.
struct OperationName {
  std::string_view kind;    // "allReduce", "send", "receive", "batchSendRecv"
  std::string_view digits;  // the last three digits of the group's number
  int64_t seq = -1;         // counts the operations of this kind in this group
};
std::optional<OperationName> parse_operation_name(std::string_view name);

struct ProcessGroup {
  std::string name, number, description;  // number is hccl_group_digits(name)
  std::vector<int32_t> ranks;             // global ranks, by rank within the group; empty when not given
};

class ProcessGroups {
 public:
  // Reads the member parallel_group_info of `metadata`; without it no group is known.
  explicit ProcessGroups(const std::vector<MetaField>& metadata);

  // Finds a group by its full name or number; nullptr when there is none.
  const ProcessGroup* find(std::string_view group) const;
  // Finds a group by the three digits in an operation's name, if only one group matches.
  const ProcessGroup* find_by_digits(std::string_view digits) const;
  const std::vector<ProcessGroup>& all() const { return groups_; }

 private:
  std::vector<ProcessGroup> groups_;
  std::unordered_map<std::string, size_t> by_text_, by_digits_;
};

// Links name ranks within their group; this makes them global. Where nothing names the group's members, the link of a
// rank with itself shows whether both numberings agree. Ends that stay unknown become −1; returns how many these are.
int64_t make_links_global(const ProcessGroups& groups, int32_t own_rank, std::vector<LinkSummary>& links);

// Returns the members of a JSON object, one field each. A JSON text within a text is unwrapped once.
std::vector<MetaField> metadata_of(std::string_view json);

}  // namespace stageline::ascend
