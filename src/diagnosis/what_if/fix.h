// A fix: a change of the run with its price, the assumption on which the price rests, and how to make the change.
#pragma once

#include <cstdint>
#include <string>

#include "base/words.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// The layers that each virtual stage is assumed to have when the number is not given.
inline constexpr int32_t kAssumedLayers = 8;

struct Fix {
  std::string id;  // stable: "balance", "worker", "order", "schedule", "micro-batches", "links", "launch", "jitter",
                   // "fair-stage", "combined", "own"
  Changes changes;
  Price price;
  Text name, assumes, how;
  Text bytes;          // what it needs and what the run needs now, where known; `assumes` ends with it
  bool bound = false;  // it is only a bound on the saving of fixes: jitter cannot be switched off
};

}  // namespace stageline
