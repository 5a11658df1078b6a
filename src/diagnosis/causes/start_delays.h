// When compute cells start, and how late they do: what the searches for late ranks, pauses, late starts everywhere and
// late messages look at.
//
//   own     ▐▐▐▐▐▐      ends                        delay: what passes after the last thing that a cell waits for;
//   input       ────▶│  there     ▐▐▐▐ start        cells that wait for what was not read have none here
//                    └── delay ──┘
#pragma once

#include "diagnosis/causes/received_messages.h"
#include "diagnosis/causes/send_delays.h"
#include "pipeline/measure/op_values.h"

namespace stageline {

// Compute cells that began when a send of their own rank ended, because the rank waits for its sends.
//
//   cell   ▐▐▐▐                ▐▐▐▐      both inputs were there at the first bar's end; the cell began with the send's
//   end send       └──────────────┘          a send that does not block would end anywhere
struct RankSends {
  struct Blocked {
    double ns = 0;         // the part of the operation's delay during which a send of its rank was under way
    bool forward = false;  // that was sent
  };
  std::map<uint32_t, Blocked> blocked;  // by operation

  double blocked_by(uint32_t op) const {
    const auto at = blocked.find(op);
    return at == blocked.end() ? 0 : at->second.ns;
  }
};

// Null where ranks do not wait for their sends, or where sends were not recorded. `cell_ns` is the time of the median
// compute cell. O(cells log sends).
std::shared_ptr<const RankSends> find_rank_sends(const CauseScene& scene, double cell_ns);

// Workers that are late, and by how much.
using LateWorkers = std::vector<std::pair<uint32_t, double>>;

inline constexpr double kAtOnce = 0.05;     // share of a cell; a cell that starts this soon after a send waited for it
inline constexpr double kRareLate = 0.1;    // maximum share of cells that pauses hit
inline constexpr int64_t kMinCertain = 16;  // fewer late cells of a rank may be noise
// Minimum share of late cells of a direction in a step for the link to be slow in that step.
inline constexpr double kWholeStep = 0.5;
inline constexpr double kLongPause = 0.5;  // minimum pause of a garbage collector, as a share of the median cell

inline constexpr double kStandsOut = 2;  // delays that are this many times the next shorter one are of another kind

// Identifies the cells of one direction on a worker: (worker, forward). They wait for the messages of one link.
using WorkerWay = std::pair<uint32_t, bool>;
inline WorkerWay way_at(const CauseScene& scene, uint32_t op) {
  return {scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward};
}

// Counts late cells among `of` cells.
struct LateStarts {
  int64_t count = 0, of = 0;
  double ns = 0, max_ns = 0;
  double message_ns = 0;  // the part of ns during which the message was still under way, by its recorded receive
  int64_t received = 0;   // late cells whose receive was recorded
};

// Returns how much of a start's delay beyond the usual one (`more`) is due to its rank's late launching, whose median
// is `by`. Launches differ, so it is all of it up to kMaxOfUsual × `by`; beyond that, only `by` is, and the rest is a
// pause.
double launched_late(double by, double more);

class StartDelays {
 public:
  // Returns whether hosts start work late, judged by cells that wait only for their own rank: no message can delay
  // these.
  //
  //     F of stage 1, waits for stage 0    late            a host that stops hits both kinds alike; where only the
  //     B of stage 2, waits for its own F  never late      first kind is late, it is what comes from other ranks
  enum class Hosts : uint8_t { kUndecided, kLate, kPrompt };
  struct OneWay {
    bool forward = false;
    std::vector<double> delays;  // of that direction's cells
  };
  using Place = std::tuple<uint32_t, CellKind, int32_t, int32_t>;  // worker, kind, micro-batch, chunk
  struct Places {
    std::set<Place> all, late;
  };
  struct StepLate {
    int64_t count = 0, of = 0;
    double ns = 0;
  };

  // `scene` must outlive it. O(operations).
  explicit StartDelays(const CauseScene& scene);

  // Returns whether enough cells have a known delay; otherwise only cells() may be called.
  bool known() const;
  const CauseScene& scene() const { return scene_; }
  const ReceivedMessages& messages() const { return messages_; }
  // Null where ranks do not wait for their sends, or sends were not recorded.
  const std::shared_ptr<const RankSends>& rank_sends() const { return sends_; }
  size_t cells() const { return cells_; }      // with a known delay
  double cell_ns() const { return cell_ns_; }  // time of the median cell
  // A start that is later by no more than this is not late: a share of the median cell, or the unit of the timestamps.
  double late_ns() const { return std::max(kLateStart * cell_ns_, static_cast<double>(unit_ns_)); }
  double best_ns() const { return best_ns_; }    // the lower quartile of delays, at least 0
  double usual_ns() const { return usual_ns_; }  // their median
  Hosts hosts() const { return hosts_; }
  // The delays of the cells of each worker; empty if no delay of its cells is known.
  const OpValues& delays() const { return delays_; }
  int64_t worked() const { return worked_; }  // number of workers that have delays

  // Workers whose median cell starts late, and by how much.
  const LateWorkers& late_workers() const { return late_; }
  // Returns the workers whose messages may be the cause as well, without those whose only late direction receives no
  // messages.
  LateWorkers late_receivers() const;
  // Late workers of which only one direction is late.
  const std::map<uint32_t, OneWay>& one_way() const { return one_way_; }

  std::vector<WorkerWay> ways() const;  // those with cells whose delay is known, in order
  const LateStarts& late_at(const WorkerWay& way) const { return by_way_[index_of(way)]; }
  int64_t late_of(uint32_t worker) const { return late_at({worker, false}).count + late_at({worker, true}).count; }
  LateStarts sum_of(const std::vector<WorkerWay>& ways) const;
  // For each step of the graph.
  std::vector<StepLate> late_by_step(const WorkerWay& way) const;
  // Returns the places at which cells of some directions have a known delay, and those at which they are late.
  Places places_of(const std::vector<WorkerWay>& ways) const;

  // The stage that gives cells of this direction their input; kUnknown where there is none.
  int32_t sender_of(const WorkerWay& way) const;
  // A cell's delay without what its rank's own sends held it up.
  double delay_ns(uint32_t op) const;
  // Returns a function: how much later than usual for its rank the cell starts. It gives 0 below the limit unless
  // `small` is set, and for delays far beyond those of usual steps. It needs the scene alone.
  std::function<double(uint32_t)> excess(bool small = false) const;

 private:
  static size_t index_of(const WorkerWay& way) { return 2 * static_cast<size_t>(way.first) + (way.second ? 1 : 0); }
  // Drops late workers where the other ranks are late by half as much or more, and finds in which directions the
  // remaining ones are late: forwards, backwards, or both. A message that was not recorded lasts until its cell starts,
  // so other ranks' lateness shows only in cells that wait for their own rank alone:
  //
  //     hosts are late by 4 ms everywhere     stage 3, B after its own F      4 ms: seen
  //                                           stage 1, B after stage 2's      in the message
  void compare_late_workers();
  void count_late();
  void ask_hosts();
  // For each direction in which a worker is late: by how much its cells start late.
  std::map<WorkerWay, double> by_late_way() const;
  // Returns whether a cell waits for its own rank alone, so that no message can delay it.
  bool waits_alone(uint32_t op) const;

  const CauseScene& scene_;
  const StepGraph& g_;
  ReceivedMessages messages_;
  std::vector<OpStretch> counted_;
  OpValues delays_;
  Hosts hosts_ = Hosts::kUndecided;
  int64_t worked_ = 0;
  std::vector<LateStarts> by_way_;  // at index_of()
  LateWorkers late_;
  std::map<uint32_t, OneWay> one_way_;
  size_t cells_ = 0;
  double max_ns_ = 0;  // largest delay of a late cell, beyond usual_ns_
  double cell_ns_ = 0, best_ns_ = 0, usual_ns_ = 0;
  std::shared_ptr<const RankSends> sends_;
  const LateSends& late_sends_;
  int64_t unit_ns_;
};

}  // namespace stageline
