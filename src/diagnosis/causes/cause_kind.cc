#include "diagnosis/causes/cause_kind.h"

#include <algorithm>

namespace stageline {

bool CauseKind::takes(std::string_view line) const { return std::ranges::find(takes_from, line) != takes_from.end(); }

}  // namespace stageline
