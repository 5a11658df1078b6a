// Reads a table of operations as CSV, "bring your own timings": see docs/formats/op-table.md.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "readers/common/machines.h"
#include "readers/common/read_files.h"
#include "readers/common/settle_steps.h"
#include "readers/op_table/columns.h"
#include "readers/op_table/problems.h"
#include "readers/op_table/table_file.h"
#include "readers/reader.h"

namespace stageline {
namespace op_table {
namespace {

constexpr size_t kSniffedFiles = 64;
constexpr std::string_view kFormat = "op_table";

Match sniff_head(const SourceFile& file, std::string_view head) {
  const std::string_view line = trim(head.substr(0, head.find_first_of("\r\n")));
  // Refuses what is plainly something else: JSON, binary data, a line of one field.
  if (line.empty() || line.size() > 4096 || line.find_first_of(",;\t") == std::string_view::npos || line[0] == '{' ||
      line[0] == '[' || line.find('\0') != std::string_view::npos)
    return Match::kNo;
  const Columns columns = parse_header(line);
  if (missing_columns(columns).empty()) return Match::kCertain;
  // A table that lacks something is still taken, so that the user learns which part is missing.
  const bool timed = columns.has(Column::kStart) || columns.has(Column::kDuration);
  const std::string extension = file_extension(file.path);
  const bool csv = extension == "csv" || extension == "tsv";
  return csv && timed && recognised(columns) >= 3 ? Match::kMaybe : Match::kNo;
}

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < std::min(source.files.size(), kSniffedFiles) && best != Match::kCertain; ++i)
    best = std::max(best, sniff_head(source.files[i], source.head(i)));
  return best;
}

// Turns gmc, which counts the chunks of the whole model (chunk · stages + stage), into chunks of a rank.
void localise_chunks(std::vector<Op>& ops, const std::set<uint32_t>& files, Diagnostics& diagnostics) {
  int32_t stages = 0;
  for (const Op& op : ops) stages = std::max(stages, op.stage + 1);
  if (stages == 0) return;
  int64_t count = 0;
  for (Op& op : ops) {
    if (op.chunk == kUnknown || !files.contains(op.file)) continue;
    op.chunk = std::min<int32_t>(op.chunk / stages, kMaxChunkNumber);
    ++count;
  }
  diagnostics.add(problem::op_table_chunks_inferred, {}, count);
}

std::string describe(const Trace& trace, size_t rows) {
  return "table of " + std::to_string(rows) + " operations, " + std::to_string(trace.parts.size()) +
         (trace.parts.size() == 1 ? " rank" : " ranks");
}

// Returns the error for a table without any usable row: why the first row was left out, and where it is.
Error nothing_usable(const std::vector<std::string>& paths, const Diagnostics& diagnostics) {
  const std::string path = paths.empty() ? "" : paths.front();
  const Diagnostic* first = nullptr;
  for (const Diagnostic& d : diagnostics.items())
    if (d.name.starts_with("op_table.bad_") && d.first.file == path && (!first || d.first.line < first->first.line))
      first = &d;
  if (!first)
    return make_error(ErrorCode::kBadInput, "the table holds no row that could be used",
                      "each row needs a rank, a kind, a start and a duration; see docs/formats/op-table.md", {path, 1});
  const std::string why = first->name == "op_table.bad_field" ? "a field is no number, or out of range"
                          : first->name == "op_table.bad_time"
                              ? "its time or duration is missing, negative or out of range"
                              : "it has another number of fields than the header";
  return make_error(
      ErrorCode::kBadInput, "no row of the table could be used; of the first " + why,
      "numbers have a point and no groups (12.5, not 12,5); docs/formats/op-table.md has the columns and their ranges",
      first->first);
}

// Returns the clock that the rows of each rank name. Rows of one rank mostly stand together.
std::map<int32_t, uint16_t> clocks_of(const std::vector<Op>& ops, const std::vector<std::string>& paths,
                                      Diagnostics& diagnostics) {
  std::map<int32_t, uint16_t> clock_of_rank;
  const Op* before = nullptr;
  for (const Op& op : ops) {
    if (op.clock == 0 || (before && before->rank == op.rank && before->clock == op.clock)) continue;
    before = &op;
    const auto [known, fresh] = clock_of_rank.try_emplace(op.rank, op.clock);
    if (!fresh && known->second != op.clock) diagnostics.add(problem::op_table_two_clocks, {paths[op.file]});
  }
  return clock_of_rank;
}

// A table can name the clocks of ranks. If all name one, their timestamps are compared as they are. If they name
// several, each is a machine's, and only machines are aligned by their messages.
void declare_clocks(const StringPool& clocks, const std::map<int32_t, uint16_t>& clock_of_rank,
                    const std::vector<std::string>& paths, Trace& trace) {
  if (clock_of_rank.empty()) return;
  std::set<uint16_t> used;
  for (const Part& part : trace.parts) {
    const auto clock = clock_of_rank.find(part.rank);
    if (clock == clock_of_rank.end()) {
      trace.diagnostics.add(problem::op_table_unknown_clock, {paths[0]});
      return;
    }
    used.insert(clock->second);
  }
  if (used.size() == 1) {
    trace.clock = ClockState::kShared;
    return;
  }
  for (Part& part : trace.parts) part.machine_name = std::string(clocks.text(clock_of_rank.at(part.rank) - 1u));
  number_machines(trace);
}

// Returns the files that look like tables; with --reader, where none does, whatever was named.
std::vector<size_t> files_to_read(const Source& source) {
  std::vector<size_t> chosen, all;
  for (size_t i = 0; i < source.files.size(); ++i) {
    all.push_back(i);
    if (sniff_head(source.files[i], source.head(i)) != Match::kNo) chosen.push_back(i);
  }
  return chosen.empty() ? all : chosen;
}

// Rows that were read from all files.
struct AllRows {
  std::vector<Op> ops;
  StringPool clocks;
  std::set<uint32_t> global_chunks;  // files whose Op::chunk holds gmc
};

void append_rows(TableRows rows, uint32_t file, AllRows& all, Trace& trace) {
  std::vector<uint16_t> clock_of = {0};
  for (StringId id = 0; id < rows.clocks.size(); ++id) {
    const StringId known = all.clocks.intern(rows.clocks.text(id));
    clock_of.push_back(known < UINT16_MAX ? static_cast<uint16_t>(known + 1) : 0);
  }
  for (Op& op : rows.ops) op.clock = clock_of[op.clock];
  append_ops(std::move(rows.ops), rows.names, trace, all.ops);
  trace.diagnostics.merge(rows.diagnostics);
  trace.lossy_steps.insert(trace.lossy_steps.end(), rows.lossy_steps.begin(), rows.lossy_steps.end());
  if (rows.global_chunks) all.global_chunks.insert(file);
}

// Reads one file after another, since the rows of all of them at once may not fit into memory twice.
Result<AllRows> read_all_rows(const std::vector<std::string>& paths, Progress* progress, Trace& trace) {
  AllRows all;
  std::optional<Error> first_error;
  for (uint32_t k = 0; k < paths.size(); ++k) {
    Result<TableRows> rows = read_table(paths[k], k, progress);
    if (rows) {
      append_rows(std::move(*rows), k, all, trace);
      continue;
    }
    if (!first_error) first_error = rows.error();
    trace.diagnostics.add(problem::op_table_unusable_file, {paths[k]});
  }
  if (all.ops.empty() && first_error) return std::move(*first_error);
  return all;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const std::vector<size_t> chosen = files_to_read(source);
  expect_bytes(source, chosen, options.progress);
  std::vector<std::string> paths;
  for (const size_t i : chosen) paths.push_back(source.files[i].path);
  Trace trace;
  trace.format = "op-table";
  trace.clock = ClockState::kUnaligned;
  TRY(all, read_all_rows(paths, options.progress, trace));
  std::vector<Op>& ops = all->ops;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && std::ranges::find(chosen, i) == chosen.end())
      trace.diagnostics.add(problem::op_table_unusable_file, {source.files[i].path});
  if (ops.empty()) return nothing_usable(paths, trace.diagnostics);
  if (ops.size() > kMaxOps)
    return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxOps) + " rows",
                      "read fewer ranks or steps at once", {paths.front()});

  resolve_ranks(ops, kFormat, trace.diagnostics);
  if (ops.empty())
    return make_error(ErrorCode::kBadInput, "no row of the table says which rank it belongs to",
                      "a row needs a rank, or a stage (and dp); see docs/formats/op-table.md", {paths.front(), 1});
  if (!all->global_chunks.empty()) localise_chunks(ops, all->global_chunks, trace.diagnostics);
  settle_steps(ops, kFormat, "row", trace);
  const size_t rows = ops.size();
  const std::map<int32_t, uint16_t> clock_of_rank = clocks_of(ops, paths, trace.diagnostics);
  build_parts(ops, kind_lane_names(), paths, trace);
  declare_clocks(all->clocks, clock_of_rank, paths, trace);
  count_duplicates(trace, kFormat, trace.diagnostics);
  trace.description = describe(trace, rows);
  return trace;
}

}  // namespace
}  // namespace op_table

extern const Reader op_table_reader = {"op-table", "CSV table of operations: rank or stage, kind, start, duration",
                                       op_table::sniff, op_table::read};

}  // namespace stageline
