// Paddle worker logs → Trace. See docs/formats/paddle-log.md.
#include <algorithm>
#include <string>

#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "model/ops.h"
#include "readers/paddle_log/job_type.h"
#include "readers/paddle_log/scan.h"
#include "readers/paddle_log/steps.h"
#include "readers/paddle_log/worker_logs.h"
#include "readers/reader.h"

namespace stageline {
namespace {

constexpr std::string_view kMark = "Profiler Info: Job (";

Match sniff(const Source& source) {
  bool named = false;
  for (const SourceFile& file : source.files) named |= worker_log_number(file_name(file.rel)) >= 0;
  if (named) return Match::kCertain;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && source.head(i).find(kMark) != std::string_view::npos) return Match::kCertain;
  return Match::kNo;
}

bool drawable(const PaddleJob& job) { return (job.flags & (kJobZero | kJobNegative | kJobCut | kJobBadNumber)) == 0; }

// Moves the jobs of one log into its part and the cells.
void add_rank(Trace& trace, int32_t part_index, const PaddleLog& log, const std::vector<int32_t>& burst_of_job,
              const std::vector<int32_t>& step_of_burst, int32_t first_step) {
  std::vector<JobType> types;
  std::vector<StringId> names;
  for (const std::string& type : log.types) {
    types.push_back(job_type(type));
    names.push_back(trace.names.intern(type));
  }
  Part& part = trace.parts[static_cast<size_t>(part_index)];
  Slices rows;
  std::vector<size_t> job_of_row;
  for (size_t i = 0; i < log.jobs.size(); ++i) {
    const PaddleJob& job = log.jobs[i];
    if (!drawable(job)) continue;
    rows.start_ns.push_back(job.start_ns);
    rows.dur_ns.push_back(job.end_ns - job.start_ns);
    rows.name_id.push_back(names[job.type]);
    rows.file_index.push_back(static_cast<uint32_t>(i));
    job_of_row.push_back(i);
  }
  const std::vector<uint32_t> slice = part.add_lane("compute stream", rows);
  for (size_t row = 0; row < job_of_row.size(); ++row) {
    const PaddleJob& job = log.jobs[job_of_row[row]];
    const JobType& type = types[job.type];
    const int32_t burst = burst_of_job[job_of_row[row]];
    Cell cell;
    cell.step = burst == kOutsideSteps ? kUnknown : first_step + step_of_burst[static_cast<size_t>(burst)];
    cell.part = part_index;
    cell.kind = type.kind;
    cell.chunk = type.chunk;
    cell.micro_batch = type.has_micro_batch ? static_cast<int32_t>(job.micro_batch) : kUnknown;
    if (cell.micro_batch > kMaxMicroBatchNumber) {
      cell.micro_batch = kUnknown;
      trace.diagnostics.add("paddle.large_number", Severity::kWarning,
                            "a micro-batch number is beyond all sense and was dropped; the job is kept", {log.path});
    }
    cell.start_ns = job.start_ns;
    cell.end_ns = job.end_ns;
    cell.slice = slice[row];
    trace.cells.add(cell);
  }
}

Error nothing_found(const Source& source, const std::vector<WorkerLog>& files) {
  const std::string root = source.roots.empty() ? "" : source.roots[0];
  if (files.empty())
    return {ErrorCode::kBadInput,
            "no workerlog.N here, nor in machine*/ below",
            {root},
            "give the folder that --log_dir named at launch; for several machines gather one folder each: "
            "machine0/workerlog.0 …"};
  return {ErrorCode::kBadInput,
          "none of the " + std::to_string(files.size()) + " worker logs holds a profiler line (\"Profiler Info: Job\")",
          {files[0].path},
          "run with the job schedule profiler on (PaddleNLP: --job_schedule_profiler_start 3 "
          "--job_schedule_profiler_end 6) and GLOG_v not negative"};
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-log";
  const std::vector<WorkerLog> files = find_worker_logs(source, options.devices, trace.diagnostics);
  if (options.progress)
    for (const WorkerLog& file : files) options.progress->expect(file.size_bytes);

  std::vector<PaddleLog> logs(files.size());
  std::vector<Diagnostics> flaws(files.size());
  std::vector<Error> failures(files.size());
  parallel_for(files.size(), [&](size_t i) {
    Result<PaddleLog> log = scan_paddle_log(files[i].path, options.progress);
    if (!log) {
      failures[i] = log.error();
      flaws[i].add("paddle.unreadable", Severity::kLoss, log.error().what + "; the other ranks are kept",
                   log.error().where);
      logs[i].path = files[i].path;
      return;
    }
    report_paddle_flaws(*log, flaws[i]);
    logs[i] = std::move(*log);
  });

  size_t job_count = 0;
  int64_t first_step = 0;
  int32_t per_machine = 0;
  std::vector<std::vector<PaddleBurst>> bursts(files.size());
  std::vector<std::vector<int32_t>> burst_of_job(files.size());
  parallel_for(files.size(), [&](size_t i) { bursts[i] = cut_bursts(logs[i], burst_of_job[i]); });
  for (size_t i = 0; i < files.size(); ++i) {
    trace.diagnostics.merge(flaws[i]);
    if (logs[i].jobs.empty() && failures[i].what.empty())
      trace.diagnostics.add("paddle.no_jobs", Severity::kLoss,
                            logs[i].bytes == 0 ? "an empty log (rank crashed at start?); the other ranks are kept"
                                               : "a log without profiler lines (rank crashed, or profiling was off "
                                                 "there); the other ranks are kept",
                            {files[i].path});
    trace.chunks_are_pieces |= logs[i].chunk_form.count > 0;
    job_count += logs[i].jobs.size();
    first_step = std::max(first_step, logs[i].start_step);
    per_machine = std::max(per_machine, files[i].device + 1);
  }
  if (job_count == 0) {
    for (const Error& failure : failures)
      if (!failure.what.empty()) return failure;
    for (const PaddleLog& log : logs)
      if (!log.read_error.what.empty()) return log.read_error;
    return nothing_found(source, files);
  }

  const auto steps = match_steps(bursts, logs, trace.diagnostics);
  trace.cells.reserve(job_count);
  // Ranks leave room for missing logs, unless the numbers are wild: then they count what is there.
  const int64_t rank_room = files.empty() ? 0 : (int64_t{files.back().machine} + 1) * per_machine;
  for (size_t i = 0; i < files.size(); ++i) {
    Part part;
    part.machine = files[i].machine;
    part.machine_name = valid_utf8(files[i].machine_name);
    part.device = files[i].device;
    part.rank =
        rank_room <= kMaxRankNumber ? files[i].machine * per_machine + files[i].device : static_cast<int32_t>(i);
    part.source = files[i].path;
    trace.parts.push_back(std::move(part));
    add_rank(trace, static_cast<int32_t>(i), logs[i], burst_of_job[i], steps[i], static_cast<int32_t>(first_step));
    logs[i] = {};  // the jobs are in the trace now
  }
  if (trace.cells.size() == 0)
    return Error{ErrorCode::kBadInput,
                 "every profiled job has zero or broken times; nothing can be drawn",
                 {files[0].path},
                 "stageline info lists what was found wrong"};
  trace.cells.sort();
  trace.clock = trace.machine_count() > 1 ? ClockState::kUnaligned : ClockState::kShared;
  trace.description = std::to_string(files.size()) + (files.size() == 1 ? " worker log" : " worker logs");
  if (trace.machine_count() > 1) trace.description += " of " + std::to_string(trace.machine_count()) + " machines";
  return trace;
}

}  // namespace

extern const Reader paddle_log_reader;
const Reader paddle_log_reader = {
    "paddle-log", "workerlog.N of Paddle's static-graph pipeline (one folder, or machine*/)", sniff, read, true};

}  // namespace stageline
