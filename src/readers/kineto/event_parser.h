// The fields of an event by name, and the general parser, which takes events in any valid JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "readers/common/rows/event.h"

namespace stageline::kineto {

enum class Fault : uint8_t {
  kNone,
  kMalformed,  // the text is not JSON
  kBadField,   // a field has the wrong type or is out of range
};

// Returns true for the members of an event, besides args, that are kept.
bool is_field(std::string_view key);

// Sets a field; `text` is the value as written (strings without quotes and escapes, null as ""). False when it should
// be a time and is none.
bool set_field(std::string_view key, std::string_view text, rows::Event& event);

// The general parser uses simdjson. It refuses an event with a kept text that cannot be unescaped; TolerantParser
// (tolerant_event.h) recovers such events as far as possible.
class EventParser {
 public:
  EventParser();
  ~EventParser();
  // `text` is one object, followed by at least 64 readable bytes.
  Fault parse(std::string_view text, rows::Event& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stageline::kineto
