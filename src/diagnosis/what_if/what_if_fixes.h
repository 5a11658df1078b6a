// The fixes that a run asks for, each with its price, the assumption it rests on and how to make it.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/what_if/fix.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

struct FixOptions {
  std::vector<int32_t> layers;         // by virtual stage; empty: kAssumedLayers each, which is said
  bool more_memory = false;            // orders that hold more activations too
  bool only_orders = false;            // of its own fixes none but other schedules and numbers of micro-batches
  bool only_layers = false;            // none but the layers cut anew
  std::vector<Changes> own;            // the user's worlds, priced whatever they come to
  std::vector<std::string> own_names;  // one each
};

struct FixList {
  std::vector<Fix> fixes;  // the user's own in their order, then those that gain, the largest saving first, then bounds
  std::vector<int32_t> layers, new_layers;  // by virtual stage, as assumed and as balance has it, which is the same
                                            // where no split gains; empty without
  bool layers_assumed = false;
  int64_t tried = 0;        // besides the user's own
  int64_t no_gain = 0;      // of these cost time, or less than their own uncertainty is gained
  int64_t over_memory = 0;  // orders left out because they hold more activations
  Text sentence;
};

// Sets the model's layers. O((operations + plans' cells · steps · replicas) · fixes).
FixList price_fixes(WhatIf& model, const FixOptions& options);

// The layers that are assumed when nobody says any.
std::vector<int32_t> assumed_layers(const WhatIf& model);

}  // namespace stageline
