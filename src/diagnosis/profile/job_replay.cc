#include "diagnosis/profile/job_replay.h"

#include <cstdlib>

#include "profile/device_timeline.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr double kReplayError = 0.01;  // of the unchanged run's windows
constexpr double kMostlyKnown = 0.5;   // of the time of all communication

}  // namespace

JobReplay::JobReplay(const Trace& trace, const ProfileAccount& account) {
  const Result<TorchRun> run = make_torch_run(trace, {.include_last_step = true});
  if (!run) return;
  timelines_.resize(run->parts.size());
  parallel_for(timelines_.size(), [&](size_t r) {
    const Part& part = trace.parts[run->parts[r]];
    const auto kept = std::ranges::find_if(
        account, [&](const RankAccount& own) { return own.timeline && own.timeline->part == &part; });
    timelines_[r] = kept == account.end() ? device_timeline(trace, part) : *kept->timeline;
  });
  for (const DeviceTimeline& timeline : timelines_)
    if (!timeline.linked && !timeline.device.empty()) return;
  meetings_ = find_meetings(*run, timelines_);
  if (meetings_.known < kMostlyKnown) return;
  std::vector<int64_t> before = replayed_together(timelines_, std::vector<TakenOut>(timelines_.size()), meetings_.list);
  for (size_t r = 0; r < before.size(); ++r) {
    const auto recorded = static_cast<double>(timelines_[r].window_ns());
    if (std::abs(static_cast<double>(before[r]) - recorded) > kReplayError * recorded) return;
  }
  before_ = std::move(before);
}

std::map<int32_t, double> JobReplay::saved(const std::vector<TakenOut>& out,
                                           const std::vector<Meeting>& meetings) const {
  const std::vector<int64_t> after = replayed_together(timelines_, out, meetings);
  std::map<int32_t, double> saved;
  for (size_t r = 0; r < after.size(); ++r)
    saved[timelines_[r].part->rank] = static_cast<double>(before_[r] - after[r]);
  return saved;
}

double JobReplay::saved_share(const Shorter& transfers) const {
  std::map<std::pair<uint32_t, uint32_t>, size_t> meeting_of;  // by rank and slice
  for (size_t m = 0; m < meetings_.list.size(); ++m)
    for (const auto& [rank, item] : meetings_.list[m].members)
      meeting_of[{rank, timelines_[rank].device[item].slice}] = m;
  std::vector<Meeting> meetings = meetings_.list;
  for (const auto& [call, ns] : transfers)
    if (const auto at = meeting_of.find({call->rank_index, call->slice}); at != meeting_of.end())
      meetings[at->second].shorter_ns += ns;
  double saved_ns = 0, all_ns = 0;
  for (const auto& [rank, ns] : saved(std::vector<TakenOut>(timelines_.size()), meetings)) saved_ns += ns;
  for (const int64_t window : before_) all_ns += static_cast<double>(window);
  return all_ns > 0 ? std::max(0.0, saved_ns / all_ns) : 0;
}

double JobReplay::saved_by_punctual(int32_t rank) const {
  const auto punctual = std::ranges::find_if(timelines_, [&](const auto& of) { return of.part->rank == rank; });
  const auto after = replayed_together(timelines_, std::vector<TakenOut>(timelines_.size()), meetings_.list,
                                       static_cast<uint32_t>(punctual - timelines_.begin()));
  double saved_ns = 0, all_ns = 0;
  for (size_t r = 0; r < after.size(); ++r) {
    if (timelines_[r].part->rank == rank) continue;
    saved_ns += static_cast<double>(before_[r] - after[r]), all_ns += static_cast<double>(before_[r]);
  }
  return all_ns > 0 ? std::max(0.0, saved_ns / all_ns) : 0;
}

}  // namespace stageline
