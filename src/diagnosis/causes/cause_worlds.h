// Replays of the recorded steps without some causes, and what they gain. Part of causes.
#pragma once

#include "diagnosis/causes/suspect.h"
#include "pipeline/measure/op_values.h"

namespace stageline {

// Replays the steps without some of the suspected causes.
//
// A replica with an unread stage waits for work that no replay knows, so it would begin and end at its recorded times
// in every simulation. The others wait for it where replicas meet, and nothing would ever gain anything. If other
// replicas were read whole, `held` are those that no simulation waits for, not even that of the recorded times.
// In other replicas of which a stage was not read, that stage comes to collectives as late as the read ones do. They
// wait for these, so collectives of that stage take their usual time.
class CauseWorlds {
 public:
  using World = std::vector<CauseWorld>;  // the changes that make it, in order
  CauseWorlds(const CauseScene& scene, std::vector<bool> held);

  bool holds_any() const { return !held_.empty(); }
  bool is_held(uint32_t op) const {
    const int32_t dp = held_.empty() ? kUnknown : scene_.graph.dp(op);
    return dp >= 0 && std::cmp_less(dp, held_.size()) && held_[dp];
  }
  // Writes the operations' times in the first world of the stretch. The cells of ranks that meet in them have all their
  // own work.
  void fill(const World& world, const WorldStretch& stretch) const;
  void operation(uint32_t op, const World& world, double& dur, double& delay) const {
    fill(world, {op, op + 1, 0, 1, 1, &dur, &delay});
  }
  // Calls body(op, dur_ns) for the operations, in order, with their times in the scenario.
  template <class Body> void each(const OpStretch& ops, const World& world, const Body& body) const {
    std::array<double, 512> dur, delay;
    for (uint32_t op = ops.begin; op < ops.end;) {
      const uint32_t begin = op, end = std::min<uint32_t>(ops.end, op + static_cast<uint32_t>(dur.size()));
      fill(world, {begin, end, 0, 1, 1, dur.data(), delay.data()});
      for (; op < end; ++op) body(op, dur[op - begin]);
    }
  }
  // Replays every scenario once, however often it is asked for. Where the graph has no waits, scenarios differ only by
  // the times of cells. The step is then below 0 by as much as cells are shorter, on the rank where that is most.
  WorldTimes replay(const std::vector<World>& worlds);

 private:
  WorldTimes replay_new(const std::vector<World>& worlds) const;
  void change_cell(const World& world, const PeerCell& cell, double& dur, double& delay, std::span<double> own_ns,
                   std::span<double> transfer_ns) const;
  void meet_inside(const World& world, const WorldStretch& stretch) const;
  WorldTimes compare_work(const std::vector<World>& worlds) const;
  void leave_out_held(const WorldStretch& stretch) const;
  void find_unread_members();

  const CauseScene& scene_;
  std::vector<double> launch_ns_;
  std::vector<bool> held_;  // for each replica; empty: none
  // For types of collectives and stages with a rank that was not read: the usual transfer.
  std::map<std::pair<uint16_t, int32_t>, double> transfer_ns_;
  std::map<World, std::vector<double>> step_ns_;  // of the scenarios that were replayed
};

// Returns how much shorter each counted step is in world `to` than in world `from`.
std::vector<double> gains_of(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts);

// The standard error of the mean of values; NaN for one value.
double standard_error(const std::vector<double>& values);

// Splits the step time that remains after all named causes are removed. Like the waterfall, it replays the steps with
// more and more of the real times and attributes each difference. The parts are: mean per kind of cell, mean per place,
// each cell (separately for cells that slow a whole replica), messages, late starts.
void account_for_rest(const CauseScene& scene, CauseWorlds& worlds, const CauseWorlds::World& all,
                      const std::vector<bool>& counts, std::vector<AccountLine>& left);

}  // namespace stageline
