// Recognises files that users try although no reader takes them, to name them and say what to do instead.
#pragma once

#include <string_view>

namespace stageline {

struct ForeignFormat {
  const char* what;  // "a PyTorch execution trace (Chakra): a graph of operators without times of the device"
  const char* hint;
};

// Recognises a format by the file's first bytes and name; nullptr when it is none of those known here.
const ForeignFormat* foreign_format(std::string_view head, std::string_view path);
// Identifies the content of a file that no reader and no format above takes. It may be text in UTF-16, a table without
// header, JSON of other things, or bytes. Returns nullptr for other text. `head` is not damaged.
const ForeignFormat* unknown_content(std::string_view head, std::string_view path);
// Returns true for JSON of these formats whose words could be mistaken for a Chrome trace's.
bool is_foreign_json(std::string_view head);

}  // namespace stageline
