// Errors on input that cannot be read. The sentence `name` says what is wrong, and NAME.do what to do, if anything.
#pragma once

#include <string>
#include <utility>

#include "base/error_words.h"
#include "readers/reader.h"

namespace stageline {

inline Error input_error(std::string_view name, Where where, const Args& args = {},
                         ErrorCode code = ErrorCode::kBadInput) {
  const std::string to_do = std::string(name) + ".do";
  return worded_error(code, name, args, std::move(where), has_words(to_do) ? words(to_do, args).en : "");
}

// Of input in which nothing of a format was found.
inline Error no_such_input(std::string_view name, const Source& source) {
  return input_error(name, {source.roots.empty() ? "" : source.roots[0]});
}

}  // namespace stageline
