// Our own words in Chinese, for terminal, report and viewer alike. Two dictionaries, built into the program from
// web/src/i18n: columns_zh.json has names of tables and columns and the few words that columns hold, sentences_zh.json
// has sentences by their templates. What one analysis alone says stands under the same names in
// src/analyses/FOLDER/words.json:
//
//     "{0} stages follow from {1}": "由{1}得出 {0} 级"
//
// Where one sentence is written in both languages on the spot (findings, what-if) it does not pass here.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// "table.steps", "rank", "value.TABLE.COLUMN.TEXT", "word.TEXT", "flaw.NAME"; "" where the dictionary has no such key.
std::string_view chinese_name(std::string_view key);
// Whether any of its keys begins so.
bool any_chinese_name(std::string_view prefix);

// The sentence in Chinese; itself where no template fits. What fills a place is looked up as well, so that a sentence
// may hold another. Leftmost-shortest fit of each place: O(templates + length · places), for texts up to 4096 bytes;
// longer ones come back as they are. Thread-safe.
std::string in_chinese(std::string_view sentence);

}  // namespace stageline
