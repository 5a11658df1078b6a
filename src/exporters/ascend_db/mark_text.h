// The text of a marked range.
#pragma once

#include <string>

#include "exporters/ascend_db/plan.h"

namespace stageline::ascend_db {

std::string mark_text(const AscendDbOptions& options, const Block& block, int32_t stage);

}  // namespace stageline::ascend_db
