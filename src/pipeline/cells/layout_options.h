// Which rank is which stage: what the user says of it, and an answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cells.h"

namespace stageline {

// What the user said; 0 and "" : nothing.
struct RankLayoutOptions {
  int32_t pp = 0, tp = 0, dp = 0;
  std::string order;  // dimensions from the fastest to the slowest, as Megatron writes it: "tp-cp-ep-dp-pp"
  int32_t cp = 0;     // context-parallel ranks of one replica
  int32_t ep = 0;     // expert-parallel ranks; they are data-parallel ones to everything but experts: no stage follows
  // Whether they place every rank by its number; --pp alone only says how many stages there are.
  bool explicit_order() const { return pp > 0 && (tp > 0 || dp > 0 || cp > 0 || !order.empty()); }
};

struct RankLayout {
  int32_t stages = 0;          // 0: not known
  std::vector<int32_t> stage;  // by part; kUnknown
  std::vector<int32_t> dp;     // by part; kUnknown
  std::string how;             // for people: "process groups", "--pp"
};

}  // namespace stageline
