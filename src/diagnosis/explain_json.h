// Where the time went, for programs: what `stageline explain --json` prints and the viewer's first screen shows.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/words.h"
#include "diagnosis/explain.h"

namespace stageline {

// What to type to see the numbers of a finding: its own command, else the analysis that has them, of `paths`; "": none.
std::string finding_command(const Finding& finding, const std::vector<std::string>& paths);

// A finding as an object: what explain_json() has of each. `step_ns`: of the mean step.
void write_finding(JsonWriter& json, const Finding& finding, double step_ns, const std::vector<std::string>& paths);

// What the list ends with: that nothing stands out, or nothing else does; where causes were not looked for, that.
Text closing_words(const Explanation& explanation);

// One object: the run in one line, step_ns and lost_ns, headline (title, lead, parts), findings, offers and the closing
// words; sentences in both languages. Without a line end.
std::string explain_json(const Explanation& explanation, const std::vector<std::string>& paths);

}  // namespace stageline
