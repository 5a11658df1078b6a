// Reasons why a run cannot say something: a closed list, the same in answers, on the page and in the skill.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyses/analysis.h"
#include "base/result.h"
#include "model/trace.h"

namespace stageline::mcp {

struct Reason {
  std::string name;     // "no_pipeline_cells"
  std::string meaning;  // one sentence
  std::string help;     // what would make it answerable
};
const std::vector<Reason>& reasons();
const Reason& reason(std::string_view name);  // `name` must be in the list

// Returns why an analysis cannot be asked of this run at all; nullptr where it can.
const Reason* reason_against(const Analysis& analysis, const Trace& trace);
// Returns why an answer was refused; nullptr where the asker made a mistake. `analysis` may be nullptr.
const Reason* reason_of(const Error& error, const Trace& trace, const Analysis* analysis);
// Returns why a table of SQL is empty in this run; nullptr where it is not, or where there is no such table.
const Reason* reason_empty(std::string_view table, const Trace& trace);

}  // namespace stageline::mcp
