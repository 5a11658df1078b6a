// The fields of an event by name, and the parser of events for any valid JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "readers/common/rows/event.h"

namespace stageline::kineto {

enum class Fault : uint8_t {
  kNone,
  kMalformed,  // not JSON
  kBadField,   // a field of the wrong type or out of range
};

// The members of an event, besides args, that are kept.
bool is_field(std::string_view key);

// `text` is the value as written (strings without quotes and escapes, null as ""). False when it is no time.
bool set_field(std::string_view key, std::string_view text, Event& event);

// The general parser (simdjson). Refuses a text of a kept member that cannot be unescaped: TolerantParser
// (tolerant_event.h) makes something of it.
class EventParser {
 public:
  EventParser();
  ~EventParser();
  // `text` is one object, followed by at least 64 readable bytes.
  Fault parse(std::string_view text, Event& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stageline::kineto
