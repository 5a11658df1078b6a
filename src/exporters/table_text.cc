#include "exporters/table_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/csv.h"
#include "base/number.h"
#include "base/text.h"

namespace stageline {
namespace {

constexpr std::string_view kGap = "  ";
constexpr int kMinWrapColumns = 24;  // narrower than this, wrapping reads worse than a long line

bool is_text(const Table& table, size_t column) { return table.columns()[column].type == ColumnType::kText; }
bool is_integral(ColumnType type) {
  return type == ColumnType::kInteger || type == ColumnType::kDuration || type == ColumnType::kTime;
}

// Names in a trace are not ours: an escape sequence or a line end in one must not reach the terminal.
std::string printable(const std::string& text) {
  const auto harmless = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  const bool ascii = std::all_of(text.begin(), text.end(), [&](char c) { return harmless(c) && (c & 0x80) == 0; });
  if (ascii) return text;
  std::string out = valid_utf8(text);
  for (char& c : out)
    if (!harmless(c)) c = ' ';
  // C1 controls are two bytes in UTF-8, C2 80 … C2 9F; some terminals obey them.
  for (size_t i = 0; i + 1 < out.size(); ++i)
    if (out[i] == '\xc2' && static_cast<unsigned char>(out[i + 1]) < 0xa0) out.replace(i, 2, "  ");
  return out;
}

std::string shown(const Table& table, size_t row, size_t column) {
  return is_text(table, column) ? printable(table.text(row, column)) : table.shown_text(row, column);
}

void append_aligned(std::string& out, std::string_view text, int width, bool right, bool last) {
  const int missing = std::max(0, width - display_width(text));
  if (right) out.append(static_cast<size_t>(missing), ' ');
  out += text;
  if (!right && !last) out.append(static_cast<size_t>(missing), ' ');
}

// Bytes of `text` that fit into `width` columns, never cut within a character.
size_t wrap_point_anywhere(std::string_view text, int width) {
  size_t end = 0;
  for (int used = 0; end < text.size();) {
    size_t next = end + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    used += display_width(text.substr(end, next - end));
    if (used > width) break;
    end = next;
  }
  return end;
}

// The same, cut at a space if there is one. At least one character, so that wrapping ends.
size_t wrap_point(std::string_view text, int width) {
  size_t end = 0, space = 0;
  int used = 0;
  while (end < text.size()) {
    size_t next = end + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    used += display_width(text.substr(end, next - end));
    if (used > width && end > 0) return text[end] == ' ' || space == 0 ? end : space;
    if (text[end] == ' ') space = end;
    end = next;
  }
  return end;
}

void append_wrapped(std::string& out, std::string_view text, int width, size_t indent) {
  for (bool first = true; first || !text.empty(); first = false) {
    if (!first) {
      out += '\n';
      out.append(indent, ' ');
    }
    const size_t cut = wrap_point(text, width);
    out += text.substr(0, cut);
    text.remove_prefix(cut);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
}

// `text` in at most `width` columns: its head and its tail around an ellipsis. Kernel names of hundreds of
// characters differ at either end.
std::string shortened(const std::string& text, int width) {
  if (display_width(text) <= width) return text;
  const size_t head = wrap_point_anywhere(text, width * 2 / 3);
  size_t tail = text.size();
  for (int used = 1 + display_width(std::string_view(text).substr(0, head)); tail > head;) {
    size_t next = tail - 1;
    while (next > head && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) --next;
    used += display_width(std::string_view(text).substr(next, tail - next));
    if (used > width) break;
    tail = next;
  }
  return text.substr(0, head) + "…" + text.substr(tail);
}

// Makes text columns narrower, the widest first, until the table fits into `room` columns or they are as
// narrow as can be read.
void fit_columns(const Table& table, std::vector<int>& width, int room, size_t end) {
  int total = 0;
  for (size_t c = 0; c < end; ++c) total += width[c] + (c > 0 ? static_cast<int>(kGap.size()) : 0);
  while (total > room) {
    size_t widest = end;
    for (size_t c = 0; c < end; ++c)
      if (is_text(table, c) && width[c] > kMinWrapColumns && (widest == end || width[c] > width[widest])) widest = c;
    if (widest == end) return;
    const int cut = std::min(total - room, width[widest] - kMinWrapColumns);
    width[widest] -= cut;
    total -= cut;
  }
}

void append_integer(std::string& out, int64_t value) {
  char buffer[24];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

}  // namespace

std::string format_table_text(const Table& table, int width_columns, bool colour, size_t most_rows) {
  const size_t columns = table.columns().size();
  const size_t rows = std::min(table.row_count(), most_rows);
  if (columns == 0) return {};
  std::vector<std::string> header(columns);
  std::vector<int> width(columns);
  for (size_t c = 0; c < columns; ++c) {
    const ColumnSpec& spec = table.columns()[c];
    header[c] = printable(spec.title);
    if (const std::string_view unit = shown_unit(spec.type); !unit.empty()) header[c] += " " + std::string(unit);
    width[c] = display_width(header[c]);
    for (size_t r = 0; r < rows; ++r) width[c] = std::max(width[c], display_width(shown(table, r, c)));
  }
  // The last column wraps where it can; the others give way to it as far as they must.
  const bool last_wraps = is_text(table, columns - 1) && width[columns - 1] > kMinWrapColumns;
  if (width_columns > 0 && last_wraps) {
    fit_columns(table, width, width_columns - kMinWrapColumns - static_cast<int>(kGap.size()), columns - 1);
  } else if (width_columns > 0) {
    fit_columns(table, width, width_columns, columns);
  }
  int before_last = 0;
  for (size_t c = 0; c + 1 < columns; ++c) before_last += width[c] + static_cast<int>(kGap.size());
  const size_t last = columns - 1;
  const int room = width_columns - before_last;
  const bool wrap = width_columns > 0 && is_text(table, last) && room < width[last] && room >= kMinWrapColumns;

  std::string out;
  if (colour) out += "\x1b[2m";
  for (size_t c = 0; c < columns; ++c) {
    if (c > 0) out += kGap;
    append_aligned(out, header[c], width[c], !is_text(table, c), c == last);
  }
  if (colour) out += "\x1b[0m";
  out += '\n';
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) out += kGap;
      if (c == last && wrap)
        append_wrapped(out, shown(table, r, c), room, static_cast<size_t>(before_last));
      else
        append_aligned(out,
                       is_text(table, c) && c != last ? shortened(shown(table, r, c), width[c]) : shown(table, r, c),
                       width[c], !is_text(table, c), c == last);
    }
    // An empty last field must not leave its gap behind.
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }
  if (rows < table.row_count())
    out += "… " + grouped(static_cast<int64_t>(table.row_count() - rows)) + " more rows of " + table.name() +
           "; --rows 0 prints all, --format csv or json too\n";
  return out;
}

void append_csv_header(std::string& out, const Table& table) {
  for (size_t c = 0; c < table.columns().size(); ++c) {
    if (c > 0) out += ',';
    append_csv_field(out, table.columns()[c].name);
  }
  out += '\n';
}

void append_csv_rows(std::string& out, const Table& table, size_t begin, size_t end) {
  const size_t columns = table.columns().size();
  for (size_t r = begin; r < end; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) out += ',';
      if (table.is_null(r, c)) continue;
      const ColumnType type = table.columns()[c].type;
      if (is_integral(type))
        append_integer(out, table.integer(r, c));
      else if (type == ColumnType::kText)
        append_csv_field(out, table.text(r, c));
      else  // an infinite ratio is not an unknown one: JSON has no word for it, CSV has
        out += std::isfinite(table.real(r, c)) ? table.raw_text(r, c) : repr_double(table.real(r, c));
    }
    out += '\n';
  }
}

std::string format_table_csv(const Table& table) {
  std::string out;
  append_csv_header(out, table);
  append_csv_rows(out, table, 0, table.row_count());
  return out;
}

void append_table_json(JsonWriter& json, const Table& table, const std::function<void(JsonWriter&)>& flush) {
  json.begin_object().field("name", table.name()).field("title", table.title());
  json.key("columns").begin_array();
  for (const ColumnSpec& spec : table.columns()) {
    json.begin_object().field("name", spec.name).field("title", spec.title);
    json.field("type", column_type_name(spec.type)).field("unit", raw_unit(spec.type)).field("help", spec.help);
    json.end_object();
  }
  json.end_array().key("rows").begin_array();
  for (size_t r = 0; r < table.row_count(); ++r) {
    json.begin_object();
    for (size_t c = 0; c < table.columns().size(); ++c) {
      const ColumnSpec& spec = table.columns()[c];
      json.key(spec.name);
      if (table.is_null(r, c))
        json.null();
      else if (is_integral(spec.type))
        json.value(table.integer(r, c));
      else if (spec.type == ColumnType::kText)
        json.value(table.text(r, c));
      else
        json.value(table.real(r, c));
    }
    json.end_object();
    if (flush && r % 1024 == 1023) flush(json);
  }
  json.end_array().end_object();
}

}  // namespace stageline
