// Where the time went and what it is worth, in words: at most a dozen findings, one for each cause, those whose fix
// saves most first.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/explanation.h"

namespace stageline {

struct StageBytes;
struct TrainingTime;

// For a trace with pipeline cells: causes found and priced by replays (diagnosis/causes/causes), then those findings of
// findings_of() that are about something else. For other traces: the findings of findings_of(), without prices.
// `with_offers` also prices other schedules. Definitions: docs/reference/explain.md. O(cells), and what price_fixes()
// costs. With `bytes` the options respect its limit and say what they need.
Explanation explain(const Run& run, bool with_offers = false, const StageBytes* bytes = nullptr);

// Returns the same findings in the form that the report and exporters print; or one that says there is none.
Findings explained_findings(const Explanation& explanation);

// Joins the findings of a trace's cells and of its devices, without repetition or contradiction. The pipeline's
// headline stays. `devices` loses the findings that the pipeline has for the same ranks and steps: late or slow ranks,
// long steps. It also loses idle time and exposed communication that are mostly waits of the pipeline; the bubble's
// finding then says so. The rest is ordered by weight, those of who is slow first. Definitions:
// docs/analyses/findings.md.
Findings merge_findings(Findings pipeline, Findings devices);

// Returns true when the trace has slices of a profiler.
bool is_profile(const Trace& trace);

// The findings of the trace: of its pipeline cells, of a profiler's slices, or of both.
Findings findings_of(const Run& run);

// Findings for recorded training without a pipeline. They explain where step time goes: waiting for input, a straggler
// rank, exposed collectives, or pauses. Expects time.reported. Conditions: docs/analyses/findings.md.
Explanation explain_training(const TrainingTime& time);

}  // namespace stageline
