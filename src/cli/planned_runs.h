// Schedules and simulated runs as values, for the commands and for who embeds them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "model/table.h"

namespace stageline {

// A schedule at given costs, as `stageline schedule` tells it.
struct ScheduleTold {
  std::string json, text, order_csv;  // as its --format json, text and csv
  Table ranks;
};

// `arguments`: of the command schedule. Errors: kUsage for sizes that the schedule does not take; those of reading
// --from-csv and of a replay that cannot end.
Result<ScheduleTold> told_schedule(const Arguments& arguments);

// `arguments`: of the command simulate; --output is the folder. Returns what there is to say, the folder first.
// Errors: kUsage, kIo; a folder that holds somebody else's logs is left alone.
Result<std::vector<std::string>> simulate_to_folder(const Arguments& arguments);

}  // namespace stageline
