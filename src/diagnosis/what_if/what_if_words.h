// Texts of a fix in both languages: its name, the assumptions of its estimate, and how to apply it. `how` uses the
// frameworks' own words; where it is a flag it is the same in both.
#pragma once

#include "diagnosis/what_if/stage_bytes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// A fix: a change of the run with its price, the assumption on which the price rests, and how to make the change.

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

struct FixWords {
  Text name, assumes, how;
};

FixWords own_words(const std::string& name);
FixWords balance_words(const std::vector<int32_t>& now, const std::vector<int32_t>& then, bool assumed,
                       const LayerCosts& costs, double gap, bool checked);
FixWords even_words();
FixWords fair_stage_words(int32_t stage, double ratio);
// `lists` of `of` lists leave the order.
FixWords order_words(const std::string& name, int64_t lists, int64_t of);
// Adds to `how` the nearest split in whole layers, as frameworks take it; null: no split gains.
void add_layout(const std::vector<int32_t>* split, Fix& fix);
FixWords schedule_words(const std::string& name, int32_t chunks, const OrderModel& order, int32_t layers_of_a_rank);
FixWords micro_batch_words(int32_t now, int32_t then);
FixWords worker_words(int32_t rank, int32_t dp, int32_t stage, double ratio);
// `split`: the layers of the stages, where only their sum was given; else empty.
FixWords lone_worker_words(int32_t rank, int32_t stage, double ratio, const std::vector<int32_t>& split);
// Says which split is taken where only the sum of the layers was given.
Text divided_words(const std::vector<int32_t>& split);
FixWords more_in_flight_words(const std::vector<int32_t>& extra);
// The stage that held most, measured and as the model says.
Text measured_words(const std::vector<MeasuredStage>& memory);
// Names the fullest stage before and after a change, and says whether the change needs more than the limit of `bytes`.
// The text continues a sentence.
Text bytes_words(const StageBytes& bytes, const StageBytes::Most& now, const StageBytes::Most& then);
FixWords links_words(bool one_host);
FixWords launch_words(bool hosts_alone);
FixWords jitter_words();
FixWords combined_words(const std::vector<const Fix*>& parts);

// "Balance the stages … saves 18.5 % of the step (2.21 s); with … 25.1 %."
Text sentence(const std::vector<Fix>& fixes, double recorded_ns);

}  // namespace stageline
