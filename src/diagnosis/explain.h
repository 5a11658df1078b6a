// Where the time went and what it is worth, in words: at most a dozen findings, those whose fix brings most first, one
// a cause.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/causes/findings.h"
#include "diagnosis/explanation.h"
#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// Of a trace with pipeline cells: causes found and priced by replays (diagnosis/causes/causes), then those
// findings_of() has that are not about the same. Of others those of findings_of(), unpriced. `tables` as findings_of()
// wants them. `with_offers`: price other schedules too. Definitions: docs/howto/explain.md. O(cells), and what
// price_fixes() costs.
Explanation explain(const Run& run, const std::vector<Table>& tables, bool with_offers = false);

// The same as what the report and exporters print: the same findings in the same order, or one that says there is none.
Findings explained_findings(const Explanation& explanation);

}  // namespace stageline
