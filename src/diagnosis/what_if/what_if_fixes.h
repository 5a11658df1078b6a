// The fixes that suit a run, each with its price, the assumption on which the price rests, and how to make it.
#pragma once

#include "diagnosis/what_if/what_if_words.h"
#include "model/table.h"

namespace stageline {

struct FixOptions {
  std::vector<int32_t> layers;  // for each virtual stage; empty: kAssumedLayers each, and the answer says so
  bool layers_divided = false;  // only their sum was given; the split is the frameworks'
  bool more_memory = false;     // also tries orders that hold more activations
  // Besides the user's own: all, or only other schedules and numbers of micro-batches, new splits of the layers, or
  // more micro-batches in flight.
  enum class Only : uint8_t { kAll, kOrders, kLayers, kInFlight } only = Only::kAll;
  // Where the model is described: fixes say their bytes, and only those within its limit are offered.
  const StageBytes* bytes = nullptr;
  std::vector<Changes> own;            // the user's worlds, which are priced in any case
  std::vector<std::string> own_names;  // one name for each
};

struct FixList {
  // First the user's own, in their order, then those that gain, the largest saving first, then bounds.
  std::vector<Fix> fixes;
  // For each virtual stage, as assumed and as in the fix "balance"; both are the same where no split gains, and empty
  // without layers.
  std::vector<int32_t> layers, new_layers;
  bool layers_assumed = false;
  int64_t tried = 0;                  // number of fixes that were tried besides the user's own
  int64_t no_gain = 0;                // number of these that cost time, or gain less than their uncertainty
  int64_t over_memory = 0;            // number of orders left out because they need more memory
  bool limited = false;               // by a number of bytes
  std::vector<MeasuredStage> memory;  // of the run, where it was measured and the model is described
  Text sentence;
  double step_ns = 0;  // of a profile: the mean step, or the whole recording where it has no steps
  int64_t steps = 0;   // of a profile: 0 without steps
};

// Also sets the model's layers. O((operations + plans' cells · steps · replicas) · fixes).
FixList price_fixes(WhatIf& model, const FixOptions& options);

// Returns what the fullest stage needs with the layers of `before`, and under the changes with those of `after`; "" if
// no order is known.
Text bytes_of_change(const WhatIf& model, const StageBytes& bytes, const Changes& changes,
                     const std::vector<int32_t>& before, const std::vector<int32_t>& after);

// Parses "stage=3,kind=F,by=0.9": keys stage, rank, dp, kind, chunk, micro-batch (mb), step, and by=FACTOR or set=TIME
// (in milliseconds where it has no unit). Errors: kUsage, which shows the forms.
Result<CellScale> parse_scale(std::string_view text);

// The memory of a run's stages as measured and as the model says.
Table memory_table(const std::vector<MeasuredStage>& memory);
// Tables "what-if-base" and "fixes", "layers" where layers are known, and "memory" where it was measured. A profile has
// no model (nullptr).
std::vector<Table> what_if_tables(const WhatIf* model, const FixList& list);

}  // namespace stageline
