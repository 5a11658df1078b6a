// Communication groups of a job, named as HCCL names them, and what the metadata of a profile says about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exporters/ascend_db/db_options.h"

namespace stageline::ascend_db {

struct Group {
  std::string kind;            // Megatron's name of the group: "pp", "tp", "cp", "dp" or "dp_cp"
  std::string name;            // name of the communicator
  std::string tag;             // three digits of the name's hash
  std::vector<int32_t> ranks;  // global ranks, ascending along the dimension
  int32_t index_of(int32_t rank) const;
};

// Returns the groups that hold `rank`, the pipeline's group first. Groups of other kinds are returned only when they
// have several ranks.
std::vector<Group> groups_of(const RankGrid& grid, int32_t rank);
// Returns the first group of that kind, or nullptr when there is none.
const Group* find_group(const std::vector<Group>& groups, std::string_view kind);

// Returns {key, JSON} of the metadata that users add with add_metadata_json: distributed_args, parallel_group_info and
// pp_info.
std::vector<std::pair<std::string, std::string>> user_metadata(const AscendDbOptions& options, int32_t rank,
                                                               const std::vector<Group>& groups);

}  // namespace stageline::ascend_db
