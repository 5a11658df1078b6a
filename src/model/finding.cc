#include "model/finding.h"

namespace stageline {

const std::vector<std::string_view>& finding_ids() {
  static const std::vector<std::string_view> ids = {
#define FINDING(id) id,
#include "model/findings.def"
#undef FINDING
  };
  return ids;
}

}  // namespace stageline
