// Which process group an operation belongs to, from the pieces that text exports give: "hcom_allReduce__377_4_1" (three
// digits of the group's number), "@13681369207305868844" (the number), and parallel_group_info of the metadata (the
// full name, what the group is for, and its ranks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"

namespace stageline::ascend {

// "hcom_allReduce__377_4_1" → allReduce, 377, 4.
struct OperationName {
  std::string_view kind;    // "allReduce", "send", "receive", "batchSendRecv"
  std::string_view digits;  // the last three of the group's number
  int64_t seq = -1;         // counts operations of this kind in this group
};
std::optional<OperationName> parse_operation_name(std::string_view name);

struct ProcessGroup {
  std::string name, number, description;  // number: hccl_group_digits(name)
  std::vector<int32_t> ranks;             // global, by rank within the group; empty: not said
};

class ProcessGroups {
 public:
  // From the member parallel_group_info of `metadata`; without it no group is known.
  explicit ProcessGroups(const std::vector<MetaField>& metadata);

  // By full name or number; nullptr when it is not known.
  const ProcessGroup* find(std::string_view group) const;
  // By the three digits in an operation's name, where they are one group's only.
  const ProcessGroup* find_by_digits(std::string_view digits) const;
  const std::vector<ProcessGroup>& all() const { return groups_; }

 private:
  std::vector<ProcessGroup> groups_;
  std::unordered_map<std::string, size_t> by_text_, by_digits_;
};

// Links name ranks within their group: makes them global. Where nothing names the members, the link of a rank with
// itself tells whether the two numberings agree; what stays unknown is −1. Returns how many ends that are.
int64_t make_links_global(const ProcessGroups& groups, int32_t own_rank, std::vector<LinkSummary>& links);

// The members of a JSON object, one field each; a JSON text within a text is unwrapped once.
std::vector<MetaField> metadata_of(std::string_view json);

}  // namespace stageline::ascend
