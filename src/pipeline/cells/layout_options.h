// The stages of ranks as the user gives them, and the layout that results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cells.h"

namespace stageline {

// The user's options; 0 and "" mean that an option was not given.
struct RankLayoutOptions {
  int32_t pp = 0, tp = 0, dp = 0;
  std::string order;  // dimensions from the fastest to the slowest, as Megatron writes it: "tp-cp-ep-dp-pp"
  int32_t cp = 0;     // context-parallel ranks of one replica
  // expert-parallel ranks; outside of experts they are data-parallel ranks, so stages do not depend on them.
  int32_t ep = 0;
  // Returns true where the options place every rank by its number. --pp alone only gives the number of stages.
  bool explicit_order() const { return pp > 0 && (tp > 0 || dp > 0 || cp > 0 || !order.empty()); }
};

struct RankLayout {
  int32_t stages = 0;          // 0 when not known
  std::vector<int32_t> stage;  // for each part; kUnknown when not known
  std::vector<int32_t> dp;     // for each part; kUnknown when not known
  Text how;                    // how it was found, for people: "process groups", "--pp"
};

}  // namespace stageline
