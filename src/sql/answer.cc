#include "sql/answer.h"

#include "base/csv.h"
#include "base/json_writer.h"

namespace stageline::sql {
namespace {

constexpr size_t kBytesPerWrite = size_t{1} << 18;

std::string number_text(const SqlValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  return repr_double(std::get<double>(value));
}

}  // namespace

void AnswerTable::begin(const std::vector<ResultColumn>& columns) {
  columns_.clear();
  rows_ = 0;
  bytes_ = 0;
  for (const ResultColumn& column : columns) columns_.push_back({column, SqlType::kInteger, {}, {}, {}, {}, {}, 0});
}

bool AnswerTable::row(const std::vector<SqlValue>& values) {
  for (size_t c = 0; c < columns_.size(); ++c) add(columns_[c], values[c]);
  ++rows_;
  return !is_full();
}

void AnswerTable::add(Column& column, const SqlValue& value) {
  const bool is_null = value.index() == 0;
  const SqlType type = value.index() == 3 ? SqlType::kText : value.index() == 2 ? SqlType::kReal : SqlType::kInteger;
  if (!is_null && type > column.type) {  // earlier values become the wider type
    if (type == SqlType::kText) {
      for (size_t i = 0; i < rows_; ++i) {
        if (column.valid[i])
          column.bytes +=
              column.type == SqlType::kReal ? repr_double(column.reals[i]) : std::to_string(column.integers[i]);
        column.ends.push_back(column.bytes.size());
      }
      column.integers = {};
      column.reals = {};
    } else {
      for (const int64_t whole : column.integers) column.reals.push_back(whole);
      column.integers = {};
    }
    column.type = type;
  }
  column.valid.push_back(is_null ? 0 : 1);
  column.nulls += is_null ? 1 : 0;
  bytes_ += 9;
  switch (column.type) {
    case SqlType::kInteger: column.integers.push_back(is_null ? 0 : std::get<int64_t>(value)); break;
    case SqlType::kReal:
      column.reals.push_back(is_null ? 0 : value.index() == 1 ? std::get<int64_t>(value) : std::get<double>(value));
      break;
    case SqlType::kText: {
      const size_t before = column.bytes.size();
      if (const auto* text = std::get_if<std::string_view>(&value)) column.bytes += valid_utf8(*text);
      else if (!is_null) column.bytes += number_text(value);
      column.ends.push_back(column.bytes.size());
      bytes_ += static_cast<int64_t>(column.bytes.size() - before);
    }
  }
}

std::string AnswerTable::shown(size_t row, size_t column) const {
  const Column& c = columns_[column];
  if (!c.valid[row]) return "–";
  switch (c.type) {
    case SqlType::kInteger: return std::to_string(c.integers[row]);
    case SqlType::kReal: {
      // Six significant digits, and no exponent for numbers of a usual size.
      const double value = c.reals[row], size = std::abs(value);
      if (!std::isfinite(value) || (size > 0 && (size < 1e-6 || size >= 1e15))) return repr_double(value);
      int decimals = 6;
      for (double edge = 1; decimals > 0 && size >= edge; edge *= 10) --decimals;
      std::string text = fixed(value, decimals);
      if (text.find('.') == std::string::npos) return text;
      text.erase(text.find_last_not_of('0') + 1);
      if (text.ends_with('.')) text.pop_back();
      return text;
    }
    case SqlType::kText: return std::string(c.text(row));
  }
  return {};
}

void CsvSink::begin(const std::vector<ResultColumn>& columns) {
  for (const ResultColumn& column : columns) {
    if (&column != columns.data()) text_ += ',';
    append_csv_field(text_, column.name);
  }
  text_ += '\n';
}

bool CsvSink::row(const std::vector<SqlValue>& values) {
  for (size_t c = 0; c < values.size(); ++c) {
    if (c > 0) text_ += ',';
    if (const auto* text = std::get_if<std::string_view>(&values[c]))
      text->empty() ? text_ += "\"\"" : (append_csv_field(text_, valid_utf8(*text)), text_);
    else if (values[c].index() != 0) text_ += number_text(values[c]);
  }
  text_ += '\n';
  if (text_.size() >= kBytesPerWrite) end();
  return true;
}

void CsvSink::end() {
  write_(text_);
  text_.clear();
}

void JsonSink::begin(const std::vector<ResultColumn>& columns) {
  text_ += "{\"columns\":[";
  for (const ResultColumn& column : columns) {
    if (&column != columns.data()) text_ += ',';
    text_ += "{\"name\":";
    append_json_string(text_, column.name);
    text_ += ",\"unit\":";
    append_json_string(text_, column.unit);
    text_ += '}';
  }
  text_ += "],\"rows\":[";
}

bool JsonSink::row(const std::vector<SqlValue>& values) {
  if (written_ + std::ssize(text_) >= max_bytes_) {
    full_ = true;
    return false;
  }
  text_ += any_ ? ",\n[" : "[";
  any_ = true;
  ++rows_;
  for (size_t c = 0; c < values.size(); ++c) {
    if (c > 0) text_ += ',';
    if (const auto* text = std::get_if<std::string_view>(&values[c])) append_json_string(text_, *text);
    else if (const auto* real = std::get_if<double>(&values[c])) text_ += json_double(*real);
    else text_ += values[c].index() == 0 ? "null" : number_text(values[c]);
  }
  text_ += ']';
  if (text_.size() >= kBytesPerWrite) {
    written_ += static_cast<int64_t>(text_.size());
    write_(text_);
    text_.clear();
  }
  return true;
}

void JsonSink::end(const Outcome& outcome) {
  text_ += "],\"row_count\":" + std::to_string(rows_) +
           ",\"truncated\":" + (outcome.truncated || full_ ? "true" : "false") + "}";
  write_(text_);
  text_.clear();
}

std::string answer_text(const AnswerTable& answer, size_t widest, bool colour) {
  const std::vector<AnswerTable::Column>& columns = answer.columns();
  std::vector<size_t> widths;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> cells(columns.size());
  const auto width_of = [](const std::string& text) { return static_cast<size_t>(std::max(0, display_width(text))); };
  const auto cut = [&](std::string text) {
    text = terminal_text(text);
    if (widest == 0 || width_of(text) <= widest) return text;
    // Letters of several bytes are kept whole; as many as fit are taken from both ends.
    size_t head = 0, tail = text.size();
    const auto room = [&](size_t left) { return width_of(text.substr(0, head)) + left + 1 > widest; };
    while (head < text.size() && !room(width_of(text.substr(tail)))) {
      const size_t next = character_end(text, head);
      if (width_of(text.substr(0, next)) > (widest - 1) * 2 / 3) break;
      head = next;
    }
    while (tail > head) {
      const size_t next = std::max(head, character_start(text, tail - 1));
      if (width_of(text.substr(0, head)) + width_of(text.substr(next)) + 1 > widest) break;
      tail = next;
    }
    return text.substr(0, head) + "…" + text.substr(tail);
  };
  for (size_t c = 0; c < columns.size(); ++c) {
    names.push_back(terminal_text(columns[c].spec.name));
    widths.push_back(width_of(names[c]));
    for (size_t r = 0; r < answer.row_count(); ++r) {
      cells[c].push_back(cut(answer.shown(r, c)));
      widths[c] = std::max(widths[c], width_of(cells[c].back()));
    }
  }
  std::string out;
  const auto line = [&](const auto& cell, bool header) {
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string value = cell(c);
      const std::string blanks(widths[c] - width_of(value), ' ');
      if (c > 0) text += "  ";
      text += columns[c].type == SqlType::kText ? value + blanks : blanks + value;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += header && colour ? "\x1b[2m" + text + "\x1b[0m\n" : text + "\n";
  };
  line([&](size_t c) { return names[c]; }, true);
  for (size_t r = 0; r < answer.row_count(); ++r) line([&](size_t c) { return cells[c][r]; }, false);
  return out;
}

}  // namespace stageline::sql
