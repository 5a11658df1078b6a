// The members of a small JSON object, or the elements of an array, each as its own text. It is for metadata, which
// hand-written serializers get wrong. Text that cannot be parsed ends the walk, and is never an error.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct JsonMember {
  std::string_view key;    // text between the quotes, escapes unchanged; "" for elements of an array
  std::string_view value;  // as written: "{…}", "\"text\"", "12"
  bool whole = true;       // false when the text ended inside this value
};

// Returns the members in the order of the text, including duplicates. `text` begins with { or [ (after any blanks) and
// may be cut off. Returns at most `limit` members.
std::vector<JsonMember> json_members(std::string_view text, size_t limit = SIZE_MAX);

// Returns the last member of that name, as every JSON parser does; "" when there is none.
std::string_view json_member(std::string_view object, std::string_view key);

// Returns a quoted text without quotes and escapes; any other value as it is written.
std::string json_text(std::string_view value);
// Returns a whole number, also when it is in quotes.
std::optional<int64_t> json_integer(std::string_view value);

}  // namespace stageline
