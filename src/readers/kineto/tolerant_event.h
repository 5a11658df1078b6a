// Parses one event as Kineto's hand-printed serializer really writes it, where a strict parser gives up. It accepts
// quotes that were not escaped, raw control characters, bytes that are not UTF-8, Windows paths, NaN, too many commas,
// and a missing brace. Kineto printed names and arguments unescaped until 2026 (pytorch 130622, 146900; kineto 1459).
//
// There are two passes. The first keeps JSON's structure and forgives values and commas; for a valid event it gives
// what EventParser gives. When the structure itself is broken, the second pass looks for the names that Kineto writes
// ("pid": after `", `) and takes the text between them.
#pragma once

#include <string>
#include <string_view>

#include "readers/kineto/event_parser.h"

namespace stageline::kineto {

class TolerantParser {
 public:
  // `text` starts with the event's brace and may go on after the event. end() returns the end of the event. A caller
  // whose counting of braces was misled by a stray quote can go on from there. At most kMaxJsonObjectBytes are looked
  // at. Views are valid until the next call (or as long as `text`). Returns kMalformed when nothing can be trusted,
  // also when the text ends within a value or within the arguments; kBadField when ts or dur is not a time.
  Fault parse(std::string_view text, rows::Event& event);

  size_t end() const { return end_; }
  bool guessed() const { return guessed_; }  // the structure was broken, so names and arguments are the best guess

 private:
  class Strict;
  class Anchored;

  std::string scratch_;
  size_t end_ = 0;
  bool guessed_ = false;
};

}  // namespace stageline::kineto
