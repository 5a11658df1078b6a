#include "readers/op_table/columns.h"

#include "base/csv.h"

namespace stageline::op_table {
namespace {

constexpr int kSeconds = 9;

constexpr WordRow<Column> kWords[] = {
#define COLUMN(column, words) {Column::column, words},
#include "readers/op_table/columns.def"
};

// Names of times, which are followed by their unit: start_us, dur_ms, end_s ….
constexpr WordRow<Column> kTimes[] = {
    {Column::kStart, "start begin"}, {Column::kEnd, "end stop"}, {Column::kDuration, "duration dur"}};
constexpr std::array<std::pair<std::string_view, int>, 4> kUnits = {{{"-s", 9}, {"-ms", 6}, {"-us", 3}, {"-ns", 0}}};

bool is_time(Column column) {
  return column == Column::kStart || column == Column::kEnd || column == Column::kDuration;
}

std::optional<std::pair<Column, int>> meaning(std::string_view name) {
  const std::string word = to_lower(dashed(trim(name)));
  if (const auto known = key_of_word(kWords, word)) return std::pair(*known, is_time(*known) ? kSeconds : 0);
  for (const auto& [suffix, unit] : kUnits)
    if (word.ends_with(suffix))
      if (const auto time = key_of_word(kTimes, word.substr(0, word.size() - suffix.size())))
        return std::pair(*time, unit);
  return std::nullopt;
}

Columns separated_by(char separator, std::string_view line) {
  Columns columns;
  columns.separator = separator;
  columns.at.fill(Columns::kAbsent);
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  next_csv_record(line, fields, storage, &lines, separator);
  for (uint32_t i = 0; i < fields.size(); ++i) {
    columns.seen.emplace_back(trim(fields[i]));
    const auto known = meaning(fields[i]);
    if (!known) {
      columns.unknown.push_back(columns.seen.back());
      continue;
    }
    const auto slot = static_cast<size_t>(known->first);
    if (columns.at[slot] != Columns::kAbsent) {
      columns.repeated.push_back(columns.seen.back());
      continue;
    }
    columns.at[slot] = i;
    columns.unit_ns_log10[slot] = known->second;
  }
  return columns;
}

}  // namespace

Columns parse_header(std::string_view line) {
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  Columns best = separated_by(',', line);
  for (const char separator : {';', '\t'})
    if (line.find(separator) != std::string_view::npos)
      if (Columns columns = separated_by(separator, line); recognised(columns) > recognised(best))
        best = std::move(columns);
  return best;
}

std::string missing_columns(const Columns& columns) {
  std::string missing;
  const auto need = [&](bool there, const char* words) {
    if (!there) append_item(missing, words);
  };
  need(columns.has(Column::kRank) || columns.has(Column::kStage), "rank (or stage, with dp)");
  need(columns.has(Column::kKind), "kind (or optype)");
  need(columns.has(Column::kStart), "start_ts (seconds) or start_s, start_ms, start_us, start_ns");
  need(columns.has(Column::kDuration) || columns.has(Column::kEnd),
       "duration (seconds) or dur_s, dur_ms, dur_us, dur_ns, or end_*");
  return missing;
}

int recognised(const Columns& columns) {
  return static_cast<int>(std::ranges::count_if(columns.at, [](int at) { return at >= 0; }));
}

}  // namespace stageline::op_table
