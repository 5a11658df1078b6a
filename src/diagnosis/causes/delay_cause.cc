// Causes in when compute starts: ranks that are late, pauses, and late starts everywhere.
//
//   own     ▐▐▐▐▐▐      ends                        delay: what passes after the last thing that a cell waits for;
//   input       ────▶│  there     ▐▐▐▐ start        cells that wait for what was not read have none here
//                    └── delay ──┘
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>

#include "diagnosis/causes/cause_drafts.h"
#include "diagnosis/causes/received_messages.h"
#include "model/stage_costs.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr double kLateStart = 0.1;    // of the median compute cell, beyond which a start is late
constexpr double kLateWorker = 0.05;  // the same for a whole worker's median
constexpr double kRare = 0.1;         // of the cells: what is late more often is no pause
constexpr double kLongPause = 0.5;    // of the median cell: a collector's pauses are no shorter
constexpr double kMostOneWay = 0.3;   // of a worker's cells of one direction: more of them are its message's doing
constexpr size_t kLeastCells = 4;
constexpr double kByMessage = 0.8;      // of what cells of one direction are late by: their messages were under way
constexpr double kChanceOneWay = 0.01;  // that pauses of a host all hit cells of one direction
constexpr int64_t kLeastOneWay = 3;     // late cells of one direction: fewer are pauses, whatever their share
constexpr double kEverywhere = 0.8;  // of the steps in which a cell is late, and of the late cells that such cells are
constexpr int64_t kLeastCertain = 16;  // late cells of a rank: fewer may be chance
constexpr size_t kLeastSteps = 3;      // fewer say nothing of every step
constexpr double kWholeStep = 0.5;     // of a direction's cells in a step: more are late, and the link is slow in it
constexpr double kAtOnce = 0.05;       // of the median cell: a cell that starts so soon after a send waited for it
constexpr double kByOwnSend = 0.8;     // of what starts late while an own send runs: that starts when it ends

using WorkerWay = std::pair<uint32_t, bool>;                     // worker, forward
using Place = std::tuple<uint32_t, CellKind, int32_t, int32_t>;  // worker, kind, micro-batch, chunk

size_t way_of(const WorkerWay& key) { return 2 * static_cast<size_t>(key.first) + (key.second ? 1 : 0); }

struct Late {
  int64_t count = 0, of = 0;
  double ns = 0;
  double message_ns = 0;  // of it: its message was still under way, by its recorded receive
  int64_t received = 0;   // late cells whose receive was recorded
};

// Of a message that nobody recorded and that lasts from the end of one worker's cell to the start of another's.
using Pair = std::pair<uint32_t, uint32_t>;                        // from, to
using WorkerAt = std::map<std::pair<int32_t, int32_t>, uint32_t>;  // by (replica, stage)
constexpr uint32_t kNone = CellTimes::kNone;

// Workers that an unrecorded message runs between; it waits for its sender's cell. kNone: none, or not known.
Pair pair_of(const CauseScene& scene, const WorkerAt& worker_at, uint32_t op) {
  const StepGraph& g = scene.graph;
  if (!is_message(g.kind[op]) || g.cell[op] != kNoCell || g.waits(op).size() != 1) return {kNone, kNone};
  const auto to = worker_at.find({std::max(g.dp(op), 0), g.stage(op)});
  return {scene.times.worker_of(g.waits(op).front()), to == worker_at.end() ? kNone : to->second};
}

class Delays {
 public:
  explicit Delays(const CauseScene& scene)
      : scene_(scene), g_(scene.graph), messages_(scene.trace, g_), counted_(counted_ops(g_, scene.counts)) {
    const auto worker_of = [&](uint32_t op) { return scene_.tells_delay(op) ? scene_.times.worker_of(op) : kNone; };
    RawValues<double> durations;
    delays_.arrange(
        counted_, scene_.times.workers().size(), worker_of,
        [&](size_t total) { delays_.all().resize(total), durations.resize(total); },
        [&](uint32_t op, size_t at) { delays_.all()[at] = g_.delay_ns[op], durations[at] = g_.dur_ns[op]; });
    cells_ = durations.size();
    if (cells_ < kLeastCells) return;
    find_own_sends(durations);
    if (sends_)
      delays_.arrange(
          counted_, scene_.times.workers().size(), worker_of, [&](size_t total) { delays_.all().resize(total); },
          [&](uint32_t op, size_t at) { delays_.all()[at] = delay_ns(op); });
    const std::vector<size_t> middle = middle_of(cells_);
    const std::vector<double> usual_cells = nth_values(durations, middle);
    durations = {};
    const std::vector<double> usual = nth_values(delays_.all(), {cells_ / 4, middle[0], middle[1]});
    cell_ns_ = (usual_cells[0] + usual_cells[1]) / 2;
    best_ns_ = std::max(0.0, usual[0]);
    usual_ns_ = (usual[1] + usual[2]) / 2;
    const std::vector<double> medians = delays_.take_medians();
    for (const double own : medians) worked_ += !std::isnan(own);
    for (uint32_t worker = 0; worker < medians.size() && worked_ > 1; ++worker)
      if (medians[worker] - usual_ns_ >= kLateWorker * cell_ns_)
        late_.emplace_back(worker, medians[worker] - usual_ns_);
    find_messages();
    count_late();
  }

  // Cells that start when an own send ends: the rank waits for its sends. Their part of the delays is no other's.
  void draft_blocking(std::vector<CauseDraft>& out) const {
    if (!sends_ || sends_->count < kLeastOneWay) return;
    CauseDraft draft;
    draft.cause.kind = CauseKind::kBlockingSends;
    draft.cause.count = sends_->count;
    draft.cause.of = static_cast<int64_t>(cells_);
    draft.cause.ranks = sends_->ranks;
    draft.cause.pause_ns = sends_->ns / static_cast<double>(sends_->count);
    draft.cause.certain = true;
    draft.without = [sends = sends_](uint32_t op, double&, double& delay) {
      if (const auto at = sends->blocked_ns.find(op); at != sends->blocked_ns.end())
        delay = std::max(0.0, delay - at->second);
    };
    out.push_back(std::move(draft));
  }

  // The first cell of a rank that waits for nobody, beside the same stage's of the other replicas: one that begins its
  // steps late does something before them.
  void draft_late_begins(std::vector<CauseDraft>& out) const {
    const auto& workers = scene_.times.workers();
    std::map<int32_t, std::vector<uint32_t>> by_stage;
    for (uint32_t w = 0; w < workers.size(); ++w) by_stage[workers[w].stage].push_back(w);
    std::vector<uint32_t> first(workers.size(), UINT32_MAX);  // operation, in the step looked at
    struct Begin {
      uint32_t op;
      double late_ns;
    };
    std::vector<std::vector<Begin>> late(workers.size());
    for (size_t s = 0; s < g_.steps.size(); ++s) {
      if (!scene_.counts[s]) continue;
      std::fill(first.begin(), first.end(), UINT32_MAX);
      for (uint32_t op = g_.steps[s].begin; op < g_.steps[s].end; ++op) {
        const uint32_t w = scene_.times.worker_of(op);
        if (w != kNone && g_.waits(op).empty() && (first[w] == UINT32_MAX || g_.start_ns[op] < g_.start_ns[first[w]]))
          first[w] = op;
      }
      for (const auto& [stage, peers] : by_stage) {
        std::vector<double> sorted;
        for (const uint32_t w : peers)
          if (first[w] != UINT32_MAX) sorted.push_back(g_.delay_ns[first[w]]);
        if (sorted.size() < 2) continue;
        std::sort(sorted.begin(), sorted.end());
        for (const uint32_t w : peers) {
          if (first[w] == UINT32_MAX) continue;
          const double own = g_.delay_ns[first[w]];
          const double others = median_of_others(
              sorted, static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), own) - sorted.begin()));
          if (own - others > kLateStart * cell_ns_) late[w].push_back({first[w], own - others});
        }
      }
    }
    for (uint32_t w = 0; w < workers.size(); ++w) {
      if (static_cast<int64_t>(late[w].size()) < kLeastOneWay) continue;
      CauseDraft draft;
      draft.cause.kind = CauseKind::kPauses;
      draft.cause.part = workers[w].part;
      draft.cause.ranks = 1;
      draft.cause.count = static_cast<int64_t>(late[w].size());
      draft.cause.of = static_cast<int64_t>(cells_);
      std::vector<Pause> pauses;
      std::map<uint32_t, double> less;
      for (const Begin& begin : late[w]) {
        draft.cause.pause_ns += begin.late_ns / static_cast<double>(late[w].size());
        less[begin.op] = begin.late_ns;
        if (g_.cell[begin.op] == kNoCell) continue;
        const int64_t start = scene_.trace.cells.start_ns[g_.cell[begin.op]];
        pauses.push_back({start - static_cast<int64_t>(begin.late_ns), start});
      }
      name_what_comes_first(std::move(pauses), draft.cause);
      draft.without = [less = std::move(less)](uint32_t op, double&, double& delay) {
        if (const auto at = less.find(op); at != less.end()) delay -= at->second;
      };
      out.push_back(std::move(draft));
    }
  }

  bool known() const { return cells_ >= kLeastCells; }
  const LateWorkers& late_workers() const { return late_; }

  // Late cells on most ranks, and too many for pauses.
  bool everywhere() const {
    int64_t count = 0, often = 0;
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker) {
      if (delays_.of(worker).empty()) continue;
      const int64_t own = late_of(worker);
      count += own;
      often += static_cast<double>(own) >= kRare * static_cast<double>(delays_.of(worker).size());
    }
    return often > 1 && 2 * often >= worked_ && static_cast<double>(count) >= kRare * static_cast<double>(cells_);
  }

  void draft_everywhere(std::vector<CauseDraft>& out) const {
    CauseDraft draft;
    draft.cause.kind = CauseKind::kLateStarts;
    draft.cause.of = static_cast<int64_t>(cells_);
    double worst = 0;
    const double limit = best_ns_ + kLateStart * cell_ns_;
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker) {
      const std::span<const double> delays = delays_.of(worker);
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
      draft.cause.count = draft.cause.of = static_cast<int64_t>(delays_.of(number).size());
      draft.cause.certain = nearly_all_late(delays_.of(number), by);
      draft.without = [&scene = scene_, less = shorter_messages(number, by), worker_at = worker_at_, number = number,
                       by = by](uint32_t op, double& dur, double& delay) {
        if (scene.times.worker_of(op) == number && !scene.graph.waits(op).empty()) delay = std::max(0.0, delay - by);
        if (less.empty() || !is_message(scene.graph.kind[op])) return;
        if (const auto of = less.find(pair_of(scene, *worker_at, op)); of != less.end())
          dur = std::max(std::min(dur, 0.0), dur - of->second);
      };
      out.push_back(std::move(draft));
    }
  }

  void draft_pauses(std::vector<CauseDraft>& out) const {
    CauseDraft pauses;
    pauses.cause.kind = CauseKind::kPauses;
    std::set<WorkerWay> linked;
    std::set<int32_t> parts;
    std::vector<WorkerWay> left;
    size_t told = 0;
    for (size_t way = 0; way < by_way_.size(); ++way) {
      const WorkerWay key(static_cast<uint32_t>(way / 2), way % 2 != 0);
      const Late& late = by_way_[way];
      if (late.count == 0) continue;
      if (is_message_late(key, late) || is_message_late_in_whole_steps(key, late)) {
        linked.insert(key);
        if (++told <= kMostWorkerCauses) draft_link({key}, false, out);
        continue;
      }
      left.push_back(key);
    }
    // Now and then late messages of a link: in the same direction of all replicas, for one of them shows too few.
    std::map<std::pair<int32_t, bool>, std::vector<WorkerWay>> links;
    for (const WorkerWay& key : left) links[{scene_.times.workers()[key.first].stage, key.second}].push_back(key);
    for (const auto& [link, keys] : links) {
      if (!is_message_tail(keys)) continue;
      linked.insert(keys.begin(), keys.end());
      if (++told <= kMostWorkerCauses) draft_link(keys, true, out);
    }
    std::set<std::pair<int32_t, int32_t>> senders;  // (from, to) of what late cells wait for
    for (const WorkerWay& key : left) {
      if (linked.contains(key)) continue;
      const Late& late = by_way_[way_of(key)];
      senders.emplace(sender_of(key), scene_.times.workers()[key.first].stage);
      pauses.cause.count += late.count;
      pauses.cause.pause_ns += late.ns;
      parts.insert(scene_.times.workers()[key.first].part);
    }
    pauses.cause.of = static_cast<int64_t>(cells_);
    pauses.cause.ranks = static_cast<int64_t>(parts.size());
    if (pauses.cause.count == 0) return;
    pauses.cause.pause_ns /= static_cast<double>(pauses.cause.count);
    if (parts.size() == 1) pauses.cause.part = *parts.begin();
    // Too few to tell, and nobody recorded messages: all late cells wait for the same stage, which may be it as well.
    if (parts.size() == 1 && senders.size() == 1 && senders.begin()->first != kUnknown && !messages_.any()) {
      std::tie(pauses.cause.from_stage, pauses.cause.stage) = *senders.begin();
      pauses.cause.guessed = true;
    }
    const bool rare = static_cast<double>(pauses.cause.count) <= kRare * static_cast<double>(cells_);
    if (rare) pauses.cause.at = same_places(linked);
    // Where micro-batches were not numbered, what a rank's first cell waits for is a guess.
    if (pauses.cause.part != kUnknown && scene_.trace.diagnostics.count("cells.schedule") == 0)
      find_what_comes_first(linked, pauses.cause);
    pauses.cause.collector =
        rare && parts.size() > 1 && pauses.cause.at.empty() && pauses.cause.pause_ns >= kLongPause * cell_ns_;
    pauses.without = [excess = excess(), linked, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!linked.contains({scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward}))
        delay -= excess(op);
    };
    out.push_back(std::move(pauses));
  }

 private:
  // Whether nearly all cells of a worker start late by half of what its median one does, or more: that is no chance.
  bool nearly_all_late(std::span<const double> delays, double by) const {
    const auto late = std::count_if(delays.begin(), delays.end(), [&](double ns) { return ns >= usual_ns_ + by / 2; });
    return late >= kLeastCertain && static_cast<double>(late) >= kEverywhere * static_cast<double>(delays.size());
  }

  // What a cell starts later than usual on its rank; 0 below the limit.
  std::function<double(uint32_t)> excess() const {
    return [&scene = scene_, late = std::map<uint32_t, double>(late_.begin(), late_.end()), usual = usual_ns_,
            limit = usual_ns_ + kLateStart * cell_ns_, sends = sends_](uint32_t op) {
      if (!scene.tells_delay(op)) return 0.0;
      const auto of = late.find(scene.times.worker_of(op));
      const double blocked = sends ? sends->of(op) : 0;
      const double delay = scene.graph.delay_ns[op] - blocked - (of == late.end() ? 0 : of->second);
      return delay > limit ? delay - usual : 0.0;
    };
  }

  // Own sends that were recorded, and the compute cells that began when one of them ended.
  struct OwnSends {
    std::map<uint32_t, double> blocked_ns;  // by operation: of its delay, an own send was under way
    int64_t count = 0, ranks = 0;
    double ns = 0;
    double of(uint32_t op) const {
      const auto at = blocked_ns.find(op);
      return at == blocked_ns.end() ? 0 : at->second;
    }
  };
  double delay_ns(uint32_t op) const { return g_.delay_ns[op] - (sends_ ? sends_->of(op) : 0); }

  // A send that does not block runs beside whatever the rank does: of cells that are late while one runs, few start
  // just when it ends. Where nearly all do, that is what they waited for.
  void find_own_sends(const RawValues<double>& durations) {
    if (g_.source != GraphSource::kComputeCells) return;
    struct Send {
      int32_t part, step;
      int64_t start_ns, end_ns;
      auto place() const { return std::pair(part, step); }
    };
    std::vector<Send> sends;
    const Cells& cells = scene_.trace.cells;
    for (size_t i = 0; i < cells.size(); ++i)
      if (cells.kind[i] == CellKind::kSendForward || cells.kind[i] == CellKind::kSendBackward)
        sends.push_back({cells.part[i], cells.step[i], cells.start_ns[i], cells.end_ns[i]});
    if (sends.empty()) return;
    std::sort(sends.begin(), sends.end(), [](const Send& a, const Send& b) {
      return std::tuple(a.part, a.step, a.end_ns, a.start_ns) < std::tuple(b.part, b.step, b.end_ns, b.start_ns);
    });
    RawValues<double> copy;
    copy.resize(durations.size());
    for (size_t i = 0; i < durations.size(); ++i) copy[i] = durations[i];
    const double cell_ns = nth_values(copy, {durations.size() / 2}).front();
    auto found = std::make_shared<OwnSends>();
    std::set<int32_t> ranks;
    double late_ns = 0;  // of cells that started while an own send ran or when it ended
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op) || g_.cell[op] == kNoCell || !(g_.delay_ns[op] > kLateStart * cell_ns)) return;
      const Cell cell = scene_.trace.cells.at(g_.cell[op]);
      const auto begin = cell.start_ns - static_cast<int64_t>(g_.delay_ns[op]);
      const auto slack = static_cast<int64_t>(kAtOnce * cell_ns);
      // The last send that ends by the start, and any that still runs then.
      auto at = std::partition_point(sends.begin(), sends.end(), [&](const Send& s) {
        return std::tuple(s.part, s.step, s.end_ns) <= std::tuple(cell.part, cell.step, cell.start_ns + slack);
      });
      if (at != sends.end() && at->place() == std::pair(cell.part, cell.step) && at->start_ns < cell.start_ns) {
        late_ns += g_.delay_ns[op];  // one runs on: nothing waits for it
        return;
      }
      if (at == sends.begin() || (--at)->place() != std::pair(cell.part, cell.step) || at->end_ns <= begin) return;
      late_ns += g_.delay_ns[op];
      if (cell.start_ns - at->end_ns > slack) return;
      const auto blocked = static_cast<double>(std::min(at->end_ns, cell.start_ns) - std::max(begin, at->start_ns));
      if (!(blocked > 0)) return;
      found->blocked_ns[op] = std::min(blocked, g_.delay_ns[op]);
      found->ns += found->blocked_ns[op];
      ++found->count;
      ranks.insert(cell.part);
    });
    found->ranks = static_cast<int64_t>(ranks.size());
    if (found->count >= kLeastOneWay && found->ns >= kByOwnSend * late_ns) sends_ = std::move(found);
  }

  void find_messages() {
    if (late_.empty() || g_.source != GraphSource::kComputeCells) return;
    for (uint32_t w = 0; w < scene_.times.workers().size(); ++w)
      (*worker_at_)[{scene_.times.workers()[w].dp, scene_.times.workers()[w].stage}] = w;
    std::map<Pair, std::vector<double>> all;
    scene_.each_op([&](uint32_t op, size_t) {
      if (const Pair pair = pair_of(scene_, *worker_at_, op); pair.first != kNone && pair.second != kNone)
        all[pair].push_back(g_.dur_ns[op]);
    });
    for (auto& [pair, durations] : all) message_ns_[pair] = median_of(std::move(durations));
  }

  // A message that nobody recorded lasts until its cell starts, and so holds what its rank is late. Clocks that were
  // tied by these very gaps deal that out to both directions, so what there and back take together tells it:
  //
  //     as stamped    there 4.2 ms, back 0.2       rank late by 4: there and back take 4.4 − 4 without, 0.2 each way
  //     tied by gaps  there 2.2 ms, back 2.2
  std::map<Pair, double> shorter_messages(uint32_t late, double by) const {
    std::map<Pair, double> less;
    for (const auto& [pair, there] : message_ns_) {
      if (pair.second != late || pair.first == late) continue;
      const auto back = message_ns_.find({late, pair.first});
      const double back_ns = back == message_ns_.end() ? 0 : back->second;
      const double usual = back == message_ns_.end() ? 0 : std::max(0.0, (there + back_ns - by) / 2);
      less[pair] = std::clamp(there - usual, 0.0, by);
      if (back != message_ns_.end()) less[back->first] = std::clamp(back_ns - usual, 0.0, by - less[pair]);
    }
    return less;
  }

  // Pauses of one rank that all stand at its first cell of a step lie between its steps: what it does there, by the
  // rows of kind "other" that were recorded.
  void find_what_comes_first(const std::set<WorkerWay>& but, Cause& cause) const {
    const Cells& cells = scene_.trace.cells;
    std::vector<int64_t> first(g_.steps.size(), INT64_MAX);
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] == cause.part && g_.cell[op] != kNoCell && is_compute(g_.kind[op]))
        first[s] = std::min(first[s], cells.start_ns[g_.cell[op]]);
    });
    const auto by = excess();
    std::vector<Pause> pauses;
    int64_t late = 0;
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] != cause.part || but.contains({scene_.times.worker_of(op), g_.kind[op] == CellKind::kForward}))
        return;
      const double ns = by(op);
      if (!(ns > 0)) return;
      ++late;
      if (g_.cell[op] == kNoCell || cells.start_ns[g_.cell[op]] != first[s]) return;
      pauses.push_back({first[s] - static_cast<int64_t>(ns), first[s]});
    });
    if (pauses.empty() || static_cast<double>(pauses.size()) < kEverywhere * static_cast<double>(late)) return;
    name_what_comes_first(std::move(pauses), cause);
  }

  // [from, to) before first cells of its steps, and the rows of kind "other" of that rank in it.
  struct Pause {
    int64_t from_ns, to_ns;
  };
  void name_what_comes_first(std::vector<Pause> pauses, Cause& cause) const {
    const Cells& cells = scene_.trace.cells;
    cause.first_of_step = true;
    cause.steps = std::count(scene_.counts.begin(), scene_.counts.end(), true);
    std::sort(pauses.begin(), pauses.end(), [](const Pause& a, const Pause& b) { return a.from_ns < b.from_ns; });
    std::map<std::string_view, double> names;
    double all = 0;
    for (const Pause& pause : pauses) all += static_cast<double>(pause.to_ns - pause.from_ns);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells.kind[i] != CellKind::kOther || cells.part[i] != cause.part) continue;
      auto at = std::partition_point(pauses.begin(), pauses.end(),
                                     [&](const Pause& p) { return p.to_ns <= cells.start_ns[i]; });
      for (; at != pauses.end() && at->from_ns < cells.end_ns[i]; ++at)
        names[scene_.trace.slice_name(cells.at(i))] +=
            static_cast<double>(std::min(at->to_ns, cells.end_ns[i]) - std::max(at->from_ns, cells.start_ns[i]));
    }
    for (const auto& [name, ns] : names)
      if (ns >= kWholeStep * all) cause.name = name;
  }

  // One late cell of each place, where nearly all late cells stand at places that are late in nearly every step; else
  // empty. A garbage collector knows no places.
  std::vector<uint32_t> same_places(const std::set<WorkerWay>& but) const {
    size_t steps = 0;
    for (size_t s = 0; s < g_.steps.size(); ++s) steps += scene_.counts[s];
    if (steps < kLeastSteps) return {};
    std::map<Place, std::vector<uint32_t>> late_at;
    const auto by = excess();
    scene_.each_op([&](uint32_t op, size_t) {
      if (scene_.tells_delay(op) && g_.cell[op] != kNoCell && by(op) > 0)
        late_at[{scene_.times.worker_of(op), g_.kind[op], g_.micro_batch[op], g_.chunk[op]}].push_back(g_.cell[op]);
    });
    size_t all = 0, fixed = 0;
    std::vector<std::pair<size_t, uint32_t>> places;  // late steps, a cell
    for (const auto& [place, cells] : late_at) {
      if (but.contains({std::get<0>(place), std::get<1>(place) == CellKind::kForward})) continue;
      all += cells.size();
      if (static_cast<double>(cells.size()) < kEverywhere * static_cast<double>(steps)) continue;
      fixed += cells.size();
      places.emplace_back(cells.size(), cells.front());
    }
    if (static_cast<double>(fixed) < kEverywhere * static_cast<double>(all)) return {};
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<uint32_t> at;
    for (const auto& [count, cell] : places) at.push_back(cell);
    return at;
  }

  void count_late() {
    const double limit = usual_ns_ + kLateStart * cell_ns_;
    std::vector<double> late_by(delays_.keys(), 0);  // by worker
    for (const auto& [worker, ns] : late_) late_by[worker] = ns;
    by_way_.resize(2 * delays_.keys());
    const OpBlocks blocks(counted_, by_way_.size());
    std::vector<Late> of_block(blocks.size() * by_way_.size());
    blocks.each([&](size_t b, uint32_t op) {
      if (!scene_.tells_delay(op)) return;
      const uint32_t worker = scene_.times.worker_of(op);
      Late& late = of_block[b * by_way_.size() + way_of({worker, g_.kind[op] == CellKind::kForward})];
      ++late.of;
      const double delay = delay_ns(op) - late_by[worker];  // as excess()
      if (!(delay > limit)) return;
      ++late.count;
      late.ns += delay - usual_ns_;
      if (const auto under_way = messages_.under_way_ns(op, delay - usual_ns_))
        late.message_ns += *under_way, ++late.received;
    });
    for (size_t i = 0; i < of_block.size(); ++i) {
      Late& late = by_way_[i % by_way_.size()];
      late.of += of_block[i].of;
      late.count += of_block[i].count;
      late.ns += of_block[i].ns;
      late.message_ns += of_block[i].message_ns;
      late.received += of_block[i].received;
    }
  }

  int64_t late_of(uint32_t worker) const {
    return by_way_[way_of({worker, false})].count + by_way_[way_of({worker, true})].count;
  }

  // Late in one direction alone, and often: the message, where nobody recorded it.
  bool is_message_late(const WorkerWay& key, const Late& late) const {
    if (g_.source != GraphSource::kComputeCells) return false;
    const Late& other = by_way_[way_of({key.first, !key.second})];
    if (other.count * 5 > other.of || late.count < kLeastOneWay || sender_of(key) == kUnknown ||
        static_cast<double>(late.count) < kMostOneWay * static_cast<double>(late.of))
      return false;
    // Of few micro-batches the first one alone is many: a slow link makes no difference between them.
    const Places places = places_of({key});
    return static_cast<double>(places.late.size()) >= kWholeStep * static_cast<double>(places.all.size());
  }

  // The stage that cells of this direction get their input from; kUnknown where there is none.
  int32_t sender_of(const WorkerWay& key) const {
    const int32_t from = scene_.times.workers()[key.first].stage + (key.second ? -1 : 1);
    return from >= 0 && from < scene_.times.stages() ? from : kUnknown;
  }
  Late sum_of(const std::vector<WorkerWay>& keys) const {
    Late sum;
    for (const WorkerWay& key : keys) {
      const Late& late = by_way_[way_of(key)];
      sum.count += late.count, sum.of += late.of, sum.ns += late.ns;
      sum.message_ns += late.message_ns, sum.received += late.received;
    }
    return sum;
  }
  // Of steps: where cells of these directions stand that tell their delay, and where those that are late do.
  struct Places {
    std::set<Place> all, late;
  };
  Places places_of(const std::vector<WorkerWay>& keys) const {
    const std::set<WorkerWay> ways(keys.begin(), keys.end());
    Places places;
    const auto by = excess();
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op)) return;
      const WorkerWay key(scene_.times.worker_of(op), g_.kind[op] == CellKind::kForward);
      if (!ways.contains(key)) return;
      const Place place{key.first, g_.kind[op], g_.micro_batch[op], g_.chunk[op]};
      places.all.insert(place);
      if (by(op) > 0) places.late.insert(place);
    });
    return places;
  }

  struct StepLate {
    int64_t count = 0, of = 0;
    double ns = 0;
  };
  std::vector<StepLate> late_by_step(const WorkerWay& key) const {
    std::vector<StepLate> steps(g_.steps.size());
    const auto by = excess();
    scene_.each_op([&](uint32_t op, size_t s) {
      if (!scene_.tells_delay(op) || scene_.times.worker_of(op) != key.first ||
          (g_.kind[op] == CellKind::kForward) != key.second)
        return;
      ++steps[s].of;
      if (const double ns = by(op); ns > 0) ++steps[s].count, steps[s].ns += ns;
    });
    return steps;
  }

  // Not often over the run, but in some steps most of them are, and hardly any in the others: the link is slow then.
  // One by chance comes at any step.
  bool is_message_late_in_whole_steps(const WorkerWay& key, const Late& late) const {
    if (g_.source != GraphSource::kComputeCells || late.count < kLeastOneWay) return false;
    if (sender_of(key) == kUnknown) return false;
    const Late& other = by_way_[way_of({key.first, !key.second})];
    if (5 * other.count > late.count) return false;  // the host stops whatever comes
    if (messages_.any() && late.received > 0 && late.message_ns < kByMessage * late.ns) return false;
    int64_t in_whole = 0, whole = 0;
    for (const StepLate& step : late_by_step(key)) {
      if (step.count < kLeastOneWay || static_cast<double>(step.count) < kWholeStep * static_cast<double>(step.of))
        continue;
      in_whole += step.count, ++whole;
    }
    return whole > 0 && static_cast<double>(in_whole) >= kEverywhere * static_cast<double>(late.count);
  }

  // Rarely late, and it is the message: its recorded receive was under way, or, where nobody recorded messages, only
  // cells of the direction that it comes from are late, more often than pauses of a host would hit them alone.
  bool is_message_tail(const std::vector<WorkerWay>& keys) const {
    const Late late = sum_of(keys);
    if (g_.source != GraphSource::kComputeCells || late.count < kLeastOneWay) return false;
    if (sender_of(keys.front()) == kUnknown) return false;
    // What is late at the same places of every step is the order of work, or the loop: a link knows no places.
    const Places places = places_of(keys);
    const auto steps = std::count(scene_.counts.begin(), scene_.counts.end(), true);
    if (2 * late.count >= steps * static_cast<int64_t>(places.late.size())) return false;
    if (messages_.any()) return late.received > 0 && late.message_ns >= kByMessage * late.ns;
    std::vector<WorkerWay> back;
    for (const WorkerWay& key : keys) back.emplace_back(key.first, !key.second);
    const Late other = sum_of(back);
    if (late.of == 0 || other.of == 0) return false;
    // At least so many of all late cells in this direction, by a binomial distribution.
    const double own = static_cast<double>(late.of) / static_cast<double>(late.of + other.of);
    const int64_t all = late.count + other.count;
    double chance = 0;
    for (int64_t k = late.count; k <= all; ++k) {
      const auto n = static_cast<double>(all), x = static_cast<double>(k);
      chance += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(own) +
                         (n - x) * std::log1p(-own));
    }
    return chance * static_cast<double>(by_way_.size()) < kChanceOneWay;
  }

  // The messages that cells of these directions wait for: the same two stages, in one replica or in several.
  void draft_link(const std::vector<WorkerWay>& keys, bool tail, std::vector<CauseDraft>& out) const {
    const Late late = sum_of(keys);
    WorkerWay worst = keys.front();
    for (const WorkerWay& key : keys)
      if (by_way_[way_of(key)].ns > by_way_[way_of(worst)].ns) worst = key;
    const CellTimes::Worker& worker = scene_.times.workers()[worst.first];
    CauseDraft link;
    link.cause.kind = tail ? CauseKind::kMessageTail : CauseKind::kSlowLink;
    link.cause.guessed = tail && !messages_.any();
    if (tail) {
      link.cause.count = late.count;
      link.cause.of = late.of;
      link.cause.part = worker.part;
      link.cause.pause_ns = late.ns / static_cast<double>(late.count);
    }
    link.cause.from_stage = sender_of(worst);
    link.cause.stage = worker.stage;
    if (g_.dp_count > 1 && keys.size() == 1) link.cause.dp = worker.dp;
    link.cause.times = {{CellKind::kOther, late.ns / static_cast<double>(late.count), 0}};
    if (!tail) {
      for (const StepLate& step : late_by_step(worst)) {
        link.cause.slowest_in +=
            step.of > 0 && static_cast<double>(step.count) >= kWholeStep * static_cast<double>(step.of);
        link.cause.steps += step.of > 0;
      }
      // Slow in whole steps: how much that costs differs from step to step, that it is so does not.
      link.cause.certain = link.cause.slowest_in < link.cause.steps && late.count >= kLeastCertain;
    }
    link.without = [excess = excess(), ways = std::set<WorkerWay>(keys.begin(), keys.end()), &scene = scene_](
                       uint32_t op, double&, double& delay) {
      if (ways.contains({scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward})) delay -= excess(op);
    };
    out.push_back(std::move(link));
  }

  const CauseScene& scene_;
  const StepGraph& g_;
  ReceivedMessages messages_;
  std::vector<OpStretch> counted_;
  OpValues delays_;           // by worker; none: none of its cells tells any
  int64_t worked_ = 0;        // workers that have some
  std::vector<Late> by_way_;  // by way_of()
  LateWorkers late_;
  size_t cells_ = 0;
  double cell_ns_ = 0, best_ns_ = 0, usual_ns_ = 0;  // median cell; lower quartile and median of delays
  std::shared_ptr<WorkerAt> worker_at_ = std::make_shared<WorkerAt>();
  std::map<Pair, double> message_ns_;      // medians
  std::shared_ptr<const OwnSends> sends_;  // empty: ranks do not wait for them, or nobody recorded them
};

}  // namespace

LateWorkers draft_delays(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const Delays delays(scene);
  if (!delays.known()) return {};
  delays.draft_blocking(out);
  delays.draft_late_begins(out);
  if (delays.everywhere()) {
    delays.draft_everywhere(out);
    return {};
  }
  delays.draft_late_workers(out);
  delays.draft_pauses(out);
  return delays.late_workers();
}

}  // namespace stageline
