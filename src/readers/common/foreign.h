// Files that users try although no reader of ours takes them: named, with what to do instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stageline {

struct ForeignFormat {
  const char* what;  // "a PyTorch execution trace (Chakra): a graph of operators without times of the device"
  const char* hint;
};

// By the first bytes of the file and its name; nullptr when it is nothing that is known.
const ForeignFormat* foreign_format(std::string_view head, std::string_view path);
// JSON of those kinds that could be mistaken for a Chrome trace by its words.
bool is_foreign_json(std::string_view head);

}  // namespace stageline
