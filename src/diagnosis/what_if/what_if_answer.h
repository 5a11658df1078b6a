// `stageline what-if`: the user's own changes from text, and the answer as tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "model/table.h"

namespace stageline {

// "stage=3,kind=F,by=0.9": keys stage, rank, dp, kind, chunk, micro-batch (mb), step, and by=FACTOR or set=TIME
// (without a unit in milliseconds). Errors: kUsage with the forms.
Result<CellScale> parse_scale(std::string_view text);

// "what-if-base", "fixes", and with known layers "layers".
std::vector<Table> what_if_tables(const WhatIf& model, const FixList& list);

}  // namespace stageline
