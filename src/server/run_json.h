// What a run holds, as the page learns it first: ranks, lanes, kinds with their colours, steps.
#pragma once

#include <string>
#include <vector>

#include "server/timeline.h"

namespace stageline {

// The answer to /api/run. `title` and `paths` are what the user typed. O(lanes).
struct RunState {
  int64_t revision = 1;
  bool is_whole = true;
};
std::string run_json(const Timeline& timeline, const std::string& title, const std::vector<std::string>& paths,
                     RunState state);

}  // namespace stageline
