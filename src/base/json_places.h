// Reads the values at chosen places of one long JSON text, one after another, a window of the file at a time. Memory is
// bounded by the window and the largest value taken, never by the file. It is for files whose arrays stand deep inside
// one object. For a plain array of objects, base/json_events.h is the better choice.
#pragma once

#include "base/input.h"

namespace stageline {

// The keys of the objects around a value and its own key, as written between the quotes; an element of an array has the
// key "". The path of the whole text is empty.
using JsonPath = std::vector<std::string>;

enum class JsonPlace : uint8_t {
  kPass,   // the value is skipped
  kEnter,  // its members or elements are asked about in turn; a number or text is skipped
  kTake,   // the value is handed over whole
};

struct JsonWalk {
  bool whole = false;     // true when the closing bracket of the text was found
  int64_t broken_at = 0;  // otherwise: the position in the decompressed text from which nothing more was understood
  int64_t too_long = 0;   // number of values of more than `max_bytes`, which were skipped
};

// Calls place(path) for each value of every object and array that is entered, starting with the text itself. Calls
// take(path, text) for each value that is taken, as soon as it ends. The walk ends where the text ends early; a value
// that is cut off is not taken. At most 64 levels can be entered. Errors: those of Input::read, after all values before
// it.
Result<JsonWalk> walk_json(Input& input, const std::function<JsonPlace(const JsonPath&)>& place,
                           const std::function<void(const JsonPath&, std::string_view)>& take,
                           size_t max_bytes = size_t{64} << 20);

}  // namespace stageline
