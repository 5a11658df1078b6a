// Reads from flags the question to the analyses: the chosen ones, the table, the form, and the options. `stageline
// analyze` and the Python package share it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyses/analysis.h"
#include "base/result.h"
#include "cli/flags.h"

namespace stageline {

// Finds analyses by a list such as "idle-time-breakdown,profiler-steps"; `_` serves for `-`, and HTA's get_… names are
// known too. Errors: kUsage with the nearest name.
Result<std::vector<const Analysis*>> chosen_analyses(const std::string& list);

// What answers the question of a mode of msprof-analyze that has another name here, with dashes; "" for other names.
std::string hint_for_mode(std::string_view mode);

// Both are called before the input is read, because the descriptors list the tables. A form is text, csv, json, or
// another tool's layout when every chosen analysis has it. Errors: kUsage.
Status check_table(const std::vector<const Analysis*>& chosen, const std::string& name);
Status check_format(const std::vector<const Analysis*>& chosen, const std::string& format, const std::string& table);

// Makes --ranks 3 of --rank 3, when no chosen analysis has an option of that name.
Arguments with_ranks(Arguments arguments, const std::vector<const Analysis*>& chosen);

// Returns compat, options and form, without a trace. Every option given must belong to one of the chosen analyses.
// Errors: kUsage.
Result<AnalysisInput> analysis_input(const Arguments& arguments, const std::vector<const Analysis*>& chosen);

}  // namespace stageline
