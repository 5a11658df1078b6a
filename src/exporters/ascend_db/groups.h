// Communication groups of a job, named as HCCL names them, and what metadata says of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exporters/ascend_db/db_options.h"

namespace stageline::ascend_db {

struct Group {
  std::string kind;            // "pp", "tp", "cp", "dp", "dp_cp": Megatron's names
  std::string name;            // the communicator's
  std::string tag;             // three digits of its hash
  std::vector<int32_t> ranks;  // global, ascending along the dimension
  int32_t index_of(int32_t rank) const;
};

// Groups that hold `rank`, the pipeline's first; other kinds only where they have several ranks.
std::vector<Group> groups_of(const RankGrid& grid, int32_t rank);
// The first of that kind; nullptr when there is none.
const Group* find_group(const std::vector<Group>& groups, std::string_view kind);

// {key, JSON} of what users add with add_metadata_json: distributed_args, parallel_group_info, pp_info.
std::vector<std::pair<std::string, std::string>> user_metadata(const AscendDbOptions& options, int32_t rank,
                                                               const std::vector<Group>& groups);

}  // namespace stageline::ascend_db
