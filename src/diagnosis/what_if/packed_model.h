// A what-if model packed into bytes. A report carries it, so that its page can replay the run's steps without the
// program (src/wasm). Both ends are built from this source, and a restored model answers every question as the original
// does, to the last bit.
//
// Values that follow from the rest (an operation's start, the same cells of other replicas, the usual duration) are
// computed again. The bytes of a value: base/pack.h.
#pragma once

#include "diagnosis/what_if/what_if.h"

namespace stageline {

// A model, and what its page may ask for by number: the changes of the fixes that were priced.
struct AskedModel {
  const WhatIf* model = nullptr;
  std::vector<Changes> fixes;
  int64_t zero_ns = 0;             // time from which the page's axis counts cells' times
  std::vector<int32_t> dp, stage;  // for each part; kUnknown: none
  // The memory of the stages under changes, where the model is described; a report has none.
  std::function<Text(const Changes& changes)> bytes;
};

// O(operations).
std::string packed_model(const AskedModel& asked);

struct RestoredModel {
  WhatIf model;
  AskedModel asked;  // the owner sets its `model` once this object stands where it stays
};
// nullopt: these are not the whole bytes of packed_model(). The numbers themselves are not checked, since whoever
// packed them is trusted.
std::optional<RestoredModel> restored_model(std::string_view bytes);

}  // namespace stageline
