#include "exporters/worker_logs.h"

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/output_file.h"

namespace stageline {
namespace {

// Paddle itself does not log messages for a model in chunks. Here messages have the chunk's digit too. Otherwise one
// type and micro-batch would occur several times in a step, and a repetition marks a new step of a log.
std::string job_type_text(CellKind kind, int32_t chunk, bool chunked) {
  static constexpr auto kTexts =
      texts_by<CellKind::kOther>({"forward", "backward", "backward_b", "backward_w", "default", "send_forward",
                                  "recv_forward", "send_backward", "recv_backward", "default", "optimizer", "default"});
  const bool has_chunk = chunked && (is_compute(kind) || is_message(kind)) && kind != CellKind::kForwardBackward;
  return std::string(kTexts[kind]) + (has_chunk ? std::to_string(chunk) : "");
}

// Returns milliseconds with six decimals, as to_string(double) prints them.
std::string six_decimals(int64_t ns) {
  char buffer[40];
  snprintf(buffer, sizeof buffer, "%lld.%06lld", static_cast<long long>(ns / 1'000'000),
           static_cast<long long>(ns % 1'000'000));
  return buffer;
}

// A time as glog's "MMDD HH:MM:SS.uuuuuu" in UTC, and with the year for Python's logger.
struct WallTime {
  std::string glog, python;
};
WallTime wall_time(int64_t ns) {
  int64_t us = ns / 1000;
  namespace chrono = std::chrono;
  int64_t rest = us % 86'400'000'000;
  const chrono::year_month_day date(chrono::sys_days(chrono::days(us / 86'400'000'000)));
  const auto month = static_cast<unsigned>(date.month()), day = static_cast<unsigned>(date.day());
  const int hour = static_cast<int>(rest / 3'600'000'000), minute = static_cast<int>(rest / 60'000'000 % 60);
  const int second = static_cast<int>(rest / 1'000'000 % 60), micro = static_cast<int>(rest % 1'000'000);
  char glog[64], python[64];
  snprintf(glog, sizeof glog, "%02u%02u %02d:%02d:%02d.%06d", month, day, hour, minute, second, micro);
  snprintf(python, sizeof python, "%04d-%02u-%02u %02d:%02d:%02d,%03d", static_cast<int>(date.year()), month, day, hour,
           minute, second, micro / 1000);
  return {glog, python};
}

// Simulations have one collective only, that of the gradients.
constexpr auto kOpTypes =
    texts_by<CellKind::kOther>({"forward-compute", "backward-compute", "backward-input-compute",
                                "backward-weight-compute", "forward-backward-compute", "forward-send", "forward-recv",
                                "backward-send", "backward-recv", "grads-reduce-scatter", "optimizer", "other"});

}  // namespace

Status write_worker_logs(const Trace& trace, const std::string& folder) {
  namespace fs = std::filesystem;
  const Cells& cells = trace.cells;
  const bool chunked = extent_of(trace).chunk_count > 1;
  std::vector<std::vector<size_t>> of_part(trace.parts.size());
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.kind[i] != CellKind::kCollective)  // Paddle logs no collectives
      of_part[cells.part[i]].push_back(i);
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    const fs::path place = part.machine_name.empty() ? fs::path(folder) : fs::path(folder) / part.machine_name;
    std::error_code ec;
    fs::create_directories(place, ec);
    if (ec) return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {place.string()});
    TRY(out, OutputFile::create((place / ("workerlog." + std::to_string(part.device))).string()));
    const std::string thread = std::to_string(22000 + part.rank);
    const std::vector<size_t>& own = of_part[p];
    for (size_t i = 0; i < own.size();) {
      const int32_t step = cells.step[own[i]];
      size_t end = i;
      int64_t last_ns = 0;
      for (; end < own.size() && cells.step[own[end]] == step; ++end)
        last_ns = std::max(last_ns, cells.end_ns[own[end]]);
      // The burst is printed after the step has run.
      const WallTime now = wall_time(last_ns + 1'000'000);
      if (i == 0) out->write("LAUNCH INFO " + now.python + " -----------  Configuration  ----------------------\n");
      for (; i < end; ++i) {
        const Cell cell = cells.at(own[i]);
        const std::string micro_batch = std::to_string(std::max(0, cell.micro_batch));
        out->write("I" + now.glog + " " + thread + " standalone_executor.cc:217] Profiler Info: Job (" + micro_batch +
                   "), type = " + job_type_text(cell.kind, cell.chunk, chunked) + ", micro_batch_id = " + micro_batch +
                   ", job_start_time = " + six_decimals(cell.start_ns) +
                   ", job_end_time = " + six_decimals(cell.end_ns) + "\n");
      }
      out->write("[" + now.python + "] [    INFO] - global_step: " + std::to_string(step + 1) + ", interval_runtime: " +
                 ns_as_decimal((last_ns - cells.start_ns[own[end - 1]]) / 1'000'000 * 1'000'000, 9) + "\n");
    }
    TRY_OK(out->commit());
  }
  return {};
}

Status write_timings_csv(const Trace& trace, const std::vector<int64_t>& clock_offset_ns, const std::string& path) {
  TRY(out, OutputFile::create(path));
  out->write("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n");
  const Cells& cells = trace.cells;
  const int32_t stages = extent_of(trace).stage_count;
  // seq_id is the position among the operations of the same kind within one rank and step.
  std::map<std::pair<int32_t, int32_t>, std::map<CellKind, int32_t>> sequence;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell cell = cells.at(i);
    const Part& part = trace.parts[cell.part];
    const size_t machine = part.machine;
    const int64_t offset = machine < clock_offset_ns.size() ? clock_offset_ns[machine] : 0;
    const int32_t seq = sequence[{cell.part, cell.step}][cell.kind]++;
    const int32_t global_chunk = is_compute(cell.kind) ? cell.chunk * stages + part.stage : -1;
    out->write(std::to_string(part.dp) + "," + std::to_string(part.stage) + "," + std::to_string(part.rank) + "," +
               std::to_string(cell.step) + "," + std::string(kOpTypes[cell.kind]) + "," +
               ns_as_decimal(cell.start_ns - offset, 9) + "," + ns_as_decimal(cell.end_ns - cell.start_ns, 9) + "," +
               std::to_string(seq) + "," +
               std::to_string(is_compute(cell.kind) || is_message(cell.kind) ? cell.chunk : -1) + "," +
               std::to_string(cell.micro_batch) + "," + std::to_string(global_chunk) + "\n");
  }
  return out->commit();
}

}  // namespace stageline
