#include "engine/newest_steps.h"

#include <sys/stat.h>
#include <time.h>

#include <thread>

#include "pipeline/cells/link_cells.h"
#include "pipeline/sums/step_ratios.h"

namespace stageline {
namespace {

// A recorder writes its clocks every few seconds, so this silence means something.
constexpr int64_t kSilentSeconds = 60;
constexpr size_t kNewestFiles = 2;
constexpr int64_t kFirstBytes = int64_t{1} << 15, kFewestBytes = int64_t{1} << 10, kMaxBytes = int64_t{1} << 30;
constexpr auto kPoll = std::chrono::milliseconds(20), kPollMemory = std::chrono::milliseconds(250),
               kMaxWait = std::chrono::milliseconds(1000);
constexpr int64_t kSlackNs = 1'000'000'000;
constexpr size_t kMinSteps = 4;  // at least this number is read: clocks are compared by the messages of several steps
constexpr size_t kMinAlike = 3;  // the number of steps before that must have the same work for a step to seem whole
constexpr size_t kMinPeers = 3;  // this number of ranks of a stage is needed for a meaningful median

int64_t now_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

int64_t size_of(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 ? int64_t{facts.st_size} : -1;
}

// "…/host.r00003.p4711.1700000000" of "…/host.r00003.p4711.1700000000.002.slrec" and of what its recorder has in
// memory.
std::string_view recording_of(std::string_view path) {
  const size_t end = path.rfind(".slrec");
  const size_t dot = end == std::string_view::npos ? path.rfind(".slhot") : path.rfind('.', end - 1);
  return path.substr(0, dot);
}

// Leaves out all but the last two files of each recording ("…/host.r00003.p4711.1700000000.002.slrec"). Hot files stay.
std::vector<std::string> newest_files(const Source& source) {
  std::map<std::string, std::vector<std::string>> by_recording;
  std::vector<std::string> out;
  for (const SourceFile& file : source.files) {
    const size_t end = file.path.rfind(".slrec");
    const size_t dot = end == std::string::npos ? end : file.path.rfind('.', end - 1);
    if (dot != std::string::npos) by_recording[file.path.substr(0, dot)].push_back(file.path);
    else if (file.path.ends_with(".slhot")) out.push_back(file.path);
  }
  for (auto& [stem, files] : by_recording) {
    sort_stably(files, [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;  // part 1000 comes after part 999
    });
    const size_t first = files.size() > kNewestFiles ? files.size() - kNewestFiles : 0;
    out.insert(out.end(), files.begin() + first, files.end());
  }
  return out;
}

bool is_silent(const std::vector<std::string>& files) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return std::ranges::none_of(files, [&](const std::string& path) {
    struct stat facts;
    return stat(path.c_str(), &facts) == 0 && now.tv_sec - facts.st_mtim.tv_sec < kSilentSeconds;
  });
}

StepsOfParts steps_of_parts(const Trace& trace) {
  StepsOfParts out;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const int32_t step = trace.cells.step[i];
    if (step == kUnknown) continue;
    const auto [at, is_new] = out.try_emplace(trace.cells.part[i], step, step);
    at->second = {std::min(at->second.first, step), std::max(at->second.second, step)};
  }
  return out;
}

int32_t last_of_all(const StepsOfParts& parts) {
  int32_t last = min_over<int32_t>(parts, [&](const auto& entry) { return entry.second.second; }, INT32_MAX);
  return parts.empty() ? -1 : last;
}

// Counts the cells of each kind.
using Work = std::array<int32_t, kCellKindCount>;

// Returns the parts that have in `step` as much work of each kind as in every earlier step from `first` on. None where
// some part's work changes from step to step, or where there are too few steps. O(cells).
std::set<int32_t> parts_that_are_done(const Trace& trace, int32_t first, int32_t step) {
  const Cells& cells = trace.cells;
  std::map<int32_t, Work> usual, now;
  size_t alike = 0;
  for (const StepRange& range : step_ranges(cells)) {
    if (range.step == kUnknown || range.step < first || range.step > step) continue;
    std::map<int32_t, Work> work;
    for (size_t i = range.begin; i < range.end;) {
      const int32_t part = cells.part[i];
      Work& of_part = work[part];
      for (; i < range.end && cells.part[i] == part; ++i) ++of_part[static_cast<size_t>(cells.kind[i])];
    }
    if (range.step == step) {
      now = std::move(work);
    } else {
      if (alike++ > 0 && work != usual) return {};
      usual = std::move(work);
    }
  }
  std::set<int32_t> done;
  if (alike < kMinAlike) return done;
  for (const auto& [part, work] : usual)
    if (const auto own = now.find(part); own != now.end() && own->second == work) done.insert(part);
  return done;
}

RunningStep measured(const Trace& trace, const StepSums& step, std::span<const RankSums> ranks) {
  RunningStep out{.step = step.step,
                  .start_ns = step.start_ns,
                  .dur_ns = step.span_ns(),
                  .bubble = bubble_of(step, ranks),
                  .ranks = ranks.size()};
  std::map<int32_t, std::vector<double>> busy_of_stage;
  for (const RankSums& rank : ranks)
    if (const int32_t stage = trace.parts[rank.part].stage; stage != kUnknown)
      busy_of_stage[stage].push_back(rank.busy_ns);
  std::map<int32_t, double> medians;
  for (auto& [stage, busy] : busy_of_stage)
    if (busy.size() >= kMinPeers) medians[stage] = median_of(std::move(busy));
  for (const RankSums& rank : ranks) {
    const auto median = medians.find(trace.parts[rank.part].stage);
    const double ratio = median == medians.end() ? 0 : share_or_zero(rank.busy_ns, median->second);
    if (ratio <= out.rank_ratio) continue;
    out.rank_ratio = ratio;
    out.rank = trace.parts[rank.part].rank;
  }
  const std::vector<StageRatio> stages = stage_ratios(trace, ranks);
  if (stages.size() < 2) return out;
  const StageRatio& slowest = *std::ranges::max_element(stages, {}, &StageRatio::busy_ns);
  out.stage = slowest.stage;
  out.stage_ratio = std::isfinite(slowest.ratio) ? slowest.ratio : 0;
  return out;
}

// Counts records that the recorder counted but did not keep, and records without the device's times.
void count_drops(const Trace& trace, Look& look) {
  for (const char* name : {"recording.ring_full", "recording.no_ring", "recording.too_deep", "recording.reentrant",
                           "recording.bad_handle", "recording.names", "recording.kernels"})
    look.lost_records += trace.diagnostics.count(name);
  for (const char* name : {"recording.capture", "recording.no_event", "recording.device_refused",
                           "recording.bad_device_time", "recording.unfinished_device", "recording.one_queue"})
    look.without_device += trace.diagnostics.count(name);
}

// Returns the error for a source without recordings.
Error no_recording(const std::string& path, size_t others) {
  std::string why = "no recording (*.slrec) there yet";
  if (others > 0)
    why += others == 1 ? "; the file that is there is none"
                       : "; the " + std::to_string(others) + " files that are there are none";
  return make_error(ErrorCode::kBadInput, why, "stageline record -o makes them", {path});
}

// Returns the ranks whose parts are further than the last step that all have, which is `last`.
std::vector<int32_t> ranks_behind(const Trace& trace, const StepsOfParts& parts, int32_t last) {
  std::vector<int32_t> behind;
  if (std::ranges::none_of(parts, [&](const auto& part) { return part.second.second > last; })) return behind;
  for (const auto& [part, steps] : parts)
    if (steps.second == last) behind.push_back(trace.parts[part].rank);
  std::ranges::sort(behind);
  return behind;
}

// Returns the measured steps from `first` on, and before `end`.
std::vector<RunningStep> measured_steps(const Trace& trace, int64_t first, int64_t end) {
  std::vector<RunningStep> out;
  const PipelineSums sums = pipeline_sums(trace);
  size_t at = 0;
  for (const StepSums& step : sums.steps) {
    const size_t begin = at;
    while (at < sums.ranks.size() && sums.ranks[at].step == step.step) ++at;
    if (step.step >= first && step.step < end)
      out.push_back(measured(trace, step, std::span(sums.ranks).subspan(begin, at - begin)));
  }
  return out;
}

}  // namespace

void keep_steps_from(Trace& trace, int32_t first) {
  filter_trace(trace, {}, first, INT64_MAX);
  link_cells(trace);
}

NewestSteps::NewestSteps(std::vector<std::string> paths, OpenOptions options)
    : paths_(std::move(paths)), options_(std::move(options)), newest_bytes_(kFirstBytes) {
  options_.reader = "recording";
}

// Reads the newest stretch that has the steps asked for. `first_whole` receives the first step that no rank's stretch
// cuts.
Result<Trace> NewestSteps::read(const std::vector<std::string>& files, int32_t after, size_t count,
                                int32_t& first_whole) {
  if (count != count_) too_few_bytes_ = 0;
  count_ = count;
  const auto grow = [&] {
    too_few_bytes_ = newest_bytes_;
    newest_bytes_ *= 2;
  };
  for (;;) {
    options_.newest_bytes = whole_ ? 0 : newest_bytes_;
    Result<Trace> trace = open_trace(files, options_);
    const bool may_grow = !whole_ && newest_bytes_ < kMaxBytes;
    if (!trace) {
      // The end of a file may hold no range of ours, or be part of a chunk that is longer than what was read.
      if (!may_grow) return trace;
      const bool longer = std::ranges::any_of(
          files, [&](const std::string& path) { return path.ends_with(".slrec") && size_of(path) > newest_bytes_; });
      if (!longer) return trace;
      grow();
      continue;
    }
    first_whole = INT32_MIN;
    const bool cut = trace->diagnostics.count("recording.newest_only") > 0;
    if (cut && (trace->diagnostics.count("recording.steps_numbered") > 0 ||
                trace->diagnostics.count("recording.no_steps") > 0)) {
      whole_ = true;
      continue;
    }
    const StepsOfParts parts = steps_of_parts(*trace);
    int32_t first = INT32_MIN;
    for (const auto& [part, steps] : parts) first = std::max(first, steps.first + (cut ? 1 : 0));
    // Some of a rank's first step may lie before what was read.
    if (cut) first_whole = first;
    const int64_t over = parts.empty() ? 0 : int64_t{last_of_all(parts)} - first;  // at least, as steps may have gaps
    const bool all_new = after == INT32_MIN || first_whole <= int64_t{after} + 1;
    if (cut && may_grow && !(all_new && over >= static_cast<int64_t>(count))) {
      grow();
      continue;
    }
    // If more was read than is needed, the next look reads less: the steps asked for, an eighth more, and two that are
    // not whole. An amount that was too small once is not tried again.
    const int64_t wanted = std::max(count, kMinSteps), enough = wanted + wanted / 8 + 2;
    if (all_new && over > enough) {
      int64_t max = 0;  // that was read of a file
      for (const std::string& path : files)
        if (path.ends_with(".slrec")) max = std::max(max, std::min(size_of(path), newest_bytes_));
      newest_bytes_ = std::max({kFewestBytes, too_few_bytes_ + too_few_bytes_ / 4, max / over * enough});
    }
    return trace;
  }
}

// Notes the files that must grow before a further step can be over: those of the ranks in the step under way. Files of
// ranks that are `done` with it are not waited for while others are not.
void NewestSteps::await(const Trace& trace, const StepsOfParts& parts, const std::set<int32_t>& done,
                        const std::vector<Awaited>& files) {
  std::map<std::string_view, const Awaited*> newest;  // files are in the order in which they were begun
  std::set<std::string_view> in_memory;
  for (const Awaited& file : files)
    if (file.path.ends_with(".slhot")) in_memory.insert(recording_of(file.path));
    else newest[recording_of(file.path)] = &file;
  const int32_t under_way = last_of_all(parts);
  for (const auto& [part, steps] : parts) {
    if (steps.second != under_way || (done.size() < parts.size() && done.contains(part))) continue;
    const std::string_view recording = recording_of(trace.parts[part].source);
    const auto file = newest.find(recording);
    if (in_memory.contains(recording) || file == newest.end()) in_memory_ = true;
    else awaited_.push_back(*file->second);
  }
}

void NewestSteps::wait_for_more() const {
  if (in_memory_ || awaited_.empty()) {
    std::this_thread::sleep_for(kPollMemory);
    return;
  }
  const auto until = std::chrono::steady_clock::now() + kMaxWait;
  for (size_t grown = 0;;) {
    while (grown < awaited_.size() && size_of(awaited_[grown].path) != awaited_[grown].size) ++grown;
    if (grown == awaited_.size() || std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(kPoll);
  }
}

Look NewestSteps::look(int32_t after, size_t count, bool early) {
  Look look;
  awaited_.clear();
  in_memory_ = false;
  const auto wait_for = [&](const Error& error) {
    look.why = error.text();
    waited_ = true;
    return std::move(look);
  };
  Result<Source> source = scan_source(paths_);
  if (!source) return wait_for(source.error());
  const std::vector<std::string> files = newest_files(*source);
  if (files.empty()) return wait_for(no_recording(paths_[0], source->files.size()));
  std::vector<Awaited> sizes;  // from before they are read: what is written meanwhile counts as new
  for (const std::string& path : files) sizes.push_back({path, size_of(path)});
  int32_t first_whole = INT32_MIN;
  Result<Trace> trace = read(files, after, count, first_whole);
  if (!trace) return wait_for(trace.error());  // there is no range yet, or a file was removed meanwhile
  count_drops(*trace, look);
  const bool closed =
      trace->diagnostics.count("recording.not_closed") == 0 && trace->diagnostics.count("recording.cut") == 0;
  look.state = closed ? Look::State::kClosed : is_silent(files) ? Look::State::kSilent : Look::State::kRecording;
  const bool ended = look.state != Look::State::kRecording;

  std::set<int32_t> ranks;
  for (size_t i = 0; i < trace->cells.size(); ++i) ranks.insert(trace->parts[trace->cells.part[i]].rank);
  look.ranks = ranks.size();
  // Only where this program was there first can ranks still be missing; in an older recording all of them are there.
  const bool settled = !waited_ || ranks == ranks_;
  ranks_ = std::move(ranks);
  if (!settled && !ended) {
    look.state = Look::State::kGathering;
    return look;
  }
  const StepsOfParts parts = steps_of_parts(*trace);
  look.under_way = last_of_all(parts);
  std::set<int32_t> done;
  if (early && !ended) done = parts_that_are_done(*trace, first_whole, look.under_way);
  await(*trace, parts, done, sizes);
  look.behind = ranks_behind(*trace, parts, look.under_way);
  look.last_may_grow = !parts.empty() && done.size() == parts.size();
  look.steps = measured_steps(*trace, first_whole, ended ? INT64_MAX : int64_t{look.under_way} + look.last_may_grow);
  look.trace = std::move(*trace);
  if (look.steps.empty()) look.trace.cells = {};
  else filter_trace(look.trace, {}, look.steps.front().step, look.steps.back().step);
  link_cells(look.trace);  // filtering drops links
  return look;
}

LookPace::LookPace(double share)
    : share_(share), used_ns_(now_ns(CLOCK_PROCESS_CPUTIME_ID)), then_ns_(now_ns(CLOCK_MONOTONIC)) {}

std::chrono::nanoseconds LookPace::pause() {
  const int64_t used = now_ns(CLOCK_PROCESS_CPUTIME_ID), now = now_ns(CLOCK_MONOTONIC);
  debt_ns_ = std::max(0.0, debt_ns_ + (used - used_ns_) - share_ * (now - then_ns_));
  used_ns_ = used;
  then_ns_ = now;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::max(0.0, debt_ns_ - kSlackNs) / share_));
}

}  // namespace stageline
