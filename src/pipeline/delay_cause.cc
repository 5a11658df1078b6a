// Causes in when compute starts: ranks that are late, pauses, and late starts everywhere.
//
//   own     ▐▐▐▐▐▐      ends                        delay: what passes after the last thing that a cell waits for;
//   input       ────▶│  there     ▐▐▐▐ start        cells that wait for what was not read have none here
//                    └── delay ──┘
#include <algorithm>
#include <map>
#include <set>

#include "model/stage_costs.h"
#include "pipeline/cause_drafts.h"

namespace stageline {
namespace {

constexpr double kLateStart = 0.1;    // of the median compute cell, beyond which a start is late
constexpr double kLateWorker = 0.05;  // the same for a whole worker's median
constexpr double kRare = 0.1;         // of the cells: what is late more often is no pause
constexpr double kLongPause = 0.5;    // of the median cell: a collector's pauses are no shorter
constexpr double kMostOneWay = 0.3;   // of a worker's cells of one direction: more of them are its message's doing
constexpr size_t kLeastCells = 4;

using WorkerWay = std::pair<uint32_t, bool>;  // worker, forward

size_t way_of(const WorkerWay& key) { return 2 * static_cast<size_t>(key.first) + (key.second ? 1 : 0); }

struct Late {
  int64_t count = 0, of = 0;
  double ns = 0;
};

// Whether an operation is a message to a worker that nobody recorded.
bool reaches(const StepGraph& g, uint32_t op, const CellTimes::Worker& worker) {
  return is_message(g.kind[op]) && g.cell[op] == kNoCell && g.stage[op] == worker.stage &&
         std::max(g.dp[op], 0) == worker.dp;
}

class Delays {
 public:
  explicit Delays(const CauseScene& scene) : scene_(scene), g_(scene.graph) {
    of_worker_.resize(scene_.times.workers().size());
    std::vector<double> all, durations;
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op)) return;
      of_worker_[scene_.times.worker_of(op)].push_back(g_.delay_ns[op]);
      all.push_back(g_.delay_ns[op]);
      durations.push_back(g_.dur_ns[op]);
    });
    cells_ = all.size();
    if (cells_ < kLeastCells) return;
    cell_ns_ = median_of(std::move(durations));
    const auto quarter = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 4);
    std::nth_element(all.begin(), quarter, all.end());
    best_ns_ = std::max(0.0, *quarter);
    usual_ns_ = median_of(std::move(all));
    for (const auto& delays : of_worker_) worked_ += !delays.empty();
    for (uint32_t worker = 0; worker < of_worker_.size() && worked_ > 1; ++worker) {
      if (of_worker_[worker].empty()) continue;
      const double own = median_of(of_worker_[worker]);
      if (own - usual_ns_ >= kLateWorker * cell_ns_) late_.emplace_back(worker, own - usual_ns_);
    }
    find_usual_message();
    count_late();
  }

  bool known() const { return cells_ >= kLeastCells; }
  const LateWorkers& late_workers() const { return late_; }

  // Late cells on most ranks, and too many for pauses.
  bool everywhere() const {
    int64_t count = 0, often = 0;
    for (uint32_t worker = 0; worker < of_worker_.size(); ++worker) {
      if (of_worker_[worker].empty()) continue;
      const int64_t own = late_of(worker);
      count += own;
      often += static_cast<double>(own) >= kRare * static_cast<double>(of_worker_[worker].size());
    }
    return often > 1 && 2 * often >= worked_ && static_cast<double>(count) >= kRare * static_cast<double>(cells_);
  }

  void draft_everywhere(std::vector<CauseDraft>& out) const {
    CauseDraft draft;
    draft.cause.kind = CauseKind::kLateStarts;
    draft.cause.of = static_cast<int64_t>(cells_);
    double worst = 0;
    const double limit = best_ns_ + kLateStart * cell_ns_;
    for (uint32_t worker = 0; worker < of_worker_.size(); ++worker) {
      const std::vector<double>& delays = of_worker_[worker];
      if (delays.empty()) continue;
      int64_t count = 0;
      for (const double ns : delays) {
        if (ns <= limit) continue;
        ++count;
        draft.cause.pause_ns += ns - best_ns_;
      }
      draft.cause.count += count;
      draft.cause.ranks += count > 0;
      const double share = static_cast<double>(count) / static_cast<double>(delays.size());
      if (share <= worst) continue;
      worst = draft.cause.ratio = share;  // of the worst worker's cells
      draft.cause.part = scene_.times.workers()[worker].part;
    }
    if (draft.cause.count == 0) return;
    draft.cause.pause_ns /= static_cast<double>(draft.cause.count);
    draft.without = [&scene = scene_, limit, best = best_ns_](uint32_t op, double&, double& delay) {
      if (delay > limit && scene.tells_delay(op)) delay = best;
    };
    out.push_back(std::move(draft));
  }

  void draft_late_workers(std::vector<CauseDraft>& out) const {
    for (size_t i = 0; i < std::min(late_.size(), kMostWorkerCauses); ++i) {
      const auto [number, by] = late_[i];
      const CellTimes::Worker& worker = scene_.times.workers()[number];
      CauseDraft draft;
      draft.cause.kind = CauseKind::kLateWorker;
      draft.cause.stage = worker.stage;
      draft.cause.dp = worker.dp;
      draft.cause.part = worker.part;
      draft.cause.pause_ns = by;
      draft.cause.times = {{CellKind::kOther, by + usual_ns_, usual_ns_ < kLateStart * by ? 0 : usual_ns_}};
      draft.cause.count = draft.cause.of = static_cast<int64_t>(of_worker_[number].size());
      draft.without = [&scene = scene_, number = number, worker, by = by, usual = message_ns_](uint32_t op, double& dur,
                                                                                               double& delay) {
        const StepGraph& g = scene.graph;
        if (scene.times.worker_of(op) == number && !g.waits(op).empty()) delay = std::max(0.0, delay - by);
        // A message that nobody recorded lasts until its cell starts, and so holds what its rank is late.
        if (reaches(g, op, worker)) dur = std::max(dur - by, std::min(dur, usual));
      };
      out.push_back(std::move(draft));
    }
  }

  void draft_pauses(std::vector<CauseDraft>& out) const {
    CauseDraft pauses;
    pauses.cause.kind = CauseKind::kPauses;
    std::set<WorkerWay> linked;
    std::set<int32_t> parts;
    for (size_t way = 0; way < by_way_.size(); ++way) {
      const WorkerWay key(static_cast<uint32_t>(way / 2), way % 2 != 0);
      const Late& late = by_way_[way];
      if (late.count == 0) continue;
      if (is_message_late(key, late)) {
        linked.insert(key);
        if (linked.size() <= kMostWorkerCauses) draft_link(key, late, out);
        continue;
      }
      pauses.cause.count += late.count;
      pauses.cause.pause_ns += late.ns;
      parts.insert(scene_.times.workers()[key.first].part);
    }
    pauses.cause.of = static_cast<int64_t>(cells_);
    pauses.cause.ranks = static_cast<int64_t>(parts.size());
    if (pauses.cause.count == 0) return;
    pauses.cause.pause_ns /= static_cast<double>(pauses.cause.count);
    if (parts.size() == 1) pauses.cause.part = *parts.begin();
    pauses.cause.collector = parts.size() > 1 && pauses.cause.pause_ns >= kLongPause * cell_ns_ &&
                             static_cast<double>(pauses.cause.count) <= kRare * static_cast<double>(cells_);
    pauses.without = [excess = excess(), linked, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!linked.contains({scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward}))
        delay -= excess(op);
    };
    out.push_back(std::move(pauses));
  }

 private:
  // What a cell starts later than usual on its rank; 0 below the limit.
  std::function<double(uint32_t)> excess() const {
    return [&scene = scene_, late = std::map<uint32_t, double>(late_.begin(), late_.end()), usual = usual_ns_,
            limit = usual_ns_ + kLateStart * cell_ns_](uint32_t op) {
      if (!scene.tells_delay(op)) return 0.0;
      const auto of = late.find(scene.times.worker_of(op));
      const double delay = scene.graph.delay_ns[op] - (of == late.end() ? 0 : of->second);
      return delay > limit ? delay - usual : 0.0;
    };
  }

  // Of messages that nobody recorded, to ranks that are on time.
  void find_usual_message() {
    std::vector<double> all;
    scene_.each_op([&](uint32_t op, size_t) {
      if (!is_message(g_.kind[op]) || g_.cell[op] != kNoCell) return;
      const bool to_late = std::any_of(late_.begin(), late_.end(), [&](const auto& late) {
        return reaches(g_, op, scene_.times.workers()[late.first]);
      });
      if (!to_late) all.push_back(g_.dur_ns[op]);
    });
    if (!all.empty()) message_ns_ = std::max(0.0, median_of(std::move(all)));
  }

  void count_late() {
    const auto by = excess();
    by_way_.resize(2 * of_worker_.size());
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op)) return;
      Late& late = by_way_[way_of({scene_.times.worker_of(op), g_.kind[op] == CellKind::kForward})];
      const double ns = by(op);
      ++late.of;
      late.count += ns > 0;
      late.ns += ns;
    });
  }

  int64_t late_of(uint32_t worker) const {
    return by_way_[way_of({worker, false})].count + by_way_[way_of({worker, true})].count;
  }

  // Late in one direction alone, and often: the message, where nobody recorded it.
  bool is_message_late(const WorkerWay& key, const Late& late) const {
    if (g_.source != GraphSource::kComputeCells) return false;
    const Late& other = by_way_[way_of({key.first, !key.second})];
    if (other.count * 5 > other.of) return false;
    const int32_t from = scene_.times.workers()[key.first].stage + (key.second ? -1 : 1);
    return from >= 0 && from < scene_.times.stages() &&
           static_cast<double>(late.count) >= kMostOneWay * static_cast<double>(late.of);
  }

  void draft_link(const WorkerWay& key, const Late& late, std::vector<CauseDraft>& out) const {
    const CellTimes::Worker& worker = scene_.times.workers()[key.first];
    CauseDraft link;
    link.cause.kind = CauseKind::kSlowLink;
    link.cause.from_stage = worker.stage + (key.second ? -1 : 1);
    link.cause.stage = worker.stage;
    if (g_.dp_count > 1) link.cause.dp = worker.dp;
    link.cause.times = {{CellKind::kOther, late.ns / static_cast<double>(late.count), 0}};
    link.without = [excess = excess(), key, &scene = scene_](uint32_t op, double&, double& delay) {
      if (scene.times.worker_of(op) == key.first && (scene.graph.kind[op] == CellKind::kForward) == key.second)
        delay -= excess(op);
    };
    out.push_back(std::move(link));
  }

  const CauseScene& scene_;
  const StepGraph& g_;
  std::vector<std::vector<double>> of_worker_;  // delays; empty: none of its cells tells any
  int64_t worked_ = 0;                          // workers that have some
  std::vector<Late> by_way_;                    // by way_of()
  LateWorkers late_;
  size_t cells_ = 0;
  double cell_ns_ = 0, best_ns_ = 0, usual_ns_ = 0;  // median cell; lower quartile and median of delays
  double message_ns_ = 0;
};

}  // namespace

LateWorkers draft_delays(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const Delays delays(scene);
  if (!delays.known()) return {};
  if (delays.everywhere()) {
    delays.draft_everywhere(out);
    return {};
  }
  delays.draft_late_workers(out);
  delays.draft_pauses(out);
  return delays.late_workers();
}

}  // namespace stageline
