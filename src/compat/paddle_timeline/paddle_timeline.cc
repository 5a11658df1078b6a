// The passes are: find the logs, scan a few at a time, clean what V3 cannot handle, and write both files. The steps
// follow, merged over all logs, then the names of rows.
#include "compat/paddle_timeline/paddle_timeline.h"

#include <filesystem>

#include "base/error_words.h"
#include "base/parallel.h"
#include "compat/paddle_timeline/problems.h"
#include "compat/paddle_timeline/timeline_steps.h"
#include "readers/paddle_log/problems.h"

namespace stageline {
namespace {

// Writes are large, since gigabytes in pieces of 128 KiB take several times the system time of pieces of 1 MiB.
constexpr size_t kTimelineBufferBytes = size_t{1} << 20;

// Removes what V3's regular expression would not have matched, and fails where V3 would have raised an exception.
Status keep_as_v3(PaddleLog& log) {
  const auto raises = [&](const PaddleFlaw& flaw, const char* what) {
    return make_error(ErrorCode::kBadInput, std::string("V3 raises here: ") + what,
                      "leave --compat out to have it repaired", {log.path, 0, flaw.first_offset});
  };
  if (log.bad_utf8.count > 0) return raises(log.bad_utf8, "bytes that are not UTF-8");
  if (log.decimal_comma.count > 0) return raises(log.decimal_comma, "a decimal comma");
  if (log.bad_number.count > 0) return raises(log.bad_number, "a time that is not a number");
  std::erase_if(log.jobs, [](const PaddleJob& job) { return (job.flags & kJobChunkForm) != 0; });
  return {};
}

void clean(PaddleLog& log) {
  constexpr uint8_t unusable = kJobZero | kJobNegative | kJobCut | kJobBadNumber;
  std::erase_if(log.jobs, [](const PaddleJob& job) { return (job.flags & unusable) != 0; });
}

std::string job_text(const PaddleLog& log, const PaddleJob& job) {
  const std::string decimals = std::to_string(job.start_ns % 1'000'000);
  return log.types[job.type] + " " + std::to_string(job.micro_batch) +
         ", job_start_time = " + std::to_string(job.start_ns / 1'000'000) + "." +
         std::string(6 - decimals.size(), '0') + decimals;
}

// Jobs that are in the log twice would open steps of their own.
void drop_repeats(PaddleLog& log, Diagnostics& flaws) {
  const PaddleRepeats repeats = mark_repeated_jobs(log);
  flaws.add(problem::paddle_repeated_line, {log.path}, repeats.lines);
  flaws.add(problem::paddle_repeated_step, {log.path}, repeats.steps);
  std::erase_if(log.jobs, [](const PaddleJob& job) { return (job.flags & kJobRepeated) != 0; });
}

// Where a job begins before another one ends and ends after it, a viewer takes the end of one for that of the other.
void report_overlaps(const PaddleLog& log, Diagnostics& flaws) {
  std::vector<PaddleJob> order = log.jobs;
  sort_stably(order, {}, [](auto& job) { return job.start_ns; });
  const PaddleJob *longest = nullptr, *first = nullptr;
  int64_t count = 0;
  for (const PaddleJob& job : order) {
    if (longest && job.end_ns <= longest->end_ns) continue;
    if (longest && job.start_ns < longest->end_ns && job.start_ns > longest->start_ns && count++ == 0) first = &job;
    longest = &job;
  }
  if (first) flaws.add(problem::paddle_overlapping_jobs, Args().set("job", job_text(log, *first)), {log.path}, count);
}

int64_t as_ns(const PyTime& time) { return static_cast<int64_t>(std::min(time.us, 9e15) * 1000); }

// One log: read, and its jobs kept as V3 keeps them or put right.
struct ScannedLog {
  PaddleLog log;
  Diagnostics flaws;
  std::optional<Error> failure;
};

ScannedLog scan_log(const std::string& path, const PaddleTimelineOptions& options) {
  ScannedLog out;
  Result<PaddleLog> scanned = scan_paddle_log(path, options.progress);
  if (!scanned) {
    out.log.path = path;
    out.failure = std::move(scanned).error();
    return out;
  }
  out.log = std::move(*scanned);
  if (options.compat_v3) {
    if (Status s = keep_as_v3(out.log); !s) out.failure = std::move(s).error();
  } else {
    report_paddle_flaws(out.log, out.flaws);
    clean(out.log);
    drop_repeats(out.log, out.flaws);
    report_overlaps(out.log, out.flaws);
  }
  return out;
}

// The steps of all logs, and what is written about them.
struct LogSteps {
  std::vector<std::string> paths;
  std::vector<std::vector<TimelineStep>> steps;
  int64_t start_step = 0;
};

// Scans the logs, a few at a time, and writes their jobs, which are dropped then. Errors: with V3, the first log's.
Result<LogSteps> write_jobs(const PaddleTimelineOptions& options, const std::vector<TimelineRow>& rows,
                            TimelineWriter& writer, PaddleTimeline& result) {
  LogSteps all;
  const size_t batch = thread_count();
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    std::vector<ScannedLog> scanned(std::min(batch, rows.size() - begin));
    parallel_for(scanned.size(), [&](size_t k) { scanned[k] = scan_log(rows[begin + k].path, options); });
    for (size_t k = 0; k < scanned.size(); ++k) {
      auto& [log, flaws, failure] = scanned[k];
      all.paths.push_back(log.path);
      all.steps.emplace_back();
      result.diagnostics.merge(flaws);
      if (failure) {
        if (options.compat_v3) return *failure;
        result.diagnostics.add(problem::paddle_unreadable, Args().set("why", error_text(*failure)), failure->where);
        continue;
      }
      if (log.jobs.empty() && !options.compat_v3) result.diagnostics.add(problem::paddle_no_jobs_timeline, {log.path});
      writer.jobs(log, rows[begin + k]);
      all.steps.back() = options.compat_v3 ? steps_as_v3(log) : steps_repaired(log);
      all.start_step = std::max(all.start_step, log.start_step);
      result.jobs += static_cast<int64_t>(log.jobs.size());
      std::vector<PaddleJob>().swap(log.jobs);
    }
  }
  return all;
}

// Merges steps by their position as V3 does, or, where logs lost steps, by time.
StepMerge merge_steps(const LogSteps& logs, bool as_v3, Diagnostics& diagnostics) {
  StepMerge merge;
  if (as_v3) {
    for (const auto& own : logs.steps)
      for (size_t i = 0; i < own.size(); ++i) merge.add(static_cast<int32_t>(i), own[i]);
    return merge;
  }
  std::vector<std::vector<PaddleBurst>> bursts(logs.steps.size());
  for (size_t r = 0; r < bursts.size(); ++r)
    for (const TimelineStep& step : logs.steps[r]) bursts[r].push_back({0, 0, as_ns(step.start), as_ns(step.end)});
  const auto ordinals = match_steps(bursts, logs.paths, diagnostics);
  for (size_t r = 0; r < bursts.size(); ++r)
    for (size_t i = 0; i < logs.steps[r].size(); ++i) merge.add(ordinals[r][i], logs.steps[r][i]);
  return merge;
}

}  // namespace

Result<PaddleTimeline> write_paddle_timeline(const PaddleTimelineOptions& options) {
  PaddleTimeline result;
  TRY(inputs, find_timeline_inputs(options, result.diagnostics));
  namespace fs = std::filesystem;
  result.chrome_path = (fs::path(inputs->output_folder) / "pipeline_profile.json").string();
  result.perfetto_path = (fs::path(inputs->output_folder) / "pipeline_profile_perfetto.json").string();
  if (options.progress)
    for (const TimelineRow& row : inputs->rows) {
      std::error_code ignored;
      const auto size = fs::file_size(row.path, ignored);
      if (!ignored) options.progress->expect(size);
    }
  TRY(chrome, OutputFile::create(result.chrome_path, kTimelineBufferBytes));
  TRY(perfetto, OutputFile::create(result.perfetto_path, kTimelineBufferBytes));
  TimelineWriter writer(*chrome, *perfetto, inputs->machines > 1 ? 0 : static_cast<int64_t>(inputs->names.size()));
  TRY(logs, write_jobs(options, inputs->rows, writer, result));
  if (result.jobs == 0 && !options.compat_v3)
    return make_error(
        ErrorCode::kBadInput,
        "none of the " + std::to_string(inputs->rows.size()) + " worker logs holds a usable profiler line",
        "run with the job schedule profiler on; docs/howto/paddle.md says how", {options.log_dir});
  // V3 reads the number of the first step and then loses it.
  result.steps =
      merge_steps(*logs, options.compat_v3, result.diagnostics).write(writer, options.compat_v3 ? 0 : logs->start_step);
  writer.finish(inputs->names);
  result.logs = inputs->rows.size();
  result.machines = inputs->machines;
  OutputSet together;  // both files appear, or none
  TRY_OK(chrome->commit());
  TRY_OK(perfetto->commit());
  TRY_OK(together.commit());
  return result;
}

}  // namespace stageline
