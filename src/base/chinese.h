// Names of tables and columns, and the fixed words that tables hold, in Chinese; used by terminal, report and viewer.
// Texts that several analyses share are in web/src/i18n/columns_zh.json, the others in words.json of their room.
// "columns_zh" has them by key, and "sentences_zh" by the English text, for columns with few fixed sentences:
//
//     "columns_zh": {"table.links": "链路", "value.links.reading.fine": "正常"},
//     "sentences_zh": {"slow link": "慢链路"}
//
// Sentences with something measured in them are made in both languages (base/words.h) and do not pass through here.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Returns the Chinese for a key: "table.steps", "rank", "value.TABLE.COLUMN.TEXT", "word.TEXT". Returns "" when no
// dictionary has it.
std::string_view chinese_name(std::string_view key);
// Returns true when a key of the dictionary begins with `prefix`.
bool any_chinese_name(std::string_view prefix);
// Returns the Chinese of a fixed sentence; "" when no dictionary has it. O(log sentences). Thread-safe.
std::string_view chinese_sentence(std::string_view english);

}  // namespace stageline
