// What is asked of a replay, and its answer: `stageline what-if`, the Python package and agents ask the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "model/table.h"

namespace stageline {

// As somebody says it. Errors name the flags of `stageline what-if`, whose names the others have as well.
struct WhatIfWish {
  std::vector<std::string> scales;  // --scale
  std::string schedule;             // --schedule; "": not given
  std::optional<int64_t> micro_batches, chunks, group;
  std::string latency;  // --latency; "": not given
  std::string layers;   // --layers; "": not given
  bool more_memory = false;
};

struct WhatIfQuestion {
  Changes own;       // --scale, --schedule, --chunks, --group, --micro-batches, --latency: all of it at once
  std::string name;  // of these, for people
  std::vector<std::string> scales;  // as given, for messages
  std::string layers;
  bool more_memory = false;
};
// Errors: kUsage naming the flag.
Result<WhatIfQuestion> what_if_question(const WhatIfWish& wish);

// The fixes of a run, priced, the question's own change among them. Errors: kUsage for a change that fits nothing,
// kUnavailable for layers without a schedule. Replays in `model`, which changes nothing that it answers.
Result<FixList> price_question(WhatIf& model, const WhatIfQuestion& question);

// What `stageline what-if --json` prints, without a line end. `tables`: what_if_tables() of the same answer.
std::string what_if_json(const FixList& list, const std::vector<Table>& tables);

}  // namespace stageline
