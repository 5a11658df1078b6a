// The training frameworks for which plans are written.
#pragma once

#include <string_view>
#include <vector>

#include "plan/bytes.h"

namespace stageline::plan {

// What a framework can do.
struct Framework {
  std::string_view name;
  std::vector<std::string_view> schedules;  // empty: all
  bool per_rank = false;                    // each rank may compute another number of layers again
  bool all_or_none = false;                 // of whole layers, all are computed again or none, and no parts of layers
  bool any_split = true;                    // otherwise only the even one
  bool empty_stages = false;                // a virtual stage may have no layer
  bool dense_act = true;                    // the activation function of a dense MLP can be computed again alone
  bool scratch = true, keeps_sent = false;
  Sharding sharding = Sharding::kDistributed;  // where no other is asked for
};
const std::vector<Framework>& frameworks();
const Framework* find_framework(std::string_view name);

}  // namespace stageline::plan
