// Parses what the text of an mstx (or NVTX) range says.
//
//   {'name': 'forward_step', 'current_microbatch': 3}      Python's str(dict), as the vendor's guide makes it
//   {"name": "forward_step", "mb": 3}                      JSON; also with its quotes escaped: {\"name\": …}
//   forward_step mb=3                                      words and numbers
//   optimizer                                              a name
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct RangeText {
  std::string name;
  int32_t micro_batch = -1, chunk = -1, stage = -1, step = -1;  // −1 where the text does not say
  // For a text in braces, all members in their order, with values without quotes.
  std::vector<std::pair<std::string, std::string>> members;

  std::string_view member(std::string_view key) const;  // "" when there is none
};

// Never fails: a text in none of the forms above is taken as a name. O(length), at most kMaxMembers members.
inline constexpr size_t kMaxMembers = 64;
RangeText parse_range_message(std::string_view message);

}  // namespace stageline
