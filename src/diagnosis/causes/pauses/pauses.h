// Pauses of hosts: cells that start late in some steps though nothing holds them up, or only the first ones of steps.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct PausesOwn {
  int64_t ranks = 0;           // on how many ranks
  bool collector = false;      // they are rare, long and on several ranks, as those of a garbage collector are
  bool first_of_step = false;  // all are at the first cell of a rank's steps; the second place names what it does then
  std::string name = {};       // what was recorded in them, if one name fills them
  // Where they are at the same places of every step: one cell for each place, the most frequently late first.
  std::vector<uint32_t> at = {};
  std::vector<int32_t> at_steps = {};  // of one or two pauses: their steps
};

Telling tell_pauses(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
