// Late starts: work starts late on most ranks, and too often for pauses.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct LateStartsOwn {
  // Cells that wait only for their own rank are not late, so no host is the cause.
  bool hosts_prompt = false;
  bool messages_unknown = false;  // no messages were recorded, so these may be late as well
  int64_t ranks = 0;              // on how many ranks
  double worst_share = 0;         // share of the cells of the rank that has most late ones
  double open_share = 0;          // of the time by which they are late: their recorded receives have not ended
};

Telling tell_late_starts(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
