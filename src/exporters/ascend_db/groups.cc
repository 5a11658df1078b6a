#include "exporters/ascend_db/groups.h"

#include <algorithm>

#include "base/json_writer.h"
#include "model/hccl_names.h"

namespace stageline::ascend_db {
namespace {

struct Kind {
  const char* name;
  std::vector<GridDim> dims;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"pp", {GridDim::kPp}},
                                        {"tp", {GridDim::kTp}},
                                        {"cp", {GridDim::kCp}},
                                        {"dp", {GridDim::kDp}},
                                        {"dp_cp", {GridDim::kDp, GridDim::kCp}}};
  return all;
}

bool has(const Kind& kind, GridDim dim) { return std::ranges::find(kind.dims, dim) != kind.dims.end(); }

}  // namespace

int32_t Group::index_of(int32_t rank) const {
  const auto at = std::ranges::find(ranks, rank);
  return at == ranks.end() ? -1 : static_cast<int32_t>(at - ranks.begin());
}

std::vector<Group> groups_of(const RankGrid& grid, int32_t rank) {
  std::vector<Group> groups;
  int32_t first_number = 0;  // groups are numbered over the whole job, one kind after another
  for (const Kind& kind : kinds()) {
    int32_t members = 1, number = 0;
    for (const GridDim dim : {GridDim::kDp, GridDim::kCp, GridDim::kTp, GridDim::kPp})
      if (has(kind, dim))
        members *= grid.of(dim);
      else
        number = number * grid.of(dim) + grid.coordinate(rank, dim);
    // When context parallelism is 1, "dp" and "dp_cp" have the same ranks, and one communicator serves both.
    const bool same = std::string_view(kind.name) == "dp" && grid.of(GridDim::kCp) == 1;
    if ((members > 1 && !same) || groups.empty()) {
      Group group;
      group.kind = kind.name;
      group.name = "10.0.0.1%eth0_60000_" + std::to_string(first_number + number) + "_1738895521183247";
      group.tag = hccl_group_id(group.name);
      group.ranks =
          kind.dims.size() == 1 ? grid.group(rank, {kind.dims[0]}) : grid.group(rank, {kind.dims[0], kind.dims[1]});
      groups.push_back(std::move(group));
    }
    first_number += grid.world() / members;
  }
  return groups;
}

const Group* find_group(const std::vector<Group>& groups, std::string_view kind) {
  for (const Group& group : groups)
    if (group.kind == kind) return &group;
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> user_metadata(const AscendDbOptions& o, int32_t rank,
                                                               const std::vector<Group>& groups) {
  std::vector<std::pair<std::string, std::string>> out;
  JsonWriter args;
  args.begin_object();
  args.field("tensor_model_parallel_size", int64_t{o.grid.of(GridDim::kTp)});
  args.field("pipeline_model_parallel_size", int64_t{o.grid.of(GridDim::kPp)});
  args.field("data_parallel_size", int64_t{o.grid.of(GridDim::kDp)});
  args.field("context_parallel_size", int64_t{o.grid.of(GridDim::kCp)});
  args.field("expert_model_parallel_size", int64_t{1}).field("sequence_parallel", false);
  args.field("rank", int64_t{rank}).field("world_size", int64_t{o.grid.world()}).end_object();
  out.emplace_back("distributed_args", args.take());
  JsonWriter info;
  info.begin_object();
  for (const Group& group : groups) {
    info.key(group.name).begin_object().field("group_name", group.kind);
    info.field("group_rank", int64_t{group.index_of(rank)}).list("global_ranks", group.ranks).end_object();
  }
  info.end_object();
  out.emplace_back("parallel_group_info", info.take());
  if (o.pp_info) {
    const bool mindspeed = o.schedule.name == "dualpipe-v-mindspeed";
    JsonWriter pp;
    pp.begin_object().field("pp_type", mindspeed ? std::string("dualpipev") : o.schedule.name);
    pp.field("microbatch_num", int64_t{o.schedule.sizes.micro_batches}).end_object();
    out.emplace_back("pp_info", pp.take());
  }
  return out;
}

}  // namespace stageline::ascend_db
