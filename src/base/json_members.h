// The members of a small JSON object, or the elements of an array, each as its own text. For metadata, which
// hand-written serializers get wrong: what cannot be told apart ends the walk, nothing is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

struct JsonMember {
  std::string_view key;    // between the quotes, escapes as they are; "" for elements of an array
  std::string_view value;  // as written: "{…}", "\"text\"", "12"
  bool whole = true;       // false: the text ended inside this value
};

// In the order of the text, duplicates too. `text` begins with { or [ (blanks before it are passed over) and may
// be cut. At most `limit` members.
std::vector<JsonMember> json_members(std::string_view text, size_t limit = SIZE_MAX);

// The last member of that name, as every JSON parser decides; "" when there is none.
std::string_view json_member(std::string_view object, std::string_view key);

// A quoted text without quotes and escapes, anything else as written.
std::string json_text(std::string_view value);
// A whole number, also when it is quoted.
std::optional<int64_t> json_integer(std::string_view value);

}  // namespace stageline
