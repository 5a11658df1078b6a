// Errors whose sentence is in words.json, for those that a note or a page shows: it then has both languages. Errors
// that end a command are English.
#pragma once

#include "base/words.h"

namespace stageline {

// Makes an error of the sentence called `name`, which must outlive it. A name "refused.REASON…" says why a run cannot
// answer (mcp/answer_parts.h).
inline Error worded_error(ErrorCode code, std::string_view name, const Args& args = {}, Where where = {},
                          std::string hint = {}) {
  Text what = words(name, args);
  return {code, std::move(what.en), std::move(where), std::move(hint), std::move(what.zh), name};
}

// Returns what went wrong; in Chinese too where that is known, else the English twice.
inline Text error_text(const Error& error) { return {error.what, error.what_zh.empty() ? error.what : error.what_zh}; }

}  // namespace stageline
