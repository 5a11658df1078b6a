// `stageline what-if`: parses the user's own changes and writes the answer as tables.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "model/table.h"

namespace stageline {

// Parses "stage=3,kind=F,by=0.9": keys stage, rank, dp, kind, chunk, micro-batch (mb), step, and by=FACTOR or set=TIME
// (in milliseconds where it has no unit). Errors: kUsage, which shows the forms.
Result<CellScale> parse_scale(std::string_view text);

// The memory of a run's stages as measured and as the model says.
Table memory_table(const std::vector<MeasuredStage>& memory);
// Tables "what-if-base" and "fixes", "layers" where layers are known, and "memory" where it was measured. A profile has
// no model (nullptr).
std::vector<Table> what_if_tables(const WhatIf* model, const FixList& list);

}  // namespace stageline
