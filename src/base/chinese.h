// The program's words in Chinese, used by terminal, report and viewer alike. Two dictionaries from web/src/i18n are
// built into the program. columns_zh.json has names of tables and columns and the few words that columns hold;
// sentences_zh.json has sentences by their templates. Sentences of a single analysis have the same keys in
// src/analyses/FOLDER/words.json:
//
//     "{0} stages follow from {1}": "由{1}得出 {0} 级"
//
// Sentences that are written in both languages where they are made (findings, what-if) do not pass through here.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// Returns the Chinese for a key: "table.steps", "rank", "value.TABLE.COLUMN.TEXT", "word.TEXT", "flaw.NAME". Returns ""
// when the dictionary has no such key.
std::string_view chinese_name(std::string_view key);
// Returns true when a key of the dictionary begins with `prefix`.
bool any_chinese_name(std::string_view prefix);

// Returns the sentence in Chinese, or the sentence itself when no template fits. The texts that fill the places of a
// template are looked up as well, so a sentence may contain another. Each place takes the leftmost, shortest text that
// fits: O(templates + length · places), for texts of up to 4096 bytes; longer ones are returned unchanged. Thread-safe.
std::string in_chinese(std::string_view sentence);

// Returns the Chinese of a template as the dictionary has it, places and all; "" where it has none.
std::string_view chinese_template(std::string_view english);

}  // namespace stageline
