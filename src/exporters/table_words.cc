#include "exporters/table_words.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/chinese.h"
#include "base/text.h"

namespace stageline {
namespace {

// Columns of few words, which mean the same in every table.
constexpr std::array<std::string_view, 10> kSaysWords = {"part",    "within", "type", "piece",     "phase",
                                                         "verdict", "cause",  "what", "direction", "bound_by"};

bool is_sentence(const std::string& text) { return text.find(' ') != std::string::npos; }

std::string sentence_in_chinese(const std::string& text) { return is_sentence(text) ? in_chinese(text) : text; }

}  // namespace

bool holds_names(const ColumnSpec& spec) {
  return spec.type == ColumnType::kText &&
         (spec.name.find("name") != std::string::npos || spec.name.find("kernel") != std::string::npos);
}

std::string table_title(const Table& table, bool chinese) {
  const std::string& own = table.title().empty() ? table.name() : table.title();
  if (!chinese) return own;
  const std::string_view known = chinese_name("table." + table.name());
  return known.empty() ? in_chinese(own) : std::string(known);
}

std::string column_title(const ColumnSpec& spec, bool chinese) {
  if (!chinese) return spec.title;
  const std::string_view known = chinese_name(spec.name);
  return known.empty() ? spec.title : std::string(known);
}

std::string cell_in_chinese(const Table& table, const ColumnSpec& spec, const std::string& text) {
  if (text.empty() || holds_names(spec)) return text;
  std::string_view known = chinese_name("value." + table.name() + "." + spec.name + "." + text);
  if (known.empty() && std::find(kSaysWords.begin(), kSaysWords.end(), spec.name) != kSaysWords.end())
    known = chinese_name("word." + text);
  return known.empty() ? sentence_in_chinese(text) : std::string(known);
}

void write_sentences(JsonWriter& json, const std::vector<Table>& tables, const Diagnostics& notes, size_t most_rows) {
  std::map<std::string, std::string> pairs;
  for (const Table& table : tables) {
    if (std::string title = table_title(table, true); title != table.title())
      pairs.emplace(table.title(), std::move(title));
    const size_t rows = table.name().ends_with("-over-time") ? 0 : std::min(table.row_count(), most_rows);
    for_each_block(table, 0, rows, [&](const Table& block, size_t begin, size_t end) {
      for (size_t c = 0; c < table.columns().size(); ++c) {
        const ColumnSpec& spec = table.columns()[c];
        if (spec.type != ColumnType::kText || holds_names(spec)) continue;
        for (size_t r = begin; r < end; ++r) {
          const std::string& text = block.text(r, c);
          if (!is_sentence(text) || (r > begin && text == block.text(r - 1, c)) || pairs.contains(text)) continue;
          if (std::string chinese = sentence_in_chinese(text); chinese != text) pairs.emplace(text, std::move(chinese));
        }
      }
    });
  }
  for (const Diagnostic& item : notes.items())
    if (std::string chinese = in_chinese(item.message); chinese != item.message)
      pairs.emplace(item.message, std::move(chinese));
  json.key("sentences").begin_array();
  for (const auto& [en, zh] : pairs) json.begin_array().value(valid_utf8(en)).value(valid_utf8(zh)).end_array();
  json.end_array();
}

}  // namespace stageline
