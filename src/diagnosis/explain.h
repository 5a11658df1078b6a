// Where the time went and what it is worth, in words: at most a dozen findings, one for each cause, those whose fix
// saves most first.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/explanation.h"

namespace stageline {

struct StageBytes;

// For a trace with pipeline cells: causes found and priced by replays (diagnosis/causes/causes), then those findings of
// findings_of() that are about something else. For other traces: the findings of findings_of(), without prices.
// `with_offers` also prices other schedules. Definitions: docs/reference/explain.md. O(cells), and what price_fixes()
// costs. With `bytes` the options respect its limit and say what they need.
Explanation explain(const Run& run, bool with_offers = false, const StageBytes* bytes = nullptr);

// The same findings in the same order, in the form that the report and exporters print; or one that says there is none.
Findings explained_findings(const Explanation& explanation);

}  // namespace stageline
