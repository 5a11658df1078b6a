#include "base/json_members.h"
#include "model/torch_facts.h"

namespace stageline {

AscendSizes ascend_sizes(const Part& part) {
  const std::string_view args = meta_json(part, "distributed_args");
  const auto size = [&](std::string_view key) {
    const int64_t value = json_integer(json_member(args, key)).value_or(0);
    return value > 0 && value <= INT32_MAX ? value : 0;
  };
  return {.tp = size("tensor_model_parallel_size"),
          .cp = size("context_parallel_size"),
          .dp = size("data_parallel_size"),
          .pp = size("pipeline_model_parallel_size"),
          .ep = size("expert_model_parallel_size"),
          .world = size("world_size")};
}

std::string ascend_level(const Part& part) {
  const std::string_view config = json_member(meta_json(part, "profiler_info"), "config");
  const std::string level = json_text(json_member(json_member(config, "experimental_config"), "_profiler_level"));
  return level.substr(level.rfind('.') == std::string::npos ? 0 : level.rfind('.') + 1);
}

std::string ascend_schema(const Part& part) { return json_text(meta_json(part, "SCHEMA_VERSION")); }

}  // namespace stageline
