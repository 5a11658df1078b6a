#include "base/embedded.h"
#include "pipeline/cells/cell_rules.h"

namespace stageline {

std::string shipped_cell_rules_text() { return embedded_file("cell-rules"); }

CellRules shipped_cell_rules() {
  CellRules rules;
  [[maybe_unused]] const Status parsed = rules.add(shipped_cell_rules_text(), "cell-rules", false);
  assert(parsed);
  return rules;
}

}  // namespace stageline
