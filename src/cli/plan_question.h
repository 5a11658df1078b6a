// The command plan as a question, and its answer in every form. Python and agents ask in the same way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "model/table.h"
#include "plan/compare.h"
#include "plan/search.h"

namespace stageline {

// Ranks whose stages take longer than their layers, and how much longer as a share.
using SlowRanks = std::vector<std::pair<int32_t, double>>;

struct PlanAnswer {
  plan::Wish wish;
  plan::Found found;
  std::vector<plan::Compared> compared;  // of the first plan, or of the layout that misses least
  std::string from;                      // the run that the times come from; "" for estimates
  SlowRanks slow;                        // of that run
  bool limited = false;                  // a memory limit was given or known
  bool sharding_given = false;           // otherwise the framework's
};

// Reads flags and description, and searches. `progress` may be null. Errors: kUsage naming the flag, kBadInput naming
// the key of the description.
Result<PlanAnswer> answer_plan(const Arguments& arguments, const Terminal& terminal);

std::string plan_json(const PlanAnswer& answer);
std::string plan_text(const PlanAnswer& answer, const Terminal& terminal);
// plans, stages of the first, pareto, sensitivity, compare; those without rows are left out.
std::vector<Table> plan_tables(const PlanAnswer& answer);

}  // namespace stageline
