#include "base/chinese.h"

#include "base/word_files.h"

namespace stageline {

namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

struct Dictionary {
  Texts names, sentences;

  Dictionary() {
    const auto add_to = [](Texts& to) {
      return [&to](std::string_view key, const simdjson::dom::element& value) {
        if (std::string_view text; !value.get(text)) to.emplace(key, text);
      };
    };
    for_each_declared("columns_zh", add_to(names));
    for_each_declared("sentences_zh", add_to(sentences));
    const auto add_rows = [&](auto&& columns) {  // name, title, type, explanation in English, in Chinese
      if (simdjson::dom::array rows; !columns.get(rows))
        for (const simdjson::dom::element& row : rows)
          if (std::string_view en, zh; !row.at(3).get(en) && !row.at(4).get(zh)) sentences.emplace(en, zh);
    };
    for_each_declared("column_sets", [&](auto, const simdjson::dom::element& columns) { add_rows(columns); });
    for_each_declared("tables", [&](auto, const simdjson::dom::element& owner) {
      for (const auto& [name, table] : simdjson::dom::object(owner))
        for (const std::string_view part : {"columns", "options"}) add_rows(table[part]);
    });
  }
};

const Dictionary& dictionary() {
  static const Dictionary known;
  return known;
}

std::string_view find(const Texts& texts, std::string_view key) {
  const auto at = texts.find(key);
  return at == texts.end() ? std::string_view() : at->second;
}

}  // namespace

std::string_view chinese_name(std::string_view key) { return find(dictionary().names, key); }

bool any_chinese_name(std::string_view prefix) {
  const auto at = dictionary().names.lower_bound(prefix);
  return at != dictionary().names.end() && std::string_view(at->first).starts_with(prefix);
}

std::string_view chinese_sentence(std::string_view english) { return find(dictionary().sentences, english); }

}  // namespace stageline
