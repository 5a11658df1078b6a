// A what-if model as bytes: what a report carries, so that its page replays the run's steps without the program
// (src/wasm). Both ends are built of this source, and what a restored model says of any change is what the model said,
// to the last bit.
//
// Whole numbers are varints, zigzag; of a column each value, or each one's distance to the one before, whichever is
// shorter. Real numbers are mostly whole nanoseconds: those go the same way, others as eight bytes. What follows from
// the rest (the same cells of other replicas, the usual duration) is worked out again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/what_if/what_if.h"

namespace stageline {

// A model with what its page may ask for by number: the changes of the fixes that were priced.
struct AskedModel {
  const WhatIf* model = nullptr;
  std::vector<Changes> fixes;
  int64_t zero_ns = 0;             // the axis: what cells' times are told from
  std::vector<int32_t> dp, stage;  // by part; kUnknown
};

// O(operations).
std::string packed_model(const AskedModel& asked);

struct RestoredModel {
  WhatIf model;
  AskedModel asked;  // its `model` is for the owner to set, once this stands where it stays
};
// nullopt: these are not whole bytes of packed_model(). What the numbers say is not checked: who packed them is
// trusted.
std::optional<RestoredModel> restored_model(std::string_view bytes);

}  // namespace stageline
