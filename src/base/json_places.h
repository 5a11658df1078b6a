// The values of one long JSON text at places that the caller chooses, one after another, a window of the file at a
// time: memory is bounded by the window and the largest value that is taken, never by the file. For files whose arrays
// stand deep inside one object; of a plain array of objects base/json_events.h makes better use.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/input.h"
#include "base/result.h"

namespace stageline {

// Keys of the objects around a value, and its own, as written between the quotes; "" of the elements of an array. The
// whole text's is empty.
using JsonPath = std::vector<std::string>;

enum class JsonPlace : uint8_t {
  kPass,   // the value is not looked at
  kEnter,  // its members or elements are asked about in turn; a number or text is passed
  kTake,   // handed over whole
};

struct JsonWalk {
  bool whole = false;     // the text's last bracket was found
  int64_t broken_at = 0;  // where it is not: the decompressed position from which nothing more was understood
  int64_t too_long = 0;   // values of more than `most_bytes`, which were passed
};

// Calls place(path) for the values of every object and array that is entered, the text itself first, and
// take(path, text) for those that are taken, as soon as they end. What ends early ends the walk; a value that is cut
// is not taken. Depth at most 64 of what is entered. Errors: those of Input::read, after all before it.
Result<JsonWalk> walk_json(Input& input, const std::function<JsonPlace(const JsonPath&)>& place,
                           const std::function<void(const JsonPath&, std::string_view)>& take,
                           size_t most_bytes = size_t{64} << 20);

}  // namespace stageline
