#include "readers/paddle_log/problems.h"
#include "readers/paddle_log/scan.h"

namespace stageline {
namespace {

bool same_job(const PaddleJob& a, const PaddleJob& b) {
  return a.type == b.type && a.micro_batch == b.micro_batch && a.start_ns == b.start_ns && a.end_ns == b.end_ns;
}

void extend(PaddleBurst& burst, const PaddleJob& job) {
  if (!is_usable(job)) return;
  if (burst.start_ns == 0 && burst.end_ns == 0) burst.start_ns = job.start_ns, burst.end_ns = job.end_ns;
  burst.start_ns = std::min(burst.start_ns, job.start_ns);
  burst.end_ns = std::max(burst.end_ns, job.end_ns);
}

// A gap this long between two steps means that a second run was appended to the logs.
bool is_new_run(const std::vector<PaddleBurst>& bursts, size_t i, int64_t median_ns) {
  const int64_t hole = bursts[i].start_ns - bursts[i - 1].end_ns;
  return bursts[i].start_ns > 0 && bursts[i - 1].end_ns > 0 &&
         (hole < -median_ns || (hole > 30'000'000'000 && hole / 50 > median_ns));
}

}  // namespace

PaddleRepeats mark_repeated_jobs(PaddleLog& log) {
  PaddleRepeats repeats;
  const PaddleJob* before = nullptr;
  for (PaddleJob& job : log.jobs) {
    if (!is_usable(job)) continue;
    if (before != nullptr && same_job(*before, job)) job.flags |= kJobRepeated, ++repeats.lines;
    before = &job;
  }
  std::vector<int32_t> burst_of_job;
  // (first start, last end) of each step; no two steps have both in common.
  std::set<std::pair<int64_t, int64_t>> known;
  std::vector<bool> again;
  for (const PaddleBurst& burst : cut_bursts(log, burst_of_job)) {
    const bool has_jobs = burst.start_ns != 0 || burst.end_ns != 0;
    again.push_back(has_jobs && !known.emplace(burst.start_ns, burst.end_ns).second);
    repeats.steps += again.back();
  }
  for (size_t i = 0; i < log.jobs.size() && repeats.steps > 0; ++i)
    if (burst_of_job[i] != kOutsideSteps && again[burst_of_job[i]]) log.jobs[i].flags |= kJobRepeated;
  return repeats;
}

std::vector<PaddleBurst> cut_bursts(const PaddleLog& log, std::vector<int32_t>& burst_of_job) {
  burst_of_job.assign(log.jobs.size(), kOutsideSteps);
  std::vector<bool> is_default(log.types.size());
  bool only_default = true;
  for (size_t t = 0; t < log.types.size(); ++t) {
    is_default[t] = log.types[t] == "default";
    only_default &= is_default[t];
  }
  std::vector<PaddleBurst> bursts;
  std::optional<uint64_t> first;
  std::unordered_map<uint64_t, size_t> seen_in;  // (type, micro-batch) → 1 + the burst that had it last
  for (size_t i = 0; i < log.jobs.size(); ++i) {
    const PaddleJob& job = log.jobs[i];
    if ((is_default[job.type] && !only_default) || (job.flags & kJobRepeated) != 0) continue;
    const uint64_t key = (uint64_t{job.type} << 32) | job.micro_batch;
    // The log's first job starts each step. If it is lost, a job that recurs shows only later that a step has ended.
    if (!first) first = key;
    size_t& last = seen_in[key];
    if (key == *first || last == bursts.size()) bursts.push_back({i, i, 0, 0});
    last = bursts.size();
    bursts.back().end = i + 1;
    extend(bursts.back(), job);
    burst_of_job[i] = static_cast<int32_t>(bursts.size()) - 1;
  }
  return bursts;
}

std::vector<std::vector<int32_t>> match_steps(const std::vector<std::vector<PaddleBurst>>& bursts,
                                              const std::vector<std::string>& paths, Diagnostics& diagnostics) {
  std::vector<std::vector<int32_t>> step(bursts.size());
  size_t longest = 0;
  for (size_t r = 0; r < bursts.size(); ++r)
    if (bursts[r].size() > bursts[longest].size()) longest = r;
  if (bursts.empty()) return step;
  const std::vector<PaddleBurst>& reference = bursts[longest];

  for (size_t r = 0; r < bursts.size(); ++r) {
    const std::vector<PaddleBurst>& own = bursts[r];
    step[r].resize(own.size());
    if (own.size() == reference.size()) {
      for (uint32_t i = 0; i < own.size(); ++i) step[r][i] = i;
      continue;
    }
    if (own.empty()) continue;
    diagnostics.add(problem::paddle_lost_steps, {paths[r]}, reference.size() - own.size());
    // The burst with the nearest middle is taken, but later bursts of this rank must still find a place.
    size_t next = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      const size_t last_allowed = reference.size() - (own.size() - i);
      const auto distance = [&](size_t k) {
        const int64_t d = (reference[k].start_ns + reference[k].end_ns) / 2 - (own[i].start_ns + own[i].end_ns) / 2;
        return d < 0 ? -d : d;
      };
      size_t best = next;
      for (size_t k = next + 1; k <= last_allowed && distance(k) < distance(best); ++k) best = k;
      step[r][i] = static_cast<int32_t>(best);
      next = best + 1;
    }
  }

  auto spans = mapped<int64_t>(reference, [&](const PaddleBurst& burst) { return burst.end_ns - burst.start_ns; });
  if (spans.size() >= 2) {
    std::nth_element(spans.begin(), spans.begin() + spans.size() / 2, spans.end());
    const int64_t median = spans[spans.size() / 2];
    for (size_t i = 1; i < reference.size(); ++i)
      if (is_new_run(reference, i, median))
        diagnostics.add(problem::paddle_appended_run, Args().count("steps", i), {paths[longest]});
  }
  return step;
}

}  // namespace stageline
