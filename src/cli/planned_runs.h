// Schedules and simulated runs as values, for the commands and for programs that embed them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "model/table.h"

namespace stageline {

// A schedule at given costs, in the forms that `stageline schedule` prints.
struct ScheduleHint {
  std::string json, text, order_csv;  // as its --format json, text and csv, or torch if that is asked for
  Table ranks;
};

// `arguments` are those of the command schedule. Errors: kUsage for sizes that the schedule does not accept; those of
// reading --from-csv; and those of a replay that cannot end.
Result<ScheduleHint> reported_schedule(const Arguments& arguments);

// What the command plan prints, as its --format json and text. `arguments` are those of the command. Errors: kUsage,
// kBadInput naming the key of the description, and those of reading --from.
struct ReportedPlan {
  std::string json, text;
};
Result<ReportedPlan> reported_plan(const Arguments& arguments);

// `arguments` are those of the command simulate; --output is the folder. Returns the messages for the user, the folder
// first. A folder that holds other logs is not changed. Errors: kUsage, kIo.
Result<std::vector<std::string>> simulate_to_folder(const Arguments& arguments);

}  // namespace stageline
