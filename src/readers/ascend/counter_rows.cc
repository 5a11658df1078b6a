// What the device's counters say over time, and the framework's allocations.
#include "readers/ascend/db_rows.h"

namespace stageline::ascend {

void read_counters(RankDb& rank) { (void)rank; }
void read_analysis(const std::string& path, PartBuilder& out) {
  (void)path;
  (void)out;
}

}  // namespace stageline::ascend
