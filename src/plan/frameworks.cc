#include "plan/search.h"

namespace stageline::plan {

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> list = {
      {.name = "any", .schedules = {}, .per_rank = true, .empty_stages = true},
      {.name = "megatron", .schedules = {"1f1b", "vpp", "vpp-ep-overlap"}, .empty_stages = true, .dense_act = false},
      {.name = "mindspeed",
       .schedules = {"1f1b", "vpp", "vpp-ep-overlap", "dualpipe-v-mindspeed"},
       .empty_stages = true},
      {.name = "torchtitan",
       .schedules = {"1f1b", "fthenb", "vpp", "bfs", "interleaved-zb", "zb-v", "dualpipe-v"},
       .all_or_none = true,
       .scratch = false,
       .keeps_sent = true,
       .sharding = Sharding::kZero3},
      {.name = "paddle",
       .schedules = {"fthenb", "1f1b", "eager-1f1b", "vpp", "zb-h1-paddle", "zbvpp"},
       .all_or_none = true,
       .scratch = false,
       .keeps_sent = true},
      {.name = "deepspeed", .schedules = {"1f1b"}, .all_or_none = true, .any_split = false, .scratch = false}};
  return list;
}

const Framework* find_framework(std::string_view name) {
  for (const Framework& f : frameworks())
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace stageline::plan
