#include "base/csv.h"
#include "base/input.h"
#include "readers/ascend/problems.h"
#include "readers/ascend/text_trace.h"
#include "readers/common/cut_table.h"

namespace stageline::ascend {
namespace {

constexpr size_t kNoColumn = SIZE_MAX;
constexpr int kMicroseconds = 3;  // as a power of ten of nanoseconds

enum Column : uint8_t { kName, kStart, kDur, kStep, kStream, kDevice, kTask, kBlocks, kType, kCore, kShapes, kDtypes };
constexpr size_t kColumns = 12;

struct Spelling {
  Column column;
  std::string_view text;
};
#define SPELLING(column, text) {column, text},
constexpr Spelling kSpellings[] = {
#include "readers/ascend/kernel_columns.def"
};

class KernelReader {
 public:
  KernelReader(const std::string& path, Diagnostics& diagnostics) : path_(path), diagnostics_(diagnostics) {
    at_.fill(kNoColumn);
  }

  // Takes one line with its end. The first line that is not empty is the header.
  void take(std::string_view line, int64_t offset) {
    ++line_;
    if (trim(line).empty() || failed_) return;
    // A quote too many would swallow the following lines; no field of this file contains a line end.
    const bool torn = std::ranges::count(line, '"') % 2 != 0 ||
                      line.find_first_of(std::string_view("\0\xff", 2)) != std::string_view::npos;
    std::string_view rest = line;
    int64_t lines = 0;
    if (torn || !next_csv_record(rest, fields_, storage_, &lines)) return lose(offset);
    if (width_ == 0) return header();
    if (fields_.size() != width_) return lose(offset);  // the line was cut, and its last number may be cut as well
    if (!line.ends_with('\n')) note_cut_table(path_, diagnostics_);
    row(offset);
  }

  Result<KernelTable> finish() {
    if (width_ == 0 || failed_)
      return make_error(ErrorCode::kBadInput, width_ == 0 ? "no line of column names" : "no column " + missing_,
                        "kernel_details.csv has columns Name, Start Time(us) and Duration(us)",
                        {path_, line_ > 0 ? 1 : 0});
    return std::move(table_);
  }

 private:
  void header() {
    width_ = fields_.size();
    for (size_t c = 0; c < width_; ++c) {
      std::string_view field = trim(fields_[c]);
      if (c == 0 && field.starts_with("\xef\xbb\xbf")) field.remove_prefix(3);
      for (const Spelling& spelling : kSpellings)
        if (field == spelling.text && at_[spelling.column] == kNoColumn) at_[spelling.column] = c;
    }
    for (const Column needed : {kName, kStart, kDur}) {
      if (at_[needed] != kNoColumn) continue;
      failed_ = true;
      for (const Spelling& spelling : kSpellings)
        if (missing_.empty() && spelling.column == needed) missing_ = "\"" + std::string(spelling.text) + "\"";
    }
  }

  std::string_view field(Column column) const {
    return at_[column] == kNoColumn ? std::string_view() : trim(fields_[at_[column]]);
  }
  // Texts such as "N/A" are not kept.
  uint32_t text(Column column) {
    const std::string_view value = field(column);
    return value == "N/A" ? 0 : table_.texts.intern(value);
  }
  int64_t number(Column column) const {
    const std::optional<int64_t> value = parse_int(field(column));
    return value && *value >= 0 ? *value : -1;
  }

  void row(int64_t offset) {
    const std::optional<int64_t> start = parse_decimal_ns(field(kStart), kMicroseconds);
    const std::optional<int64_t> dur = parse_decimal_ns(field(kDur), kMicroseconds);
    int64_t end = 0;
    if (!start || !dur || *start < 0 || *dur < 0 || __builtin_add_overflow(*start, *dur, &end)) return lose(offset);
    KernelRow row{.start_ns = *start,
                  .dur_ns = *dur,
                  .step = number(kStep),
                  .stream = number(kStream),
                  .device = number(kDevice),
                  .task = number(kTask),
                  .blocks = number(kBlocks),
                  .name = table_.texts.intern(field(kName)),
                  .type = text(kType),
                  .core = text(kCore),
                  .shapes = text(kShapes),
                  .dtypes = text(kDtypes),
                  .communication = is_communication_kernel(field(kName), field(kCore))};
    table_.rows.push_back(row);
  }

  void lose(int64_t offset) {
    ++table_.lost;
    diagnostics_.add(problem::ascend_kernel_line, {path_, line_, offset});
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  std::array<size_t, kColumns> at_{};
  size_t width_ = 0;
  int64_t line_ = 0;
  bool failed_ = false;
  std::string missing_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> storage_;
  KernelTable table_;
};

bool begins_with(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) { return a == to_lower(b); });
}

}  // namespace

bool is_communication_kernel(std::string_view name, std::string_view core) {
  return core == "HCCL" || core == "COMMUNICATION" || begins_with(name, "hcom_") || begins_with(name, "hccl");
}

Result<KernelTable> read_kernel_details(const std::string& path, Diagnostics& diagnostics, Progress* progress) {
  TRY(input, Input::open(path, progress));
  KernelReader reader(path, diagnostics);
  const Result<int64_t> read = for_each_window(*input, [&](std::string_view window, int64_t offset) {
    for (size_t at = 0; at < window.size();) {
      const size_t end = std::min(window.find('\n', at), window.size() - 1) + 1;
      reader.take(window.substr(at, end - at), offset + static_cast<int64_t>(at));
      at = end;
    }
  });
  Result<KernelTable> table = reader.finish();
  if (!read && table && !table->rows.empty()) diagnostics.add(problem::ascend_kernel_line_end, {path});
  else if (!read) return read.error();
  return table;
}

}  // namespace stageline::ascend
