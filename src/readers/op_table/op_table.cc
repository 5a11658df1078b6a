// Reads a table of operations as CSV, "bring your own timings": see docs/formats/op-table.md.
#include <filesystem>

#include "base/csv.h"
#include "base/input.h"
#include "readers/common/op_names.h"
#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/op_table/columns.h"
#include "readers/op_table/problems.h"

namespace stageline::op_table {
namespace {

// Reads one CSV file into rows.
struct TableRows {
  std::vector<Op> ops;  // Op::lane is kind_lane()
  StringPool names;
  StringPool clocks;  // Op::clock is 1 + the id here: the column `clock`, or `machine` where there is none
  Diagnostics diagnostics;
  std::vector<int32_t> lossy_steps;  // of rows that were left out, in any order
  bool global_chunks = false;        // Op::chunk holds gmc, that is chunk · stages + stage
};

std::string list(const std::vector<std::string>& words) {
  constexpr size_t kShown = 40;
  std::string out;
  for (size_t i = 0; i < words.size() && i < kShown; ++i)
    out += (i == 0 ? "" : ", ") + valid_utf8(words[i]).substr(0, 64);
  return words.size() > kShown ? out + ", …" : out;
}

// Returns the next line of `rest` without its end, which is LF, CR LF or CR.
std::string_view next_line(std::string_view& rest) {
  constexpr size_t kPiece = 256;  // so that lines that end with CR are not searched for LF to the end of the window
  size_t end = std::string_view::npos;
  for (size_t at = 0; at < rest.size() && end == std::string_view::npos; at += kPiece) {
    const std::string_view piece = rest.substr(at, kPiece);
    const size_t feed = piece.find('\n'), own = std::min(feed, piece.substr(0, feed).find('\r'));
    if (own != std::string_view::npos) end = at + own;
  }
  const std::string_view line = rest.substr(0, end);
  if (end == std::string_view::npos) rest = {};
  else rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  return line;
}

class TableReader {
 public:
  TableReader(const std::string& path, uint32_t file) : path_(path), file_(file) {}

  Result<TableRows> read(Progress* progress) {
    TRY(input, Input::open(path_, progress));
    int64_t overlong = 0;
    const Result<int64_t> end = for_each_window(
        *input,
        [&](std::string_view window, int64_t offset) {
          take_window(window);
          if (offset == 0 && !input->compressed()) make_room(window.size());
        },
        kDefaultWindowBytes, &overlong);
    if (!have_header_)
      return end ? make_error(ErrorCode::kBadInput, "an empty file; a header line was expected", "", {path_, 1})
                 : end.error();
    if (!missing_.empty())
      return input_error("op_table.missing_columns", {path_, 1},
                         Args().set("missing", missing_).set("seen", list(columns_.seen)));
    if (!end)
      out_.diagnostics.add(problem::op_table_read_stopped, Args().set("why", error_text(end.error())),
                           {path_, line_, end.error().where.byte});
    const auto note = [&](const Problem& problem, const std::vector<std::string>& columns) {
      out_.diagnostics.add(problem, Args().set("columns", list(columns)), {path_, 1}, std::ssize(columns));
    };
    note(problem::op_table_unknown_columns, columns_.unknown);
    note(problem::op_table_repeated_columns, columns_.repeated);
    return std::move(out_);
  }

 private:
  // Reserves room for the rows of the whole file, assuming that the others are as long as those of the first window. A
  // column of ten million that doubles again and again exists three times over for a while.
  void make_room(size_t window_bytes) {
    constexpr double kMaxRows = 1 << 25;
    std::error_code unknown;
    const double bytes = std::filesystem::file_size(path_, unknown);
    if (unknown || window_bytes == 0) return;
    const double rows = 1.02 * out_.ops.size() * bytes / window_bytes;
    out_.ops.reserve(static_cast<size_t>(std::min(rows, kMaxRows)));
  }
  void take_window(std::string_view window) {
    if (have_header_ && !missing_.empty()) return;
    while (!window.empty()) {
      const std::string_view line = next_line(window);
      ++line_;
      if (trim(line).empty()) continue;
      if (have_header_) {
        take_row(line);
        continue;
      }
      have_header_ = true;
      columns_ = parse_header(line);
      missing_ = missing_columns(columns_);
      out_.global_chunks = !columns_.has(Column::kChunk) && columns_.has(Column::kGlobalChunk);
      if (!missing_.empty()) return;
    }
  }

  void refuse(const Problem& problem) { out_.diagnostics.add(problem, {path_, line_}); }
  std::string_view text(Column column) const {
    const int at = columns_.of(column);
    return at < 0 || static_cast<size_t>(at) >= fields_.size() ? std::string_view() : trim(fields_[at]);
  }
  bool index(Column column, int64_t max, int32_t& out) const {
    const auto value = parse_index(text(column), max);
    if (value) out = *value;
    return value.has_value();
  }
  std::optional<int64_t> time(Column column) const { return parse_decimal_ns(text(column), columns_.unit(column)); }

  void take_row(std::string_view line) {
    int64_t ignored = 0;
    std::string_view rest = line;
    next_csv_record(rest, fields_, storage_, &ignored, columns_.separator);
    if (fields_.size() != columns_.seen.size()) return refuse(problem::op_table_bad_row);
    Op op;
    const std::string_view type = text(Column::kKind);
    if (!index(Column::kRank, kMaxRankNumber, op.rank) || !index(Column::kStage, kMaxStageNumber, op.stage) ||
        !index(Column::kDp, kMaxRankNumber, op.dp) || !index(Column::kStep, kMaxStepNumber, op.step) ||
        !index(Column::kSequence, INT32_MAX - 1, op.sequence) || !index(Column::kChunk, kMaxChunkNumber, op.chunk) ||
        !index(Column::kMicroBatch, kMaxMicroBatchNumber, op.micro_batch) || type.empty())
      return refuse(problem::op_table_bad_field);
    if (out_.global_chunks && !index(Column::kGlobalChunk, kMaxStageNumber, op.chunk))
      return refuse(problem::op_table_bad_field);
    const auto start = time(Column::kStart);
    std::optional<int64_t> end;
    bool shrunk = false;
    if (start && columns_.has(Column::kDuration)) {
      if (const auto dur = time(Column::kDuration)) end = end_of(*start, *dur, &shrunk);
    } else if (start) {
      end = time(Column::kEnd);
      if (end && !sane_interval(*start, *end)) end.reset();
    }
    if (!end && op.step != kUnknown && (out_.lossy_steps.empty() || out_.lossy_steps.back() != op.step))
      out_.lossy_steps.push_back(op.step);
    if (!end) return refuse(problem::op_table_bad_time);
    if (shrunk) out_.diagnostics.add(problem::op_table_negative_duration, {path_, line_});
    if (out_.ops.size() >= kMaxOps) return refuse(problem::op_table_too_many_rows);
    op.start_ns = *start;
    op.end_ns = *end;
    if (const auto label = parse_cell_label(type)) {  // "F3" is kind and micro-batch in one
      op.kind = label->kind;
      if (op.micro_batch == kUnknown) op.micro_batch = label->micro_batch;
      if (op.chunk == kUnknown) op.chunk = label->chunk;
    } else {
      if (type != last_type_) last_type_ = type, last_kind_ = kind_of_op(type);
      op.kind = last_kind_.value_or(CellKind::kOther);
      if (!last_kind_) out_.diagnostics.add(problem::op_table_unknown_kinds, {path_, line_});
    }
    const std::string_view name = text(Column::kName);
    op.name_id = out_.names.intern(name.empty() ? type : name);
    op.lane = kind_lane(op.kind);
    const std::string_view clock = text(columns_.has(Column::kClock) ? Column::kClock : Column::kMachine);
    if (clock != last_clock_) {
      last_clock_ = clock;
      const StringId id = clock.empty() ? UINT16_MAX : out_.clocks.intern(clock);
      clock_ = id < UINT16_MAX ? static_cast<uint16_t>(id + 1) : 0;  // values that are not counted are unknown
    }
    op.clock = clock_;
    op.file = file_;
    op.file_index = static_cast<uint32_t>(out_.ops.size());
    out_.ops.push_back(op);
  }

  const std::string& path_;
  uint32_t file_;
  TableRows out_;
  Columns columns_;
  std::string missing_;
  bool have_header_ = false;
  int64_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::vector<std::string> storage_;
  std::string last_type_;
  std::optional<CellKind> last_kind_;
  std::string last_clock_;
  uint16_t clock_ = 0;  // the number of last_clock_
};

// Errors: as Input::open, and kBadInput when a required column is missing from the header.
Result<TableRows> read_table(const std::string& path, uint32_t file, Progress* progress) {
  return TableReader(path, file).read(progress);
}

constexpr size_t kSniffedFiles = 64;
constexpr std::string_view kFormat = "op_table";

Match sniff_head(const SourceFile& file, std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  line = trim(line.substr(0, line.find('\r')));
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

// Turns gmc, which counts the chunks of the whole model (chunk · stages + stage), into chunks of a rank.
void localise_chunks(std::vector<Op>& ops, const std::set<uint32_t>& files, Diagnostics& diagnostics) {
  int32_t stages = max_over<int32_t>(ops, [&](const Op& op) { return op.stage + 1; });
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

}  // namespace

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < std::min(source.files.size(), kSniffedFiles) && best != Match::kCertain; ++i)
    best = std::max(best, sniff_head(source.files[i], source.head(i)));
  return best;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const std::vector<size_t> chosen = files_to_read(source);
  expect_bytes(source, chosen, options.progress);
  auto paths = mapped<std::string>(chosen, [&](const size_t i) { return source.files[i].path; });
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

}  // namespace stageline::op_table
