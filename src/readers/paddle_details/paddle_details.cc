// Reads the pipeline of Paddle's dynamic graph from worker logs (FLAGS_profile_pipeline_details_steps):
// docs/formats/paddle-details.md.
//
//   [2026-09-14 10:00:00,045] [    INFO] pipeline_parallel.py:77 - [Pipeline details]
//   Before_forward_step_chunk_None_step_0: memory_allocated_size=1.25, memory_reserved_size=2.00     (all one line)
//
// A cell lasts from a Before_ to its After_ line. A Start_ line begins a step, which has no number.
#include <chrono>

#include "base/input.h"
#include "readers/common/ops.h"
#include "readers/common/read_files.h"
#include "readers/common/worker_logs.h"
#include "readers/paddle_details/problems.h"

namespace stageline::paddle_details {
namespace {

constexpr std::string_view kFormat = "paddle_details";
constexpr std::array<std::string_view, 2> kMemory = {"memory_allocated_size", "memory_reserved_size"};

struct LogFile {
  std::vector<Op> ops;
  StringPool names;
  std::array<CounterSeries, kMemory.size()> memory;
  bool chunks = false;
  Diagnostics diagnostics;
};

// Takes `text` from the front of a line.
bool take(std::string_view& line, std::string_view text) {
  if (!line.starts_with(text)) return false;
  line.remove_prefix(text.size());
  return true;
}

// Returns the number before `end`, and takes both from the front of the line.
std::optional<int64_t> take_number(std::string_view& line, char end) {
  const size_t at = line.find(end);
  const auto number = at == std::string_view::npos ? std::nullopt : parse_int(line.substr(0, at));
  if (number) line.remove_prefix(at + 1);
  return number;
}

// Returns the time of a logger's prefix, "[2026-09-14 10:00:00,045]". It is that of the machine's zone, read as UTC.
std::optional<int64_t> parse_time(std::string_view prefix) {
  const size_t open = prefix.find("[2");
  if (open == std::string_view::npos) return std::nullopt;
  std::string_view text = prefix.substr(open + 1);
  const auto year = take_number(text, '-'), month = take_number(text, '-'), day = take_number(text, ' ');
  const auto hour = take_number(text, ':'), minute = take_number(text, ':'), second = take_number(text, ',');
  const auto ms = take_number(text, ']');
  if (!year || !month || !day || !hour || !minute || !second || !ms) return std::nullopt;
  namespace ch = std::chrono;
  const auto in = [](int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; };
  if (!in(*year, 2000, 2095) || !in(*month, 1, 12) || !in(*day, 1, 31) || !in(*hour, 0, 23) || !in(*minute, 0, 59) ||
      !in(*second, 0, 60) || !in(*ms, 0, 999))
    return std::nullopt;
  const ch::sys_days date = ch::year(static_cast<int>(*year)) / static_cast<int>(*month) / static_cast<int>(*day);
  const auto at = date + ch::hours(*hour) + ch::minutes(*minute) + ch::seconds(*second) + ch::milliseconds(*ms);
  return ch::duration_cast<ch::nanoseconds>(at.time_since_epoch()).count();
}

class LogReader {
 public:
  LogReader(const WorkerLog& log, uint32_t file) : log_(log), file_(file) {}

  Result<LogFile> read(Progress* progress) {
    TRY(input, Input::open(log_.path, progress));
    const auto done = for_each_window(*input, [&](std::string_view window, int64_t offset) {
      for (size_t at = window.find(kPipelineDetails); at != std::string_view::npos;
           at = window.find(kPipelineDetails, at + 1)) {
        const size_t begin = window.find_last_of("\r\n", at) + 1;  // 0 in the first line
        const size_t end = std::min(window.find_first_of("\r\n", at), window.size());
        take_line(window.substr(begin, at - begin),
                  window.substr(at + kPipelineDetails.size(), end - at - kPipelineDetails.size()),
                  offset + static_cast<int64_t>(begin));
      }
    });
    if (!done)
      out_.diagnostics.add(problem::paddle_details_read_stopped, Args().set("why", error_text(done.error())),
                           {log_.path});
    if (open_) lose(problem::paddle_details_unmatched, open_offset_);
    for (size_t i = 0; i < kMemory.size(); ++i) out_.memory[i].name = std::string(kMemory[i]) + " (GB)";
    return std::move(out_);
  }

 private:
  void lose(const Problem& problem, int64_t offset) { out_.diagnostics.add(problem, {log_.path, 0, offset}); }

  void take_line(std::string_view prefix, std::string_view text, int64_t offset) {
    const auto time = parse_time(prefix);
    const size_t colon = text.find(':');
    const auto is_lost = [](std::string_view part) {  // bytes that no text has
      return part.find_first_of(std::string_view("\0\xff", 2)) != std::string_view::npos;
    };
    if (!time || colon == std::string_view::npos || is_lost(prefix) || is_lost(text))
      return lose(problem::paddle_details_bad_line, offset);
    std::string_view name = text.substr(0, colon);
    take_memory(text.substr(colon), *time);
    if (take(name, "Start_forward_backward_")) {
      ++step_;
    } else if (take(name, "Before_")) {
      if (open_) lose(problem::paddle_details_unmatched, open_offset_);
      open_.reset();
      if (step_ == kUnknown || step_ > kMaxStepNumber) return lose(problem::paddle_details_outside_steps, offset);
      open_ = parse_cell(name, *time);
      open_name_ = name;
      open_offset_ = offset;
      if (!open_) lose(problem::paddle_details_bad_line, offset);
    } else if (take(name, "After_") && !name.starts_with("forward_backward_")) {
      if (!open_ || name != open_name_ || *time < open_->start_ns)
        return step_ == kUnknown ? void() : lose(problem::paddle_details_unmatched, offset);
      open_->end_ns = *time;
      if (out_.ops.size() < kMaxOps) out_.ops.push_back(*open_);
      open_.reset();
    }
  }

  // Parses "forward_step_chunk_None_step_0". With chunks the number counts the rank's forwards over all of them.
  std::optional<Op> parse_cell(std::string_view name, int64_t time) {
    Op op;
    const bool forward = take(name, "forward_step_chunk_");
    if (!forward && !take(name, "backward_step_chunk_")) return std::nullopt;
    op.kind = forward ? CellKind::kForward : CellKind::kBackward;
    const size_t at = name.find("_step_");
    if (at == std::string_view::npos) return std::nullopt;
    const bool chunked = name.substr(0, at) != "None";
    const auto chunk = chunked ? parse_int(name.substr(0, at)) : 0, number = parse_int(name.substr(at + 6));
    if (!chunk || *chunk < 0 || *chunk > kMaxChunkNumber) return std::nullopt;
    if (!number || *number < 0 || *number > kMaxMicroBatchNumber) return std::nullopt;
    out_.chunks |= chunked;
    op.chunk = static_cast<int32_t>(*chunk);
    if (!chunked) op.micro_batch = static_cast<int32_t>(*number);
    op.rank = log_.rank;
    op.step = step_;
    op.start_ns = time;
    op.lane = kind_lane(op.kind);
    op.name_id = out_.names.intern(forward ? "forward_step" : "backward_step");
    op.file = file_;
    op.file_index = static_cast<uint32_t>(out_.ops.size());
    return op;
  }

  void take_memory(std::string_view text, int64_t time) {
    for (size_t i = 0; i < kMemory.size(); ++i) {
      const size_t at = text.find(kMemory[i]);
      if (at == std::string_view::npos) continue;
      std::string_view number = text.substr(at + kMemory[i].size());
      if (!take(number, "=")) continue;
      const auto size = parse_double(trim(number.substr(0, number.find(','))));
      if (!size || *size < 0) continue;
      out_.memory[i].time_ns.push_back(time);
      out_.memory[i].value.push_back(*size);
    }
  }

  const WorkerLog& log_;
  uint32_t file_;
  LogFile out_;
  int32_t step_ = kUnknown;
  std::optional<Op> open_;
  std::string open_name_;
  int64_t open_offset_ = 0;
};

}  // namespace

Match sniff(const Source& source) {
  return first_worker_lines(source) == WorkerLines::kDetails ? Match::kCertain : Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-details";
  const std::vector<WorkerLog> logs = find_worker_logs(source, options.devices, trace.diagnostics);
  std::vector<std::string> paths;
  for (const WorkerLog& log : logs) {
    paths.push_back(log.path);
    if (options.progress) options.progress->expect(log.size_bytes);
  }
  std::vector<Op> ops;
  std::vector<std::array<CounterSeries, kMemory.size()>> memory(logs.size());
  bool chunks = false;
  auto first_error = read_files(
      logs.size(), [&](size_t k) { return LogReader(logs[k], static_cast<uint32_t>(k)).read(options.progress); },
      [&](size_t k, LogFile file) {
        if (file.ops.empty()) trace.diagnostics.add(problem::paddle_details_unusable_file, {paths[k]});
        append_ops(std::move(file.ops), file.names, trace, ops);
        memory[k] = std::move(file.memory);
        chunks |= file.chunks;
        trace.diagnostics.merge(file.diagnostics);
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::paddle_details_unusable_file, {paths[k]}); });
  if (ops.empty())
    return nothing_read(
        std::move(first_error), source, "no whole forward or backward in these worker logs",
        "set FLAGS_profile_pipeline_details_steps=10 in the environment of the training: its logs then "
        "have pairs such as Before_forward_step_chunk_None_step_0, After_forward_step_chunk_None_step_0");
  if (chunks) number_compute(ops, kFormat, trace.diagnostics);
  build_parts(ops, kind_lane_names(), paths, trace);
  for (Part& part : trace.parts) {
    const size_t k = std::ranges::find(logs, part.rank, &WorkerLog::rank) - logs.begin();
    part.machine = logs[k].machine;
    part.machine_name = valid_utf8(logs[k].machine_name);
    part.device = logs[k].device;
    for (CounterSeries& series : memory[k])
      if (std::ranges::any_of(series.value, [](double size) { return size > 0; }))
        part.counters.push_back(std::move(series));
  }
  if (options.devices.empty()) report_missing_logs(trace.parts, trace.diagnostics);
  count_duplicates(trace, kFormat, trace.diagnostics);
  trace.diagnostics.add(problem::paddle_details_whole_milliseconds);
  trace.clock = trace.machine_count() > 1 ? ClockState::kUnaligned : ClockState::kShared;
  trace.description = std::to_string(trace.parts.size()) + (trace.parts.size() == 1 ? " worker log" : " worker logs") +
                      " with pipeline details";
  return trace;
}

}  // namespace stageline::paddle_details
