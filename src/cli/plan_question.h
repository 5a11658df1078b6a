// The command plan as a question, and its answer in every form. Python and agents ask in the same way.
#pragma once

#include "cli/terminal.h"
#include "compat/memory_estimates/memory_estimates.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "model/table.h"
#include "plan/search.h"

namespace stageline {

class WhatIf;

// Ranks whose stages take longer than their layers, and how much longer as a share.
using SlowRanks = std::vector<std::pair<int32_t, double>>;

struct PlanAnswer {
  plan::Wish wish;
  plan::Found found;
  std::vector<memory_estimates::Estimate> compared;  // of the first plan, or of the layout that misses least
  std::string from;                                  // the run that the times come from; "" for estimates
  SlowRanks slow;                                    // of that run
  std::vector<MeasuredStage> memory;                 // of that run, where it was measured and the model is described
  bool limited = false;                              // a memory limit was given or known
  bool sharding_given = false;                       // otherwise the framework's
};

// Inputs of a program that embeds the question: texts and runs instead of files.
struct PlanGiven {
  std::string model = {};        // the text of a description
  const WhatIf* run = nullptr;   // a run to take the times from
  const Trace* trace = nullptr;  // of that run, for the memory that it measured
};

// Reads flags and description, and searches. Errors: kUsage naming the flag, kBadInput naming the key of the
// description.
Result<PlanAnswer> answer_plan(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given = {});
// Returns the same in JSON without a line's end, for flags as they are typed.
Result<std::string> planned_json(const std::vector<std::string>& flags, const PlanGiven& given = {});

// The first plan, or the one that misses least, in a line.
Text plan_headline(const PlanAnswer& answer);
// The bytes of a pipeline's stages, where --model describes what runs. `dp`: its replicas. Errors: kUsage for --memory
// without --model; those of reading the description.
Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, int32_t dp, const std::string& model = "");
// Returns the same for a run, with its replicas and the memory that it measured. `model`: the text of the description;
// "": it is read from the file that --model names.
Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, const Trace& ran,
                                                 const std::string& model = "");
// Returns the table plan/stages. `layers` are those of each virtual stage; `limit` 0: none.
Table stage_bytes_table(const Schedule& shape, const std::vector<int32_t>& layers,
                        const std::vector<plan::RankPeak>& peaks, double limit);
// Reads "7,8*14,7". Errors: kUsage naming the flag.
Result<std::vector<int32_t>> parse_split(const std::string& text, const char* flag, int32_t min);

std::string plan_json(const PlanAnswer& answer);
std::string plan_text(const PlanAnswer& answer, const Terminal& terminal);
// plans, stages of the first, pareto, sensitivity, compare; those without rows are left out.
std::vector<Table> plan_tables(const PlanAnswer& answer);

}  // namespace stageline
