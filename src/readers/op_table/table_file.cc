#include "readers/op_table/table_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/csv.h"
#include "base/error_words.h"
#include "base/input.h"
#include "base/number.h"
#include "base/text.h"
#include "readers/common/op_names.h"
#include "readers/input_error.h"
#include "readers/op_table/problems.h"

namespace stageline::op_table {
namespace {

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
  if (end == std::string_view::npos)
    rest = {};
  else
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
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
      if (type != last_type_) {
        last_type_ = type;
        last_kind_ = kind_of_op(type);
      }
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

}  // namespace

Result<TableRows> read_table(const std::string& path, uint32_t file, Progress* progress) {
  return TableReader(path, file).read(progress);
}

}  // namespace stageline::op_table
