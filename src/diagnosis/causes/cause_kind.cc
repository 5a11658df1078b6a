#include "diagnosis/causes/cause_kind.h"

#include <algorithm>

namespace stageline {

bool CauseKind::takes(std::string_view line) const {
  return std::find(takes_from.begin(), takes_from.end(), line) != takes_from.end();
}

}  // namespace stageline
