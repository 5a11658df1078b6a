// A what-if question and its answer. `stageline what-if`, the Python package and agents all ask in this way.
#pragma once

#include "diagnosis/what_if/what_if_fixes.h"

namespace stageline {

// The question as it is typed. Errors name the flags of `stageline what-if`, which others use as names too.
struct WhatIfWish {
  std::vector<std::string> scales;  // --scale
  std::string schedule;             // --schedule; "" when not given
  std::optional<int64_t> micro_batches, chunks, group;
  std::string latency;  // --latency; "" when not given
  std::string layers;   // --layers; "" when not given
  bool more_memory = false;
};

struct WhatIfQuestion {
  Changes own;                      // --scale, --schedule, --chunks, --group, --micro-batches and --latency together
  std::string name;                 // name of these changes, for people
  std::vector<std::string> scales;  // as typed, for messages
  std::string layers;
  bool more_memory = false;
  std::optional<StageBytes> bytes;  // where the model is described
};
// Parses a wish. Errors: kUsage naming the flag.
Result<WhatIfQuestion> what_if_question(const WhatIfWish& wish);

// Returns the priced fixes of a run, the question's own change among them. It replays in `model`, which does not change
// the model's other answers. Errors: kUsage for a change that applies to nothing, kUnavailable for layers without a
// schedule.
Result<FixList> price_question(WhatIf& model, const WhatIfQuestion& question);

// The answer for any run: fixes of a pipeline, or the losses of a profile, which has no model and no changes of its
// own.
struct WhatIfAnswer {
  std::optional<WhatIf> model;
  FixList list;
};
// Errors: those of what_if_of(), price_question() and profile_fixes().
Result<WhatIfAnswer> what_if_answer(const Run& run, const WhatIfQuestion& question, Diagnostics& notes);

// Returns what `stageline what-if --json` prints, without a line end. `tables` are what_if_tables() of the same answer.
std::string what_if_json(const FixList& list, const std::vector<Table>& tables);

}  // namespace stageline
