// The content of a run, which the page reads first: ranks, lanes, kinds with their colours, steps.
#pragma once

#include <string>
#include <vector>

#include "server/timeline/timeline.h"

namespace stageline {

struct PageLanes;

struct RunState {
  const Diagnostics& notes;  // flaws that the page shows
  int64_t revision = 1;
  bool is_whole = true;
  const PageLanes* page = nullptr;  // only in a report: the lanes that it carries
  bool shows_theory = true;
  std::string other = {};    // NOLINT(readability-redundant-member-init): the second run's title; empty: none
  bool replays = false;      // it answers what-if itself
  std::string command = {};  // NOLINT(readability-redundant-member-init): what shows the rest, for GCC wants it
  std::vector<std::string> places = {};  // NOLINT(readability-redundant-member-init): where its files lie; no report's
  bool planned = false;                  // the report is a plan's
};
// The answer to /api/run. `title` and `paths` are what the user typed. O(lanes).
std::string run_json(const Timeline& timeline, const std::string& title, const std::vector<std::string>& paths,
                     const RunState& state);

}  // namespace stageline
