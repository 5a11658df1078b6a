// What is asked of an analysis, from flags: which ones, which table, which form, with which options. `stageline
// analyze` and the Python package ask the same way.
#pragma once

#include <string>
#include <vector>

#include "analyses/analysis.h"
#include "base/result.h"
#include "cli/flags.h"

namespace stageline {

// "idle-time-breakdown,profiler-steps", also with `_` for `-` and HTA's get_… names. Errors: kUsage with the nearest.
Result<std::vector<const Analysis*>> chosen_analyses(const std::string& list);

// Both are checked before the input is read: the descriptors know the tables. A form is text, csv, json, or a rival's
// own layout where every analysis asked has it. Errors: kUsage.
Status check_table(const std::vector<const Analysis*>& chosen, const std::string& name);
Status check_format(const std::vector<const Analysis*>& chosen, const std::string& format, const std::string& table);

// --rank 3 is --ranks 3 where an analysis has no option of that name.
Arguments with_ranks(Arguments arguments, const std::vector<const Analysis*>& chosen);

// Compat, options and form, without a trace. Every option given must belong to one of the chosen analyses. Errors:
// kUsage.
Result<AnalysisInput> analysis_input(const Arguments& arguments, const std::vector<const Analysis*>& chosen);

}  // namespace stageline
