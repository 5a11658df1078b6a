// Where the time went, for programs: what `stageline explain --json` prints and the viewer's first screen shows.
#pragma once

#include "base/json_writer.h"
#include "diagnosis/explain.h"

namespace stageline {

// Returns the finding's own evidence, else the analysis that model/findings.def names for its id.
FindingEvidence evidence_of(const Finding& finding);

// The command that shows a finding's numbers: its own one, else the analysis that has them, for `paths`; "": none.
std::string finding_command(const Finding& finding, const std::vector<std::string>& paths);

// Writes a place as an object; what does not apply or is not known is absent.
void write_place(JsonWriter& json, const Place& place);
// Writes a member that holds a list of places.
void write_places(JsonWriter& json, const char* key, const std::vector<Place>& places);

// Writes a finding as an object, as explain_json() has it. `step_ns` is the mean step; `number` its place in the list
// from 1 on, by which figures name it (0: none do).
void write_finding(JsonWriter& json, const Finding& finding, double step_ns, const std::vector<std::string>& paths,
                   size_t number = 0);

// The last words of the list: that nothing stands out, or nothing else does, or that causes were not looked for.
Text closing_words(const Explanation& explanation);

// One object: the run in one line, step_ns and lost_ns, the headline (title, lead, parts), findings, offers and the
// closing words, with sentences in both languages. Has no line end.
std::string explain_json(const Explanation& explanation, const std::vector<std::string>& paths);

}  // namespace stageline
