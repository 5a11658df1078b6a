#include "base/csv.h"
#include "base/input.h"
#include "base/sqlite_db.h"
#include "readers/ascend/problems.h"
#include "readers/ascend/text_communication.h"
#include "readers/common/cut_table.h"

namespace stageline::ascend {
namespace {

constexpr int kMicroseconds = 3, kMilliseconds = 6;
constexpr double kMegabyte = 1e6;
constexpr size_t kMaxStepBytes = size_t{1} << 28;

using Field = int64_t StepSummary::*;
struct StepColumn {
  std::string_view sql, csv;
  Field field;
};
constexpr StepColumn kStepColumns[] = {
#include "readers/ascend/step_columns.def"
};

// Parses the exact decimal that was written, as far as the double still shows it.
int64_t time_at(const SqliteRows& rows, int column, int unit) {
  if (rows.is_null(column)) return -1;
  return decimal_time(repr_double(rows.real(column)), unit);
}

double bytes_at(const SqliteRows& rows, int column) {
  return rows.is_null(column) ? -1 : usable_bytes(rows.real(column) * kMegabyte);
}

int32_t rank_at(const SqliteRows& rows, int column) {
  const std::optional<int64_t> rank = parse_int(trim(rows.text(column)));
  return rank && *rank >= 0 && *rank <= INT32_MAX ? static_cast<int32_t>(*rank) : -1;
}

class Analysis {
 public:
  Analysis(const SqliteDb& db, int32_t device, Diagnostics& diagnostics)
      : db_(db), device_(device), diagnostics_(diagnostics) {}

  AnalysisSums read() {
    steps();
    times();
    bandwidths();
    links();
    return std::move(out_);
  }

 private:
  void ended(const SqliteRows& rows, std::string_view table, const std::string& missing) {
    out_.rows += rows.count();
    if (missing.find('.') != std::string::npos)
      diagnostics_.add(problem::ascend_analysis_db_column, Args().set("missing", missing), {db_.path()});
    if (!rows.ok())
      diagnostics_.add(problem::ascend_analysis_db, Args().set("table", std::string(table)), {db_.path()});
  }

  void steps() {
    std::string missing;
    SqliteRows rows =
        rows_of(db_, "StepTraceTime",
                {"step?", "computing?", "communication_not_overlapped?", "overlapped?", "communication?", "free?",
                 "stage?", "bubble?", "communication_not_overlapped_and_exclude_receive?", "preparing?", "deviceId?"},
                &missing);
    while (rows.next()) {
      if (device_ >= 0 && !rows.is_null(10) && rows.integer(10) != device_) continue;
      StepSummary step{.step = step_number(rows.text(0))};
      for (size_t c = 0; c < std::size(kStepColumns); ++c)
        step.*kStepColumns[c].field = time_at(rows, static_cast<int>(c) + 1, kMicroseconds);
      out_.steps.push_back(step);
    }
    ended(rows, "StepTraceTime", missing);
  }

  using Key = std::tuple<std::string, std::string, std::string>;  // (op, group, step)

  void times() {
    std::string missing;
    SqliteRows rows = rows_of(db_, "CommAnalyzerTime",
                              {"hccl_op_name", "group_name?", "start_timestamp?", "elapse_time?", "transit_time?",
                               "wait_time?", "synchronization_time?", "idle_time?", "step?", "type?"},
                              &missing);
    while (rows.next()) {
      CommunicationRow row;
      row.op = std::string(rows.text(0));
      if (row.op == "Total Op Info") continue;
      row.group = std::string(rows.text(1));
      row.start_ns = time_at(rows, 2, kMicroseconds);
      row.dur_ns = time_at(rows, 3, kMilliseconds);
      row.transit_ns = time_at(rows, 4, kMilliseconds);
      row.wait_ns = time_at(rows, 5, kMilliseconds);
      row.synchronization_ns = time_at(rows, 6, kMilliseconds);
      row.idle_ns = time_at(rows, 7, kMilliseconds);
      row.type = std::string(rows.text(9));
      const std::string step(rows.text(8));
      row.step = step_number(step);
      if (row.dur_ns < 0) {
        diagnostics_.add(problem::ascend_communication_time, {db_.path()});
        continue;
      }
      op_of_[{row.op, row.group, step}] = out_.communication.ops.size();
      out_.communication.ops.push_back(std::move(row));
    }
    ended(rows, "CommAnalyzerTime", missing);
  }

  // Every size of message has its own row, each of which repeats the whole size of the transport.
  void bandwidths() {
    std::string missing;
    SqliteRows rows = rows_of(db_, "CommAnalyzerBandwidth",
                              {"hccl_op_name", "group_name?", "transport_type", "transit_size", "step?"}, &missing);
    std::map<size_t, std::map<std::string, double>> sizes;
    while (rows.next()) {
      const auto op = op_of_.find({std::string(rows.text(0)), std::string(rows.text(1)), std::string(rows.text(4))});
      const double bytes = bytes_at(rows, 3);
      if (op != op_of_.end() && bytes >= 0) sizes[op->second][std::string(rows.text(2))] = bytes;
    }
    for (const auto& [op, by_transport] : sizes) {
      std::array<double, 2> sum = {-1, -1};  // SDMA and RDMA; and their parts
      std::array<std::string, 2> of;
      for (const auto& [transport, bytes] : by_transport) {
        const size_t which = transport == "SDMA" || transport == "RDMA" ? 0 : 1;
        sum[which] = std::min(std::max(sum[which], 0.0) + bytes, kMaxBytes);
        if (bytes > 0) append_item(of[which], transport, " ");
      }
      const size_t which = sum[0] > 0 || sum[1] < 0 ? 0 : 1;
      out_.communication.ops[op].bytes = sum[which];
      out_.communication.ops[op].transport = of[which];
    }
    ended(rows, "CommAnalyzerBandwidth", missing);
  }

  void links() {
    std::string missing;
    SqliteRows rows = rows_of(db_, "CommAnalyzerMatrix",
                              {"hccl_op_name", "group_name?", "src_rank", "dst_rank", "transport_type?", "transit_size",
                               "transit_time", "step?", "type?", "op_name?"},
                              &missing);
    while (rows.next()) {
      LinkSummary link;
      const std::string_view op = rows.text(9);
      link.op = std::string(op.empty() ? rows.text(0) : op);
      link.group = std::string(rows.text(1));
      link.src_rank = rank_at(rows, 2);
      link.dst_rank = rank_at(rows, 3);
      link.transport = std::string(rows.text(4));
      link.bytes = bytes_at(rows, 5);
      link.transit_ns = time_at(rows, 6, kMilliseconds);
      link.step = step_number(rows.text(7));
      link.type = std::string(rows.text(8));
      if (link.src_rank < 0 || link.dst_rank < 0 || link.bytes < 0 || link.transit_ns < 0) {
        diagnostics_.add(problem::ascend_link, {db_.path()});
        continue;
      }
      out_.communication.links.push_back(std::move(link));
    }
    ended(rows, "CommAnalyzerMatrix", missing);
    drop_repeated_links(out_.communication.links);
  }

  const SqliteDb& db_;
  int32_t device_;
  Diagnostics& diagnostics_;
  std::map<Key, size_t> op_of_;
  AnalysisSums out_;
};

}  // namespace

Result<AnalysisSums> read_analysis_db(const std::string& path, int32_t device, Diagnostics& diagnostics) {
  TRY(db, SqliteDb::open_read(path, diagnostics));
  return Analysis(*db, device, diagnostics).read();
}

Result<std::vector<StepSummary>> read_step_trace_time(const std::string& path, Diagnostics& diagnostics) {
  TRY(text, read_all(path, kMaxStepBytes));
  std::string_view rest = *text;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t line = 0;
  size_t width = 0, step_at = SIZE_MAX;
  std::array<size_t, std::size(kStepColumns)> at{};
  at.fill(SIZE_MAX);
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  if (!rest.empty() && !rest.ends_with('\n')) note_cut_table(path, diagnostics);
  if (next_csv_record(rest, fields, storage, &line)) {
    width = fields.size();
    for (size_t f = 0; f < width; ++f) {
      if (trim(fields[f]) == "Step") step_at = f;
      for (size_t c = 0; c < at.size(); ++c)
        if (trim(fields[f]) == kStepColumns[c].csv) at[c] = f;
    }
  }
  if (at[0] == SIZE_MAX)
    return make_error(ErrorCode::kBadInput, "no column \"Computing\"", "step_trace_time.csv has one", {path, 1});
  std::vector<StepSummary> out;
  while (next_csv_record(rest, fields, storage, &line)) {
    if (fields.size() == 1 && trim(fields[0]).empty()) continue;
    StepSummary step;
    bool good = fields.size() == width;
    if (good && step_at != SIZE_MAX) {
      // "13", or "13.0" if the writer's table had gaps among its numbers.
      const std::string_view number = trim(fields[step_at]);
      step.step = step_number(number.ends_with(".0") ? number.substr(0, number.size() - 2) : number);
    }
    for (size_t c = 0; good && c < at.size(); ++c)
      if (at[c] != SIZE_MAX) step.*kStepColumns[c].field = decimal_time(fields[at[c]], kMicroseconds);
    if (good) good = step.computing_ns >= 0;
    if (good) out.push_back(step);
    else diagnostics.add(problem::ascend_step_line, {path, line});
  }
  return out;
}

}  // namespace stageline::ascend
