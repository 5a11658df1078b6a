#include "exporters/table_words.h"

namespace stageline {
namespace {

// Columns whose texts are a few fixed words that mean the same in every table.
constexpr std::array<std::string_view, 10> kSaysWords = {"part",    "within", "type", "piece",     "phase",
                                                         "verdict", "cause",  "what", "direction", "bound_by"};

// Returns the Chinese word for `text` in a column with few fixed words; "" when it is not known.
std::string_view chinese_word(const Table& table, const ColumnSpec& spec, const std::string& text) {
  const std::string_view known = chinese_name("value." + table.name() + "." + spec.name + "." + text);
  if (!known.empty() || std::ranges::find(kSaysWords, spec.name) == kSaysWords.end()) return known;
  return chinese_name("word." + text);
}

bool says_words(const Table& table, const ColumnSpec& spec) {
  return std::ranges::find(kSaysWords, spec.name) != kSaysWords.end() ||
         any_chinese_name("value." + table.name() + "." + spec.name + ".");
}

}  // namespace

bool holds_names(const ColumnSpec& spec) {
  return spec.type == ColumnType::kText &&
         (spec.name.find("name") != std::string::npos || spec.name.find("kernel") != std::string::npos);
}

std::string table_title(const Table& table, bool chinese) {
  const std::string& own = table.title().empty() ? table.name() : table.title();
  if (!chinese) return own;
  std::string_view known = chinese_name("table." + table.name());
  if (known.empty()) known = chinese_sentence(own);
  return known.empty() ? own : std::string(known);
}

std::string column_title(const ColumnSpec& spec, bool chinese) {
  if (!chinese) return spec.title;
  const std::string_view known = chinese_name(spec.name);
  return known.empty() ? spec.title : std::string(known);
}

std::string cell_in_chinese(const Table& table, const ColumnSpec& spec, const std::string& text) {
  if (text.empty() || holds_names(spec)) return text;
  std::string_view known = table.chinese(text);
  if (known.empty()) known = chinese_word(table, spec, text);
  if (known.empty()) known = chinese_sentence(text);
  return known.empty() ? text : std::string(known);
}

void write_sentences(JsonWriter& json, const std::vector<Table>& tables, const Diagnostics& notes, size_t max_rows) {
  std::map<std::string, std::string> pairs;
  const auto name = [&](std::string key, std::string_view chinese) {
    if (!chinese.empty()) pairs.emplace(std::move(key), chinese);
  };
  for (const Table& table : tables) {
    if (std::string title = table_title(table, true); title != table.title())
      pairs.emplace(table.title(), std::move(title));
    name("table." + table.name(), chinese_name("table." + table.name()));
    for (const ColumnSpec& spec : table.columns()) {
      name("column." + spec.name, chinese_name(spec.name));
      name(spec.help, chinese_sentence(spec.help));
    }
    const size_t rows = table.name().ends_with("-over-time") ? 0 : std::min(table.row_count(), max_rows);
    for_each_block(table, 0, rows, [&](const Table& block, size_t begin, size_t end) {
      for (size_t c = 0; c < table.columns().size(); ++c) {
        const ColumnSpec& spec = table.columns()[c];
        if (spec.type != ColumnType::kText || holds_names(spec)) continue;
        const bool words = says_words(table, spec);
        for (size_t r = begin; r < end; ++r) {
          const std::string& text = block.text(r, c);
          if (text.empty() || (r > begin && text == block.text(r - 1, c))) continue;
          if (words) {
            const std::string_view word = chinese_word(table, spec, text);
            name("value." + table.name() + "." + spec.name + "." + text, word);
            if (!word.empty()) continue;
          }
          if (pairs.contains(text)) continue;
          std::string_view chinese = block.chinese(text);
          if (chinese.empty()) chinese = chinese_sentence(text);
          if (!chinese.empty()) pairs.emplace(text, chinese);
        }
      }
    });
  }
  for (const Diagnostic& item : notes.items())
    if (!item.message.zh.empty()) pairs.emplace(item.message.en, item.message.zh);
  json.key("sentences").begin_array();
  for (const auto& [en, zh] : pairs) json.begin_array().value(valid_utf8(en)).value(valid_utf8(zh)).end_array();
  json.end_array();
}

}  // namespace stageline
