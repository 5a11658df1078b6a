// The text of a scalar as the source wrote it, because numbers must not pass through a double.
#pragma once

#include <simdjson.h>

#include "base/vocabulary.h"

namespace stageline {

// Returns the value's first token without the blanks around it: a number, a quoted text, null, or one bracket; "" when
// there is none. `json` is the text being parsed. simdjson measures a token by the start of the next one. That may be
// any number if the text ends too early, so the length is checked.
inline std::string_view raw_token(simdjson::ondemand::value& value, std::string_view json) {
  const std::string_view token = value.raw_json_token();
  const char* const end = json.data() + json.size();
  if (token.data() < json.data() || token.data() >= end || token.size() > static_cast<size_t>(end - token.data()))
    return {};
  return trim(token);
}

}  // namespace stageline
