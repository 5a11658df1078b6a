#include "readers/op_table/columns.h"

#include <algorithm>
#include <utility>

#include "base/csv.h"
#include "base/text.h"

namespace stageline::op_table {
namespace {

constexpr int kSeconds = 9;

struct Word {
  std::string_view name;
  Column column;
};
constexpr std::array<Word, 35> kWords = {{
    {"rank", Column::kRank},
    {"global-rank", Column::kRank},
    {"stage", Column::kStage},
    {"pp", Column::kStage},
    {"pp-rank", Column::kStage},
    {"dp", Column::kDp},
    {"dp-rank", Column::kDp},
    {"step", Column::kStep},
    {"iteration", Column::kStep},
    {"iter", Column::kStep},
    {"optype", Column::kKind},
    {"op-type", Column::kKind},
    {"kind", Column::kKind},
    {"type", Column::kKind},
    {"op", Column::kKind},
    {"seq-id", Column::kSequence},
    {"seq", Column::kSequence},
    {"mc", Column::kChunk},
    {"chunk", Column::kChunk},
    {"model-chunk", Column::kChunk},
    {"gmc", Column::kGlobalChunk},
    {"mb-id", Column::kMicroBatch},
    {"mb", Column::kMicroBatch},
    {"micro-batch", Column::kMicroBatch},
    {"microbatch", Column::kMicroBatch},
    {"micro-batch-id", Column::kMicroBatch},
    {"name", Column::kName},
    {"machine", Column::kMachine},
    {"host", Column::kMachine},
    {"hostname", Column::kMachine},
    {"node", Column::kMachine},
    {"clock", Column::kClock},
    {"start-ts", Column::kStart},
    {"end-ts", Column::kEnd},
    {"duration", Column::kDuration},
}};

// Names of times, which are followed by their unit: start_us, dur_ms, end_s ….
constexpr std::array<Word, 6> kTimes = {{{"start", Column::kStart},
                                         {"begin", Column::kStart},
                                         {"end", Column::kEnd},
                                         {"stop", Column::kEnd},
                                         {"duration", Column::kDuration},
                                         {"dur", Column::kDuration}}};
constexpr std::array<std::pair<std::string_view, int>, 4> kUnits = {{{"-s", 9}, {"-ms", 6}, {"-us", 3}, {"-ns", 0}}};

bool is_time(Column column) {
  return column == Column::kStart || column == Column::kEnd || column == Column::kDuration;
}

std::optional<std::pair<Column, int>> meaning(std::string_view name) {
  const std::string word = to_lower(dashed(trim(name)));
  for (const Word& known : kWords)
    if (known.name == word) return std::pair(known.column, is_time(known.column) ? kSeconds : 0);
  for (const Word& time : kTimes)
    for (const auto& [suffix, unit] : kUnits)
      if (word == std::string(time.name) + std::string(suffix)) return std::pair(time.column, unit);
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
