// Reads how a rank of an Ascend profile was recorded, from Part::metadata.
#pragma once

#include <cstdint>
#include <string>

#include "model/trace.h"

namespace stageline {

struct AscendSizes {  // the sizes in "distributed_args"; 0 when they are not given
  int64_t tp = 0, cp = 0, dp = 0, pp = 0, ep = 0, world = 0;
};
AscendSizes ascend_sizes(const Part& part);

// The level of recording: "Level_none", "Level0", "Level1" or "Level2"; "" when profiler_info does not say.
std::string ascend_level(const Part& part);
// The version of the database's schema, "1.2.0"; "" when META_DATA does not say.
std::string ascend_schema(const Part& part);

}  // namespace stageline
