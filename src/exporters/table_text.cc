#include "exporters/table_text.h"

#include "base/csv.h"
#include "exporters/table_words.h"

namespace stageline {
namespace {

constexpr std::string_view kGap = "  ";
constexpr int kMaxNameColumns = 60;  // width of a name when the output is a pipe
constexpr int kMinWrapColumns = 24;  // narrower than this, a wrapped column is harder to read than a long line

bool is_text(const Table& table, size_t column) { return table.columns()[column].type == ColumnType::kText; }
bool is_integral(ColumnType type) {
  return type == ColumnType::kInteger || type == ColumnType::kDuration || type == ColumnType::kTime;
}

// Returns true for columns "bytes", "self_device_bytes" and the like, whose counts run to thirteen digits.
bool is_bytes(const ColumnSpec& spec) {
  return spec.type == ColumnType::kInteger && (spec.name == "bytes" || spec.name.ends_with("_bytes"));
}
bool is_flops(const ColumnSpec& spec) { return spec.type == ColumnType::kInteger && spec.name == "flops"; }

std::string human_count(int64_t value) {
  if (std::abs(static_cast<double>(value)) < 1e4) return std::to_string(value);
  double scaled = value;
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T", "P", "E"}) {
    if (std::abs(scaled) < 1000) break;
    scaled /= 1000;
    unit = next;
  }
  return fixed(scaled, 2) + " " + unit;
}

constexpr size_t kMaxPageText = size_t{1} << 14;  // bytes; names of charts are cut much earlier
constexpr size_t kFlushedBytes = size_t{1} << 16;
// 11 days; no run's own clock counts that far, so a larger time counts from 1970.
constexpr int64_t kEpochNs = 1'000'000'000'000'000;

// Returns the time from which the table's times are shown: `wanted` when both it and the table count from 1970, else
// the table's first time. Returns 0 when the times are to be shown unchanged.
int64_t shown_origin(const Table& table, size_t rows, int64_t wanted) {
  int64_t min = INT64_MAX;
  for (size_t c = 0; c < table.columns().size(); ++c)
    for (size_t r = 0; table.columns()[c].type == ColumnType::kTime && r < rows; ++r)
      if (!table.is_null(r, c)) min = std::min(min, table.integer(r, c));
  if (min == INT64_MAX || min < kEpochNs) return 0;
  return wanted >= kEpochNs ? wanted : min;
}

// The values of a table as people see them.
class Shown {
 public:
  Shown(const Table& table, size_t rows, bool whole_names, int64_t origin_ns, bool chinese)
      : table_(table), chinese_(chinese) {
    origin_ns_ = shown_origin(table, rows, origin_ns);
    if (!whole_names) shorten_names(rows);
  }

  // Times since 1970 have fifteen digits before the point. They are shown from the first time of the run, so that
  // tables and charts of one run can be compared. 0: they are shown unchanged.
  int64_t origin_ns() const { return origin_ns_; }

  std::string operator()(size_t row, size_t column) const {
    const ColumnSpec& spec = table_.columns()[column];
    if (spec.type == ColumnType::kText) {
      const std::string& text = table_.text(row, column);
      if (holds_names(spec))
        if (const auto it = short_.find(text); it != short_.end()) return terminal_text(it->second);
      return terminal_text(chinese_ ? cell_in_chinese(table_, spec, text) : text);
    }
    if (table_.is_null(row, column)) return table_.shown_text(row, column);
    if (is_bytes(spec)) {
      const double bytes = table_.integer(row, column);
      return (bytes < 0 ? "-" : "") + human_bytes(std::abs(bytes));
    }
    if (is_flops(spec)) return human_count(table_.integer(row, column));
    if (spec.type == ColumnType::kTime && origin_ns_ != 0) {
      const int64_t ns = table_.integer(row, column);
      return ns < kEpochNs ? "–" : fixed((ns - origin_ns_) / 1e6, 3);
    }
    return table_.shown_text(row, column);
  }

 private:
  static constexpr int kLongName = 40;

  // Two kernels whose short names would be equal keep their whole names.
  void shorten_names(size_t rows) {
    std::unordered_map<std::string, std::string> whole_of;
    std::vector<std::string> taken;
    for (size_t c = 0; c < table_.columns().size(); ++c)
      for (size_t r = 0; holds_names(table_.columns()[c]) && r < rows; ++r) {
        const std::string& text = table_.text(r, c);
        const bool signature = text.starts_with("void ") || text.find("::") < text.find('(');
        if (!signature || text.size() <= kLongName || short_.contains(text)) continue;
        std::string brief = kernel_label(text);
        const auto [it, fresh] = whole_of.try_emplace(brief, text);
        if (!fresh && it->second != text) taken.push_back(brief);
        short_.emplace(text, std::move(brief));
      }
    std::ranges::sort(taken);
    std::erase_if(short_, [&](const auto& one) { return std::ranges::binary_search(taken, one.second); });
  }

  const Table& table_;
  bool chinese_;
  int64_t origin_ns_ = 0;
  std::unordered_map<std::string, std::string> short_;
};

void append_aligned(std::string& out, std::string_view text, int width, bool right, bool last) {
  const int missing = std::max(0, width - display_width(text));
  if (right) out.append(missing, ' ');
  out += text;
  if (!right && !last) out.append(missing, ' ');
}

// Returns how many bytes of `text` fit into `width` columns, never cutting within a character.
size_t wrap_point_anywhere(std::string_view text, int width) {
  size_t end = 0;
  for (int used = 0; end < text.size();) {
    const size_t next = character_end(text, end);
    used += display_width(text.substr(end, next - end));
    if (used > width) break;
    end = next;
  }
  return end;
}

// Returns the same, but cut at a space when there is one. It is at least one character, so that wrapping ends.
size_t wrap_point(std::string_view text, int width) {
  size_t end = 0, space = 0;
  int used = 0;
  while (end < text.size()) {
    const size_t next = character_end(text, end);
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

// Returns `text` in at most `width` columns: its head and its tail around an ellipsis, because kernel names of hundreds
// of characters may differ at either end.
std::string shortened(const std::string& text, int width) {
  if (display_width(text) <= width) return text;
  const size_t head = wrap_point_anywhere(text, width * 2 / 3);
  size_t tail = text.size();
  for (int used = 1 + display_width(std::string_view(text).substr(0, head)); tail > head;) {
    const size_t next = std::max(head, character_start(text, tail - 1));
    used += display_width(std::string_view(text).substr(next, tail - next));
    if (used > width) break;
    tail = next;
  }
  return text.substr(0, head) + "…" + text.substr(tail);
}

// Makes text columns narrower, the widest first, until the table fits into `room` columns or the columns are as narrow
// as can be read.
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
      if (is_integral(type)) append_integer(out, table.integer(r, c));
      else if (type == ColumnType::kText) append_csv_field(out, table.text(r, c));
      else  // an infinite ratio is not an unknown one; JSON cannot write it, but CSV can
        out += std::isfinite(table.real(r, c)) ? table.raw_text(r, c) : repr_double(table.real(r, c));
    }
    out += '\n';
  }
}

void write_columns(JsonWriter& json, const Table& table) {
  json.field("name", table.name()).field("title", table.title());
  json.objects("columns", table.columns(), [&](const ColumnSpec& spec) {
    json.field("name", spec.name).field("title", spec.title);
    json.field("type", column_type_name(spec.type)).field("unit", raw_unit(spec.type)).field("help", spec.help);
  });
}

void write_value(JsonWriter& json, const Table& table, size_t row, size_t column, int64_t origin_ns,
                 size_t max_bytes = std::string_view::npos) {
  const ColumnType type = table.columns()[column].type;
  if (table.is_null(row, column)) json.null();
  else if (type == ColumnType::kTime) json.value(sum_or_limit(table.integer(row, column), -origin_ns));
  else if (is_integral(type)) json.value(table.integer(row, column));
  else if (type == ColumnType::kText) json.value(cut_text(table.text(row, column), max_bytes));
  else json.value(table.real(row, column));
}

std::vector<std::string> header_of(const Table& table, bool chinese) {
  std::vector<std::string> header;
  for (const ColumnSpec& spec : table.columns()) {
    header.push_back(terminal_text(column_title(spec, chinese)));
    if (const std::string_view unit = shown_unit(spec.type); !unit.empty()) header.back() += " " + std::string(unit);
  }
  return header;
}

// The width that each column takes where there is room. In a pipe nothing else limits the length of a line, so with
// `cuts_names` names are cut. Sentences (the last column, and the column "words") are not.
std::vector<int> natural_widths(const Table& table, const std::vector<std::string>& header, const Shown& shown,
                                size_t rows, bool cuts_names) {
  std::vector<int> width;
  for (size_t c = 0; c < header.size(); ++c) {
    const ColumnSpec& spec = table.columns()[c];
    const int min = display_width(header[c]);
    width.push_back(min);
    for (size_t r = 0; r < rows; ++r) width[c] = std::max(width[c], display_width(shown(r, c)));
    if (cuts_names && is_text(table, c) && spec.name != "words" && (c + 1 < header.size() || holds_names(spec)))
      width[c] = std::min(width[c], std::max(kMaxNameColumns, min));
  }
  return width;
}

}  // namespace

std::string format_table_text(const Table& table, int width_columns, bool colour, size_t max_rows, bool whole_names,
                              int64_t origin_ns, bool chinese) {
  const size_t columns = table.columns().size(), last = columns - 1;
  const size_t rows = std::min(table.row_count(), max_rows);
  if (columns == 0) return {};
  if (table.row_count() == 0) {
    const Args none = Args().set("title", table_title(table, chinese));
    return words("table.none", none).in(chinese) + "\n";
  }
  const Table made = table.is_later() ? table.rows(0, rows) : Table();
  const Table& body = table.is_later() ? made : table;
  const Shown shown(body, rows, whole_names, origin_ns, chinese);
  const std::vector<std::string> header = header_of(table, chinese);
  std::vector<int> width = natural_widths(table, header, shown, rows, width_columns == 0 && !whole_names);
  // The last column is wrapped where that is possible. The other columns get narrower only as far as needed.
  const bool last_wraps = is_text(table, columns - 1) && width[columns - 1] > kMinWrapColumns;
  if (width_columns > 0 && last_wraps)
    fit_columns(table, width, width_columns - kMinWrapColumns - static_cast<int>(kGap.size()), columns - 1);
  else if (width_columns > 0) fit_columns(table, width, width_columns, columns);
  int before_last = 0;
  for (size_t c = 0; c + 1 < columns; ++c) before_last += width[c] + static_cast<int>(kGap.size());
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
      if (c == last && wrap) append_wrapped(out, shown(r, c), room, before_last);
      else
        append_aligned(
            out,
            is_text(table, c) && (c != last || width_columns == 0) ? shortened(shown(r, c), width[c]) : shown(r, c),
            width[c], !is_text(table, c), c == last);
    }
    // An empty last field must not leave the gap before it.
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }
  if (shown.origin_ns() != 0) {
    Args args;
    args.set("origin", ns_as_decimal(shown.origin_ns(), 6)).flag("run", origin_ns == shown.origin_ns());
    out += words("table.origin", args).in(chinese) + "\n";
  }
  if (rows < table.row_count()) {
    Args args;
    args.set("table", table.name()).set("count", grouped(table.row_count() - rows));
    out += words("table.more", args).in(chinese) + "\n";
  }
  return out;
}

void write_table_csv(const Table& table, const std::function<void(const std::string& text)>& write) {
  std::string text;
  append_csv_header(text, table);
  for_each_block(table, 0, table.row_count(), [&](const Table& block, size_t begin, size_t end) {
    for (size_t first = begin; first < end; first += kBlockRows) {
      append_csv_rows(text, block, first, std::min(first + kBlockRows, end));
      write(text);
      text.clear();
    }
  });
  if (!text.empty()) write(text);  // the header of a table that has no rows
}

std::string format_table_csv(const Table& table) {
  std::string out;
  write_table_csv(table, [&](const std::string& text) { out += text; });
  return out;
}

void append_table_json(JsonWriter& json, const Table& table, const std::function<void(JsonWriter&)>& flush) {
  json.begin_object();
  write_columns(json, table);
  json.key("rows").begin_array();
  for_each_block(table, 0, table.row_count(), [&](const Table& block, size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      json.begin_object();
      for (size_t c = 0; c < table.columns().size(); ++c) {
        json.key(table.columns()[c].name);
        write_value(json, block, r, c, 0);
      }
      json.end_object();
      if (flush && json.text().size() >= kFlushedBytes) flush(json);
    }
  });
  json.end_array().end_object();
}

void append_table_page(JsonWriter& json, const Table& table, size_t max_rows, int64_t origin_ns, size_t first_row,
                       RowsApart* apart) {
  json.begin_object();
  write_columns(json, table);
  const size_t begin = std::min(first_row, table.row_count());
  const size_t end = begin + std::min(table.row_count() - begin, max_rows);
  // The origin is taken from the table's first rows, so that it is the same for every part of the table that a page
  // asks for.
  const size_t shown = std::min(table.row_count(), max_rows);
  const int64_t origin =
      table.is_later() ? shown_origin(table.rows(0, shown), shown, origin_ns) : shown_origin(table, shown, origin_ns);
  json.field("row_count", table.row_count()).field("origin_ns", std::to_string(origin));
  const auto write_rows = [&](JsonWriter& out) {
    out.begin_array();
    for_each_block(table, begin, end, [&](const Table& block, size_t from, size_t to) {
      for (size_t r = from; r < to; ++r) {
        out.begin_array();
        for (size_t c = 0; c < table.columns().size(); ++c) write_value(out, block, r, c, origin, kMaxPageText);
        out.end_array();
      }
    });
    out.end_array();
  };
  if (apart && end - begin >= kMinRowsApart) {
    JsonWriter rows;
    write_rows(rows);
    const std::string text = rows.take();
    constexpr std::string_view kKey = "\"rows_at\":";
    RowsApart::Place place{0, 0, apart->text.size(), text.size()};
    json.key("rows_at");
    place.key_at = json.text().size() - kKey.size();
    json.begin_array().value(place.rows_at);
    json.value(text.size()).value(end - begin).end_array();
    place.key_end = json.text().size();
    apart->places.push_back(place);
    apart->text += text;
  } else {
    write_rows(json.key("rows"));
  }
  json.end_object();
}

void append_notes(JsonWriter& json, const Diagnostics& notes) {
  json.objects("notes", notes.items(), [&](const Diagnostic& diagnostic) {
    json.field("name", diagnostic.name)
        .field("severity", severity_name(diagnostic.severity))
        .field("count", diagnostic.count);
    json.field("message", diagnostic.message.en);
  });
}

}  // namespace stageline
