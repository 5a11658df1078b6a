#include "analyses/cluster/cluster_notes.h"

#include <algorithm>

#include "analyses/cluster/problems.h"
#include "model/ascend_facts.h"

namespace stageline {

void note_level_none(const AnalysisInput& input, Diagnostics& notes) {
  const std::vector<Part>& parts = input.trace->parts;
  const auto none = [](const Part& part) { return ascend_level(part) == "Level_none"; };
  const auto count = std::ranges::count_if(parts, none);
  if (count > 0 && !input.for_report) notes.add(problem::ascend_level_none, {}, count);
}

void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes) {
  if (matched.not_matched > 0) notes.add(problem::communication_not_synchronising, {}, matched.not_matched);
  if (matched.partly_seen > 0) notes.add(problem::communication_members_missing, {}, matched.partly_seen);
  if (matched.alone > 0 && rank_count > 1) notes.add(problem::communication_no_counterpart, {}, matched.alone);
}

}  // namespace stageline
