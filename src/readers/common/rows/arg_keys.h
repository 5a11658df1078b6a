// The arguments of an event that Stageline keeps, by Kineto's names, and how they are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "readers/common/rows/event.h"

namespace stageline::rows {

enum class ArgKey : uint8_t {
  kNone,
#define ARG(key, name, field) k##key,
#define ALSO(key, name)
#include "readers/common/rows/arg_keys.def"
#undef ARG
#undef ALSO
};

ArgKey arg_key(std::string_view name);

// Where an event keeps an argument: as a number or as a text, or neither.
struct ArgField {
  int64_t Event::* number = nullptr;
  std::string_view Event::* text = nullptr;
  bool Event::* mark = nullptr;  // becomes true when the argument is there; has_stack only with a text
  int64_t otherwise = -1;        // the number of a text that is none
  bool array = false;            // arrays are kept as text; arrays and objects of all other arguments are skipped
};
const ArgField& arg_field(ArgKey key);
// Stores an argument. `text` is its value as written (strings without quotes and escapes, arrays with brackets, null as
// "").
void set_arg(ArgKey key, std::string_view text, Event& event);
// Stores an argument that came as a whole number, as set_arg() stores the number's text. Returns false, and stores
// nothing, where the argument is a text or a fraction.
bool set_number(ArgKey key, int64_t value, Event& event);

}  // namespace stageline::rows
