// Recognises files that users try although no reader takes them, to name them and say what to do instead.
//
// A format is the name of the sentence that says what the file is, "foreign.nvprof"; "" when none is recognised. The
// sentence NAME.do says what to do instead, or GROUP.do where formats of a group, "foreign.run.perf", have the same.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Recognises a format by the file's first bytes and name.
std::string_view foreign_format(std::string_view head, std::string_view path);
// Identifies the content of a file that no reader and no format above takes. It may be text in UTF-16, a table without
// header, JSON of other things, or bytes. `head` is not damaged.
std::string_view unknown_content(std::string_view head, std::string_view path);
// Returns true for JSON of these formats whose words could be mistaken for a Chrome trace's.
bool is_foreign_json(std::string_view head);
Error foreign_error(ErrorCode code, std::string_view format, const std::string& path);

}  // namespace stageline
