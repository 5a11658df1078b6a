// Reads Paddle worker logs into a Trace. See docs/formats/paddle-log.md.
#include "base/parallel.h"
#include "readers/common/ranks.h"
#include "readers/common/worker_logs.h"
#include "readers/paddle_log/problems.h"
#include "readers/paddle_log/scan.h"

namespace stageline::paddle_log {
namespace {

// Moves the jobs of one log into the trace's part. Here steps count the log's own bursts; settle() gives them their
// final numbers.
void add_jobs(Trace& trace, const PaddleLog& log, const std::vector<int32_t>& burst_of_job) {
  std::vector<JobType> types;
  std::vector<StringId> names;
  for (const std::string& type : log.types) {
    types.push_back(job_type(type));
    names.push_back(trace.names.intern(type));
  }
  Part& part = trace.parts[0];
  Slices rows;
  std::vector<size_t> job_of_row;
  for (uint32_t i = 0; i < log.jobs.size(); ++i) {
    const PaddleJob& job = log.jobs[i];
    if (!is_usable(job)) continue;
    rows.start_ns.push_back(job.start_ns);
    rows.dur_ns.push_back(job.end_ns - job.start_ns);
    rows.name_id.push_back(names[job.type]);
    rows.file_index.push_back(i);
    job_of_row.push_back(i);
  }
  const std::vector<uint32_t> slice = part.add_lane("compute stream", rows);
  trace.cells.reserve(job_of_row.size());
  for (size_t row = 0; row < job_of_row.size(); ++row) {
    const PaddleJob& job = log.jobs[job_of_row[row]];
    const JobType& type = types[job.type];
    const int32_t burst = burst_of_job[job_of_row[row]];
    Cell cell{.step = burst == kOutsideSteps ? kUnknown : burst,
              .kind = type.kind,
              .chunk = type.chunk,
              .micro_batch = type.has_micro_batch ? static_cast<int32_t>(job.micro_batch) : kUnknown};
    if (cell.micro_batch > kMaxMicroBatchNumber) {
      cell.micro_batch = kUnknown;
      trace.diagnostics.add(problem::paddle_large_number, {log.path});
    }
    cell.start_ns = job.start_ns;
    cell.end_ns = job.end_ns;
    cell.slice = slice[row];
    trace.cells.add(cell);
  }
}

constexpr int64_t kMaxStartStep = 1'000'000'000;  // beyond this, steps are counted from 0

// The numbers of a log that settle() needs. Part::reader_numbers carries it in this order, each burst as its first and
// last timestamp.
struct LogNumbers {
  int64_t start_step = 0, chunk_forms = 0, jobs = 0;
  std::vector<PaddleBurst> bursts;

  std::vector<int64_t> packed() const {
    std::vector<int64_t> out = {start_step, chunk_forms, jobs};
    for (const PaddleBurst& burst : bursts) out.insert(out.end(), {burst.start_ns, burst.end_ns});
    return out;
  }
  // `numbers` are empty for a log that could not be read.
  static LogNumbers unpacked(const std::vector<int64_t>& numbers) {
    LogNumbers out;
    if (numbers.size() < 3) return out;
    out.start_step = numbers[0], out.chunk_forms = numbers[1], out.jobs = numbers[2];
    for (size_t b = 3; b + 1 < numbers.size(); b += 2) out.bursts.push_back({0, 0, numbers[b], numbers[b + 1]});
    return out;
  }
};

std::vector<RankSource> list_ranks(const Source& source, const ReadOptions& options, Diagnostics& diagnostics) {
  std::vector<RankSource> ranks;
  for (const WorkerLog& log : find_worker_logs(source, options.devices, diagnostics)) {
    RankSource rank;
    rank.who.rank = log.rank;
    rank.who.machine = log.machine;
    rank.who.machine_name = valid_utf8(log.machine_name);
    rank.who.device = log.device;
    rank.who.source = log.path;
    rank.paths = {log.path};
    rank.size_bytes = log.size_bytes;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

struct RankLog {
  Trace trace;
  Error failure;  // of the whole file or in its middle; what() is empty when there was none
};

Result<RankLog> read_log(const RankSource& rank, Progress* progress) {
  TRY(log, scan_paddle_log(rank.paths[0], progress));
  RankLog out;
  Trace& trace = out.trace;
  trace.format = "paddle-log";
  trace.parts.push_back(rank.who);
  report_paddle_flaws(*log, trace.diagnostics);
  if (log->jobs.empty())
    trace.diagnostics.add(log->bytes == 0          ? problem::paddle_no_jobs_empty
                          : log->damaged.count > 0 ? problem::paddle_no_jobs_broken
                                                   : problem::paddle_no_jobs,
                          {log->path});
  const PaddleRepeats repeats = mark_repeated_jobs(*log);
  trace.diagnostics.add(problem::paddle_repeated_line, {log->path}, repeats.lines);
  trace.diagnostics.add(problem::paddle_repeated_step, {log->path}, repeats.steps);
  std::vector<int32_t> burst_of_job;
  const LogNumbers numbers{log->start_step, log->chunk_form.count, std::ssize(log->jobs),
                           cut_bursts(*log, burst_of_job)};
  trace.parts[0].reader_numbers = numbers.packed();
  add_jobs(trace, *log, burst_of_job);
  out.failure = std::move(log->read_error);
  return out;
}

Result<Trace> read_rank(const RankSource& rank, const ReadOptions& options) {
  TRY(log, read_log(rank, options.progress));
  if (!log->failure.what.empty() && log->trace.cells.size() == 0) return std::move(log->failure);
  return std::move(log->trace);
}

Status settle(Trace& trace, const ReadOptions& options) {
  const size_t count = trace.parts.size();
  std::vector<std::vector<PaddleBurst>> bursts(count);
  std::vector<std::string> paths;
  int64_t first_step = 0;
  for (size_t p = 0; p < count; ++p) {
    Part& part = trace.parts[p];
    paths.push_back(part.source);
    LogNumbers numbers = LogNumbers::unpacked(std::exchange(part.reader_numbers, {}));
    if (numbers.start_step < kMaxStartStep) first_step = std::max(first_step, numbers.start_step);
    trace.chunks_are_pieces |= numbers.chunk_forms > 0;
    bursts[p] = std::move(numbers.bursts);
  }
  Diagnostics notes;
  if (options.devices.empty()) report_missing_logs(trace.parts, notes);
  notes.merge(trace.diagnostics);
  trace.diagnostics = std::move(notes);
  const auto steps = match_steps(bursts, paths, trace.diagnostics);
  Cells& cells = trace.cells;
  if (cells.size() == 0)
    return make_error(ErrorCode::kBadInput, "every profiled job has zero or broken times; nothing can be drawn",
                      "stageline info lists what was found wrong", {paths.empty() ? "" : paths[0]});
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::vector<int32_t>& own = steps[cells.part[i]];
    int32_t& step = cells.step[i];
    if (step < 0) continue;
    const size_t burst = step;
    step = burst < own.size() ? static_cast<int32_t>(first_step) + own[burst] : kUnknown;
  }
  cells.sort();
  trace.clock = trace.machine_count() > 1 ? ClockState::kUnaligned : ClockState::kShared;
  trace.description = std::to_string(count) + (count == 1 ? " worker log" : " worker logs");
  if (trace.machine_count() > 1) trace.description += " of " + std::to_string(trace.machine_count()) + " machines";
  return {};
}

Error nothing_found(const Source& source, const std::vector<RankSource>& files) {
  const std::string root = source.roots.empty() ? "" : source.roots[0];
  if (files.empty())
    return make_error(ErrorCode::kBadInput, "no workerlog.N here, nor in machine*/ below",
                      "give the folder that --log_dir named at launch; for several machines gather one folder each: "
                      "machine0/workerlog.0 …",
                      {root});
  return make_error(
      ErrorCode::kBadInput,
      "none of the " + std::to_string(files.size()) + " worker logs holds a profiler line (\"Profiler Info: Job\")",
      "run with the job schedule profiler on (PaddleNLP: --job_schedule_profiler_start 3 "
      "--job_schedule_profiler_end 6) and GLOG_v not negative",
      {files[0].who.source});
}

}  // namespace

// Every job of paddle.distributed.launch leaves logs of these names, with or without profiler lines. Without any they
// make room for files next to them.
Match sniff(const Source& source) {
  if (first_worker_lines(source) == WorkerLines::kDetails) return Match::kNo;
  std::vector<size_t> logs;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (worker_log_number(file_name(source.files[i].rel)) >= 0) logs.push_back(i);
  if (!logs.empty() && logs.size() == source.files.size()) return Match::kCertain;
  for (const size_t i : logs)
    if (source.head(i).find(kProfilerJob) != std::string_view::npos) return Match::kCertain;
  for (const size_t i : logs)
    if (first_lines(source.files[i].path) == WorkerLines::kJobs) return Match::kCertain;
  if (!logs.empty()) return Match::kMaybe;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && source.head(i).find(kProfilerJob) != std::string_view::npos) return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-log";
  const std::vector<RankSource> ranks = list_ranks(source, options, trace.diagnostics);
  if (options.progress)
    for (const RankSource& rank : ranks) options.progress->expect(rank.size_bytes);
  std::vector<RankLog> logs(ranks.size());
  std::vector<Error> failures(ranks.size());
  parallel_for(ranks.size(), [&](size_t i) {
    Result<RankLog> log = read_log(ranks[i], options.progress);
    if (log) {
      logs[i] = std::move(*log);
      return;
    }
    failures[i] = log.error();
    logs[i].trace.parts.push_back(ranks[i].who);
    logs[i].trace.diagnostics.add(problem::paddle_unreadable, Args().set("why", error_text(log.error())),
                                  log.error().where);
  });
  int64_t job_count = 0;
  size_t cell_count = 0;
  for (const RankLog& log : logs) {
    job_count += LogNumbers::unpacked(log.trace.parts[0].reader_numbers).jobs;
    cell_count += log.trace.cells.size();
  }
  if (job_count == 0) {
    for (const Error& failure : failures)
      if (!failure.what.empty()) return failure;
    for (const RankLog& log : logs)
      if (!log.failure.what.empty()) return log.failure;
    return nothing_found(source, ranks);
  }
  trace.cells.reserve(cell_count);
  for (RankLog& log : logs) join_rank(trace, std::move(log.trace));
  TRY_OK(settle(trace, options));
  return trace;
}

extern const RankReading kRanks = {list_ranks, read_rank, settle};

}  // namespace stageline::paddle_log
