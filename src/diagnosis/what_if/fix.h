// A fix: a change of the run with its price, the assumption it rests on and how to make it.
#pragma once

#include <cstdint>
#include <string>

#include "base/words.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// The layers of a virtual stage where nobody says any.
inline constexpr int32_t kAssumedLayers = 8;

struct Fix {
  std::string id;  // stable: "balance", "worker", "order", "schedule", "micro-batches", "links", "launch", "jitter",
                   // "fair-stage", "combined", "own"
  Changes changes;
  Price price;
  Text name, assumes, how;
  bool bound = false;  // no fix but a bound: nobody can switch jitter off
};

}  // namespace stageline
