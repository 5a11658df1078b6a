// The ranks of a profile replayed together, which prices what several of them wait for.
#pragma once

#include "diagnosis/profile/rank_losses.h"
#include "profile/ledger.h"
#include "profile/meetings.h"

namespace stageline {

class JobReplay {
 public:
  // Timelines that the account has kept are not made again.
  JobReplay(const Trace& trace, const ProfileAccount& account);

  // False where launches are not linked, most communication was not found on other ranks, or the unchanged run is not
  // replayed as it was recorded.
  bool usable() const { return !before_.empty(); }
  const std::vector<DeviceTimeline>& timelines() const { return timelines_; }
  const std::vector<Meeting>& meetings() const { return meetings_.list; }
  // Returns by rank how much shorter its window is with that taken out of each timeline, and with these meetings.
  std::map<int32_t, double> saved(const std::vector<TakenOut>& out, const std::vector<Meeting>& meetings) const;

  using Shorter = std::vector<std::pair<const LedgerCall*, int64_t>>;  // any call of a transfer, and ns
  // Returns what the windows of all ranks lose, as a share of them, if transfers of the ledger take so much less time.
  double saved_share(const Shorter& transfers) const;
  // Returns what the windows of the other ranks lose, as a share of them, if none of them waits for a rank.
  double saved_by_punctual(int32_t rank) const;

 private:
  std::vector<DeviceTimeline> timelines_;
  Meetings meetings_;
  std::vector<int64_t> before_;
};

// The replay of a profile, made when it is first asked for.
class JobOnce {
 public:
  JobOnce(const Trace& trace, const ProfileAccount& account) : trace_(trace), account_(account) {}
  const JobReplay& operator()() {
    if (!job_) job_.emplace(trace_, account_);
    return *job_;
  }

 private:
  const Trace& trace_;
  const ProfileAccount& account_;
  std::optional<JobReplay> job_;
};

}  // namespace stageline
