// Causes in when compute starts: late ranks, pauses, and late starts everywhere.
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
#include "diagnosis/causes/own_sends.h"
#include "diagnosis/causes/received_messages.h"
#include "diagnosis/causes/step_begins.h"
#include "model/stage_costs.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

// Least delay of a late worker's median cell, as a share of the median cell's time.
constexpr double kLateWorker = 0.05;
constexpr double kRare = 0.1;       // most of the cells that pauses may hit; what is late more often is no pause
constexpr double kLongPause = 0.5;  // least pause of a garbage collector, as a share of the median cell
constexpr double kFarLate = 10;     // a single start that is this many median cells late is an event by itself
// Least share of late cells of one direction of a worker from which its message is at fault.
constexpr double kMostOneWay = 0.3;
constexpr double kStandsOut = 2;  // delays that are this many times the next shorter one are of another kind
constexpr size_t kLeastCells = 4;
// Share of the delays of one direction during which their messages must have been under way.
constexpr double kByMessage = 0.8;
constexpr double kChanceOneWay = 0.01;  // most chance that a host's pauses would all hit cells of one direction
// Least share of the steps in which a place is late, and of all late cells that such places hold.
constexpr double kEverywhere = 0.8;
constexpr int64_t kLeastCertain = 16;  // late cells of a rank below which they may be chance
constexpr size_t kLeastSteps = 3;      // with fewer steps, nothing can be said of every step
// Least share of a direction's cells in a step that are late when the link is slow in that step.
constexpr double kWholeStep = 0.5;

using WorkerWay = std::pair<uint32_t, bool>;                     // worker, forward
using Place = std::tuple<uint32_t, CellKind, int32_t, int32_t>;  // worker, kind, micro-batch, chunk

// How much of a start's delay beyond the usual one (`more`) is due to its rank's late launching, whose median is `by`.
// Launches differ, so it is all of it up to kMostOfUsual × `by`; beyond that, only `by` is, and the rest is a pause.
double launched_late(double by, double more) { return more <= kMostOfUsual * by ? std::max(0.0, more) : by; }

size_t way_of(const WorkerWay& key) { return 2 * static_cast<size_t>(key.first) + (key.second ? 1 : 0); }

struct Late {
  int64_t count = 0, of = 0;
  double ns = 0, most_ns = 0;
  double message_ns = 0;  // the part of ns during which the message was still under way, by its recorded receive
  int64_t received = 0;   // late cells whose receive was recorded
};

// The two workers of a message that nobody recorded. Such a message lasts from the end of one's cell to the start of
// the other's.
using Pair = std::pair<uint32_t, uint32_t>;                        // from, to
using WorkerAt = std::map<std::pair<int32_t, int32_t>, uint32_t>;  // key: replica, stage
constexpr uint32_t kNone = CellTimes::kNone;

// The workers between which an unrecorded message runs; it waits for its sender's cell. {kNone, kNone}: not such a
// message; kNone as the second: unknown.
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
    const std::vector<size_t> middle = middle_of(cells_);
    const std::vector<double> usual_cells = nth_values(durations, middle);
    cell_ns_ = (usual_cells[0] + usual_cells[1]) / 2;
    durations = {};
    sends_ = find_own_sends(scene, cell_ns_);
    if (sends_)
      delays_.arrange(
          counted_, scene_.times.workers().size(), worker_of, [&](size_t total) { delays_.all().resize(total); },
          [&](uint32_t op, size_t at) { delays_.all()[at] = delay_ns(op); });
    const std::vector<double> usual = nth_values(delays_.all(), {cells_ / 4, middle[0], middle[1]});
    best_ns_ = std::max(0.0, usual[0]);
    usual_ns_ = (usual[1] + usual[2]) / 2;
    const std::vector<double> medians = delays_.take_medians();
    for (const double own : medians) worked_ += !std::isnan(own);
    for (uint32_t worker = 0; worker < medians.size() && worked_ > 1; ++worker)
      if (medians[worker] - usual_ns_ >= kLateWorker * cell_ns_)
        late_.emplace_back(worker, medians[worker] - usual_ns_);
    if (!late_.empty()) compare_late_workers();
    find_messages();
    count_late();
    ask_hosts();
  }

  const std::shared_ptr<const OwnSends>& own_sends() const { return sends_; }
  double cell_ns() const { return cell_ns_; }
  size_t cells() const { return cells_; }

  bool known() const { return cells_ >= kLeastCells; }
  const LateWorkers& late_workers() const { return late_; }
  // Late workers whose messages may be at fault as well; without those whose only late direction receives no messages.
  LateWorkers late_receivers() const {
    LateWorkers late = late_;
    std::erase_if(late, [&](const auto& one) {
      const auto way = one_way_.find(one.first);
      return way != one_way_.end() && sender_of({one.first, way->second.forward}) == kUnknown;
    });
    return late;
  }

  // Whether hosts start work late, judged by cells that wait only for their own rank: no message can delay these.
  //
  //     F of stage 1, waits for stage 0    late            a host that stops hits both kinds alike; where only the
  //     B of stage 2, waits for its own F  never late      first kind is late, it is what comes from other ranks
  enum class Hosts : uint8_t { kUnknown, kLate, kPrompt };

  // Whether cells are late on most ranks, and too often for pauses.
  bool everywhere() const {
    if (hosts_ == Hosts::kPrompt && few_links_are_late()) return false;
    int64_t count = 0, often = 0;
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker) {
      if (delays_.of(worker).empty()) continue;
      const int64_t own = late_of(worker);
      count += own;
      often += static_cast<double>(own) >= kRare * static_cast<double>(delays_.of(worker).size());
    }
    return often > 1 && 2 * often >= worked_ && static_cast<double>(count) >= kRare * static_cast<double>(cells_);
  }

  // For late starts everywhere: the delay above which delays are of another kind than the rest. These must be few cells
  // that hold half of all that is lost, with a gap of a factor of two down to the next one. Returns ∞ where there are
  // none.
  //
  //     cells  ▁▁▂▂▂▃▃                █ █    a busy host makes many cells a little late, a collector a few by much
  //     late by 1 … 12 ms       60 … 300 ms
  double standing_out_above_ns() const {
    const double limit = best_ns_ + kLateStart * cell_ns_;
    std::vector<double> late;
    double all_ns = 0;
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker)
      for (const double ns : delays_.of(worker))
        if (ns > limit) late.push_back(ns - best_ns_), all_ns += ns - best_ns_;
    std::sort(late.begin(), late.end(), std::greater<>());
    const auto most = static_cast<size_t>(kRare * static_cast<double>(cells_));
    double above_ns = 0;
    for (size_t i = 0; i + 1 < late.size() && i < most; ++i) {
      above_ns += late[i];
      if (i + 1 >= kLeastCells && late[i] >= kStandsOut * late[i + 1] && late[i] >= kLongPause * cell_ns_ &&
          2 * above_ns >= all_ns)
        return best_ns_ + (late[i] + late[i + 1]) / 2;
    }
    return INFINITY;
  }

  // Drafts a cause for the pauses longer than `above_ns`, on ranks whose other starts are late as well, but by less.
  void draft_standing_out(double above_ns, std::vector<CauseDraft>& out) const {
    CauseDraft draft;
    draft.cause.kind = CauseKind::kPauses;
    draft.cause.of = static_cast<int64_t>(cells_);
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker) {
      int64_t count = 0;
      for (const double ns : delays_.of(worker)) {
        if (ns <= above_ns) continue;
        ++count;
        draft.cause.pause_ns += ns - usual_ns_;
      }
      if (count == 0) continue;
      draft.cause.part = draft.cause.ranks == 0 ? scene_.times.workers()[worker].part : kUnknown;
      draft.cause.count += count;
      ++draft.cause.ranks;
    }
    draft.cause.pause_ns /= static_cast<double>(draft.cause.count);
    draft.cause.collector = draft.cause.ranks > 1;
    draft.without = [&scene = scene_, above_ns, usual = usual_ns_](uint32_t op, double&, double& delay) {
      if (delay > above_ns && scene.tells_delay(op)) delay = usual;
    };
    out.push_back(std::move(draft));
  }

  // Drafts a cause for late starts of at most `above_ns`.
  void draft_everywhere(double above_ns, std::vector<CauseDraft>& out) const {
    CauseDraft draft;
    draft.cause.kind = CauseKind::kLateStarts;
    draft.cause.guessed = hosts_ == Hosts::kUnknown && !messages_.any();
    draft.cause.hosts_prompt = hosts_ == Hosts::kPrompt;
    draft.cause.of = static_cast<int64_t>(cells_);
    double worst = 0;
    const double limit = best_ns_ + kLateStart * cell_ns_;
    for (uint32_t worker = 0; worker < delays_.keys(); ++worker) {
      const std::span<const double> delays = delays_.of(worker);
      if (delays.empty()) continue;
      int64_t count = 0;
      for (const double ns : delays) {
        if (ns <= limit || ns > above_ns) continue;
        ++count;
        draft.cause.pause_ns += ns - best_ns_;
      }
      draft.cause.count += count;
      draft.cause.ranks += count > 0;
      const double share = static_cast<double>(count) / static_cast<double>(delays.size());
      if (share <= worst) continue;
      worst = draft.cause.ratio = share;  // that of the worst worker
      draft.cause.part = scene_.times.workers()[worker].part;
    }
    if (draft.cause.count == 0) return;
    draft.cause.pause_ns /= static_cast<double>(draft.cause.count);
    draft.without = [&scene = scene_, limit, above_ns, best = best_ns_](uint32_t op, double&, double& delay) {
      if (delay > limit && delay <= above_ns && scene.tells_delay(op)) delay = best;
    };
    out.push_back(std::move(draft));
  }

  // `begins` holds, for workers that begin their steps just as late as other cells, the world without that.
  void draft_late_workers(const std::map<uint32_t, CauseWorld>& begins, std::vector<CauseDraft>& out) const {
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
      const auto way = one_way_.find(number);
      const bool both = way == one_way_.end();
      const std::span<const double> delays = both ? delays_.of(number) : way->second.delays;
      if (!both) draft.cause.cell_kind = way->second.forward ? CellKind::kForward : CellKind::kBackward;
      draft.cause.count = draft.cause.of = static_cast<int64_t>(delays.size());
      draft.cause.certain = nearly_all_late(delays, by);
      draft.without = [&scene = scene_, less = shorter_messages(number, by), worker_at = worker_at_, number = number,
                       by = by, usual = usual_ns_, both, forward = !both && way->second.forward,
                       begin = begins.contains(number) ? begins.at(number) : CauseWorld{}](uint32_t op, double& dur,
                                                                                           double& delay) {
        if (begin) begin(op, dur, delay);
        if (scene.times.worker_of(op) == number && !scene.graph.waits(op).empty() &&
            (both || forward == (scene.graph.kind[op] == CellKind::kForward)))
          delay = std::max(0.0, delay - launched_late(by, delay - usual));
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
    // A link is slow in all replicas or in one; workers that wait for the same link are one cause.
    using Links = std::map<std::pair<int32_t, bool>, std::vector<WorkerWay>>;
    const auto link_of = [&](const WorkerWay& key) {
      return std::pair(scene_.times.workers()[key.first].stage, key.second);
    };
    Links slow_links;
    for (size_t way = 0; way < by_way_.size(); ++way) {
      const WorkerWay key(static_cast<uint32_t>(way / 2), way % 2 != 0);
      const Late& late = by_way_[way];
      if (late.count == 0) continue;
      if (is_message_late(key, late) || is_message_late_in_whole_steps(key, late))
        slow_links[link_of(key)].push_back(key);
      else
        left.push_back(key);
    }
    for (auto& [link, keys] : slow_links) {
      for (const WorkerWay& key : left)
        if (link_of(key) == link && by_way_[way_of(key)].count >= kLeastLateCells) keys.push_back(key);
      linked.insert(keys.begin(), keys.end());
      if (++told <= kMostWorkerCauses) draft_link(keys, false, out);
    }
    std::erase_if(left, [&](const WorkerWay& key) { return linked.contains(key); });
    // Links whose messages are late now and then are looked for over all replicas, because one replica shows too few.
    Links links;
    for (const WorkerWay& key : left) links[link_of(key)].push_back(key);
    const auto tries = static_cast<double>(std::count_if(
        links.begin(), links.end(), [&](const auto& entry) { return sum_of(entry.second).count >= kLeastLateCells; }));
    for (const auto& [link, keys] : links) {
      if (!is_message_tail(keys, tries)) continue;
      linked.insert(keys.begin(), keys.end());
      if (++told <= kMostWorkerCauses) draft_link(keys, !comes_by_steps(keys), out);
    }
    // Where hosts are prompt, a link's messages are at fault even if the tests above did not find it, as where both
    // directions of a link are late now and then, or always the same places.
    if (hosts_ == Hosts::kPrompt && !messages_.any())
      for (const auto& [link, keys] : links) {
        if (linked.contains(keys.front()) || sum_of(keys).count < kLeastCertain || sender_of(keys.front()) == kUnknown)
          continue;
        // A rank whose cells are late whatever they wait for is at fault itself, even if other ranks' hosts are prompt.
        if (5 * sum_of(other_ways(keys)).count > sum_of(keys).count) continue;
        linked.insert(keys.begin(), keys.end());
        if (++told <= kMostWorkerCauses) draft_link(keys, false, out);
      }
    std::set<std::pair<int32_t, int32_t>> senders;  // (from, to) of the inputs of late cells
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
    // There are too few late cells to tell host from message, and nobody recorded messages. Where all wait for the same
    // stage, or two stages for each other, their messages may be at fault as well.
    const bool two_ways = senders.size() == 2 && senders.begin()->first == senders.rbegin()->second &&
                          senders.begin()->second == senders.rbegin()->first;
    if ((senders.size() == 1 || two_ways) && senders.begin()->first != kUnknown && !messages_.any()) {
      std::tie(pauses.cause.from_stage, pauses.cause.stage) = *senders.begin();
      pauses.cause.guessed = true;
      pauses.cause.both_ways = two_ways;
    }
    if (pauses.cause.count < kLeastLateCells) {
      pauses.cause.certain = pauses.cause.pause_ns >= kFarLate * cell_ns_;
      scene_.each_op([&, by = excess()](uint32_t op, size_t s) {
        if (by(op) > 0) pauses.cause.at_steps.push_back(g_.steps[s].step);
      });
    }
    const bool rare = static_cast<double>(pauses.cause.count) <= kRare * static_cast<double>(cells_);
    if (rare) pauses.cause.at = same_places(linked);
    // Where micro-batches were not numbered, it is a guess what a rank's first cell waits for.
    if (pauses.cause.part != kUnknown && scene_.trace.diagnostics.count("cells.schedule") == 0)
      find_what_comes_first(linked, pauses.cause);
    pauses.cause.collector = rare && parts.size() > 1 && (senders.size() > 2 || scene_.times.stages() == 1) &&
                             pauses.cause.at.empty() && pauses.cause.pause_ns >= kLongPause * cell_ns_;
    pauses.without = [excess = excess(), linked, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!linked.contains({scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward}))
        delay -= excess(op);
    };
    out.push_back(std::move(pauses));
  }

 private:
  // Whether at most half of the links (by direction) are late, or there is only one pair of stages: then they can be
  // named.
  bool few_links_are_late() const {
    if (scene_.times.stages() == 2) return true;
    std::map<std::pair<int32_t, bool>, std::vector<WorkerWay>> links;
    for (size_t way = 0; way < by_way_.size(); ++way) {
      const WorkerWay key(static_cast<uint32_t>(way / 2), way % 2 != 0);
      if (by_way_[way].of > 0 && sender_of(key) != kUnknown)
        links[{scene_.times.workers()[key.first].stage, key.second}].push_back(key);
    }
    const auto late = std::count_if(links.begin(), links.end(), [&](const auto& entry) {
      const Late sum = sum_of(entry.second);
      return static_cast<double>(sum.count) >= kRare * static_cast<double>(sum.of);
    });
    return 2 * late <= static_cast<int64_t>(links.size());
  }

  // Whether nearly all cells of a worker are late by at least half of its median delay; that is not chance.
  bool nearly_all_late(std::span<const double> delays, double by) const {
    const auto late = std::count_if(delays.begin(), delays.end(), [&](double ns) { return ns >= usual_ns_ + by / 2; });
    return late >= kLeastCertain && static_cast<double>(late) >= kEverywhere * static_cast<double>(delays.size());
  }

  // For each direction in which a worker is late: by how much its cells start late.
  std::map<WorkerWay, double> by_late_way() const {
    std::map<WorkerWay, double> by;
    for (const auto& [worker, ns] : late_)
      for (const bool forward : {false, true})
        if (const auto way = one_way_.find(worker); way == one_way_.end() || way->second.forward == forward)
          by[{worker, forward}] = ns;
    return by;
  }

  // Drops late workers where the other ranks are late by half as much or more, and finds in which directions the
  // remaining ones are late: forwards, backwards, or both. A message that nobody recorded lasts until its cell starts,
  // so other ranks' lateness shows only in cells that wait for their own rank alone:
  //
  //     hosts are late by 4 ms everywhere     stage 3, B after its own F      4 ms: seen
  //                                           stage 1, B after stage 2's      in the message
  void compare_late_workers() {
    struct Starts {
      std::vector<double> way[2], alone;  // delays by direction; delays of cells that wait for their own rank alone
    };
    std::map<uint32_t, Starts> of;
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op)) return;
      Starts& starts = of[scene_.times.worker_of(op)];
      starts.way[g_.kind[op] == CellKind::kForward].push_back(delay_ns(op));
      if (waits_alone(op)) starts.alone.push_back(delay_ns(op));
    });
    std::erase_if(late_, [&](const auto& late) {
      std::vector<double> others;
      for (const auto& [worker, starts] : of)
        if (worker != late.first) others.insert(others.end(), starts.alone.begin(), starts.alone.end());
      return static_cast<int64_t>(others.size()) >= kLeastCertain &&
             median_of(std::move(others)) - usual_ns_ >= late.second / 2;
    });
    for (auto& [worker, by] : late_) {
      Starts& starts = of[worker];
      if (starts.way[0].size() < kLeastCells || starts.way[1].size() < kLeastCells) continue;
      const double backward = median_of(starts.way[0]) - usual_ns_, forward = median_of(starts.way[1]) - usual_ns_;
      if (std::min(backward, forward) >= kLateWorker * cell_ns_) continue;
      by = std::max(backward, forward);
      one_way_[worker] = {forward > backward, std::move(starts.way[forward > backward])};
    }
  }

  // Whether a cell waits for its own rank alone, so that no message can delay it.
  bool waits_alone(uint32_t op) const {
    const std::span<const uint32_t> waits = g_.waits(op);
    return std::all_of(waits.begin(), waits.end(),
                       [&](uint32_t on) { return g_.part[on] == g_.part[op] && !is_message(g_.kind[on]); });
  }

  // Returns a function: how much later than usual for its rank a cell starts. It gives 0 below the limit, and for
  // delays far beyond those of usual steps.
  std::function<double(uint32_t)> excess() const {
    return [&scene = scene_, late = by_late_way(), usual = usual_ns_, limit = usual_ns_ + kLateStart * cell_ns_,
            sends = sends_, most = kMostOfUsual * most_ns_](uint32_t op) {
      if (!scene.tells_delay(op)) return 0.0;
      const auto of = late.find({scene.times.worker_of(op), scene.graph.kind[op] == CellKind::kForward});
      const double blocked = sends ? sends->blocked_by(op) : 0;
      double delay = scene.graph.delay_ns[op] - blocked;
      if (of != late.end()) delay -= launched_late(of->second, delay - usual);
      return delay > limit && delay - usual <= most ? delay - usual : 0.0;
    };
  }

  double delay_ns(uint32_t op) const { return g_.delay_ns[op] - (sends_ ? sends_->blocked_by(op) : 0); }

  void find_messages() {
    if (late_.empty() || g_.source != GraphSource::kComputeCells || g_.messages_recorded) return;
    for (uint32_t w = 0; w < scene_.times.workers().size(); ++w)
      (*worker_at_)[{scene_.times.workers()[w].dp, scene_.times.workers()[w].stage}] = w;
    std::map<Pair, std::vector<double>> all;
    scene_.each_op([&](uint32_t op, size_t) {
      if (const Pair pair = pair_of(scene_, *worker_at_, op); pair.first != kNone && pair.second != kNone)
        all[pair].push_back(g_.dur_ns[op]);
    });
    for (auto& [pair, durations] : all) message_ns_[pair] = median_of(std::move(durations));
  }

  // A message that nobody recorded lasts until its cell starts, and so includes the delay of a late rank. Clocks that
  // were aligned by these very gaps share that delay out to both directions, so it is taken from the sum of both:
  //
  //     as stamped    there 4.2 ms, back 0.2       rank late by 4: there and back take 4.4 − 4 without, 0.2 each way
  //     tied by gaps  there 2.2 ms, back 2.2
  std::map<Pair, double> shorter_messages(uint32_t late, double by) const {
    std::map<Pair, double> less;
    for (const auto& [pair, there] : message_ns_) {
      if (pair.second != late || pair.first == late) continue;
      const auto& workers = scene_.times.workers();
      const bool forward = workers[pair.first].stage < workers[pair.second].stage;
      if (const auto way = one_way_.find(late); way != one_way_.end() && way->second.forward != forward) continue;
      const auto back = message_ns_.find({late, pair.first});
      const double back_ns = back == message_ns_.end() ? 0 : back->second;
      const double usual = back == message_ns_.end() ? 0 : std::max(0.0, (there + back_ns - by) / 2);
      less[pair] = std::clamp(there - usual, 0.0, by);
      if (back != message_ns_.end()) less[back->first] = std::clamp(back_ns - usual, 0.0, by - less[pair]);
    }
    return less;
  }

  // Where nearly all pauses of one rank are at its first cell of a step, they lie between its steps. Rows of kind
  // "other" that were recorded there say what it does.
  void find_what_comes_first(const std::set<WorkerWay>& but, Cause& cause) const {
    const Cells& cells = scene_.trace.cells;
    std::vector<int64_t> first(g_.steps.size(), INT64_MAX);
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] == cause.part && g_.cell[op] != kNoCell && is_compute(g_.kind[op]))
        first[s] = std::min(first[s], cells.start_ns[g_.cell[op]]);
    });
    const auto by = excess();
    std::vector<BeforeStep> pauses;
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
    name_what_comes_first(scene_, std::move(pauses), cause);
  }

  // Returns one late cell for each place, where nearly all late cells are at places that are late in nearly every step;
  // otherwise empty. A garbage collector knows no places.
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
    std::vector<std::pair<size_t, uint32_t>> places;  // number of late steps, a cell
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

  void ask_hosts() {
    // Hosts are prompt if cells that wait for their own rank are late less than this share as often as others.
    constexpr double kPrompt = 0.25;
    const double limit = usual_ns_ + kLateStart * cell_ns_;
    Late own, others;
    scene_.each_op([&](uint32_t op, size_t) {
      if (!scene_.tells_delay(op)) return;
      Late& late = waits_alone(op) ? own : others;
      ++late.of;
      late.count += delay_ns(op) > limit;
    });
    if (own.of < kLeastCertain || others.count < kLeastCertain) return;
    const auto share = [](const Late& late) { return static_cast<double>(late.count) / static_cast<double>(late.of); };
    hosts_ = share(own) < kPrompt * share(others) ? Hosts::kPrompt : Hosts::kLate;
  }

  void count_late() {
    const double limit = usual_ns_ + kLateStart * cell_ns_;
    by_way_.resize(2 * delays_.keys());
    std::vector<double> late_by(by_way_.size(), 0);
    for (const auto& [way, ns] : by_late_way()) late_by[way_of(way)] = ns;
    const OpBlocks blocks(counted_, by_way_.size());
    std::vector<Late> of_block(blocks.size() * by_way_.size());
    blocks.each([&](size_t b, uint32_t op) {
      if (!scene_.tells_delay(op)) return;
      const uint32_t worker = scene_.times.worker_of(op);
      const size_t way = way_of({worker, g_.kind[op] == CellKind::kForward});
      Late& late = of_block[b * by_way_.size() + way];
      ++late.of;
      double delay = delay_ns(op);  // the same as in excess()
      if (late_by[way] > 0) delay -= launched_late(late_by[way], delay - usual_ns_);
      if (!(delay > limit)) return;
      ++late.count;
      late.ns += delay - usual_ns_;
      late.most_ns = std::max(late.most_ns, delay - usual_ns_);
      if (const auto under_way = messages_.under_way_ns(op, delay - usual_ns_))
        late.message_ns += *under_way, ++late.received;
    });
    for (size_t i = 0; i < of_block.size(); ++i) {
      Late& late = by_way_[i % by_way_.size()];
      late.of += of_block[i].of;
      late.count += of_block[i].count;
      most_ns_ = std::max(most_ns_, of_block[i].most_ns);
      late.ns += of_block[i].ns;
      late.message_ns += of_block[i].message_ns;
      late.received += of_block[i].received;
    }
  }

  int64_t late_of(uint32_t worker) const {
    return by_way_[way_of({worker, false})].count + by_way_[way_of({worker, true})].count;
  }

  // Whether cells are late in one direction only, and often: then the message is late, where nobody recorded it.
  bool is_message_late(const WorkerWay& key, const Late& late) const {
    if (g_.source != GraphSource::kComputeCells || g_.messages_recorded) return false;
    const Late& other = by_way_[way_of({key.first, !key.second})];
    if (other.count * 5 > other.of || late.count < kLeastLateCells || sender_of(key) == kUnknown ||
        static_cast<double>(late.count) < kMostOneWay * static_cast<double>(late.of))
      return false;
    // Where there are few micro-batches, the first one alone may be that many cells; a slow link delays all
    // micro-batches alike.
    const Places places = places_of({key});
    return static_cast<double>(places.late.size()) >= kWholeStep * static_cast<double>(places.all.size());
  }

  // The stage that gives cells of this direction their input; kUnknown where there is none.
  int32_t sender_of(const WorkerWay& key) const {
    const int32_t from = scene_.times.workers()[key.first].stage + (key.second ? -1 : 1);
    return from >= 0 && from < scene_.times.stages() ? from : kUnknown;
  }
  static std::vector<WorkerWay> other_ways(std::vector<WorkerWay> keys) {
    for (WorkerWay& key : keys) key.second = !key.second;
    return keys;
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
  // The places at which cells of some directions tell their delay, and those at which they are late.
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

  // Whether the link is slow in some steps: most cells are late in these, and hardly any in others, though not many
  // over the run. Single late messages would come in any step.
  bool is_message_late_in_whole_steps(const WorkerWay& key, const Late& late) const {
    if (g_.source != GraphSource::kComputeCells || late.count < kLeastLateCells) return false;
    if (sender_of(key) == kUnknown) return false;
    const Late& other = by_way_[way_of({key.first, !key.second})];
    if (5 * other.count > late.count) return false;  // the host stops, whatever comes
    if (messages_.any() && late.received > 0 && late.message_ns < kByMessage * late.ns) return false;
    int64_t in_whole = 0, whole = 0;
    for (const StepLate& step : late_by_step(key)) {
      if (step.count < kLeastLateCells || static_cast<double>(step.count) < kWholeStep * static_cast<double>(step.of))
        continue;
      in_whole += step.count, ++whole;
    }
    return whole > 0 && static_cast<double>(in_whole) >= kEverywhere * static_cast<double>(late.count);
  }

  // Whether late cells come from a step on, or in every n-th step, and hardly ever in others; chance does not choose
  // steps.
  bool comes_by_steps(const std::vector<WorkerWay>& keys) const {
    std::vector<double> counts(g_.steps.size(), 0);
    for (const WorkerWay& key : keys) {
      const std::vector<StepLate> steps = late_by_step(key);
      for (size_t s = 0; s < steps.size(); ++s) counts[s] += static_cast<double>(steps[s].count);
    }
    for (size_t s = 0; s < counts.size(); ++s)
      if (!scene_.counts[s]) counts[s] = kNaN;
    const Course course = course_of(counts);
    const auto [low, high] = std::minmax(course.low, course.high);
    return (course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery) && low <= kNextToNothing * high;
  }

  // Whether the message is what is late now and then: its recorded receive was under way; or, where nobody recorded
  // messages, only cells of its direction are late, which pauses of a host would hardly do. `tries` is the number of
  // links that are tested.
  bool is_message_tail(const std::vector<WorkerWay>& keys, double tries) const {
    const Late late = sum_of(keys);
    if (g_.source != GraphSource::kComputeCells || late.count < kLeastLateCells) return false;
    if (sender_of(keys.front()) == kUnknown) return false;
    // What is late at the same places of every step is caused by the order of work or the loop; a link knows no places.
    const Places places = places_of(keys);
    const auto steps = std::count(scene_.counts.begin(), scene_.counts.end(), true);
    if (2 * late.count >= steps * static_cast<int64_t>(places.late.size())) return false;
    if (messages_.any()) return late.received > 0 && late.message_ns >= kByMessage * late.ns;
    const Late other = sum_of(other_ways(keys));
    if (late.of == 0 || other.of == 0) return false;
    // The chance that at least this many of all late cells are of this direction, by a binomial distribution.
    const double own = static_cast<double>(late.of) / static_cast<double>(late.of + other.of);
    const int64_t all = late.count + other.count;
    double chance = 0;
    for (int64_t k = late.count; k <= all; ++k) {
      const auto n = static_cast<double>(all), x = static_cast<double>(k);
      chance += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(own) +
                         (n - x) * std::log1p(-own));
    }
    return chance * tries < kChanceOneWay;
  }

  // Drafts the link whose messages cells of these directions wait for: the same two stages, in one replica or in
  // several.
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
      std::vector<double> lengths;
      const std::set<WorkerWay> ways(keys.begin(), keys.end());
      scene_.each_op([&, by = excess()](uint32_t op, size_t) {
        if (!ways.contains({scene_.times.worker_of(op), g_.kind[op] == CellKind::kForward})) return;
        if (const double ns = by(op); ns > 0) lengths.push_back(ns);
      });
      link.cause.lengths = LateLengths(lengths);
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
      // In steps in which it is slow, how much that costs may differ; that it is slow is certain.
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
  OpValues delays_;  // for each worker; none if none of its cells tells its delay
  Hosts hosts_ = Hosts::kUnknown;
  int64_t worked_ = 0;        // number of workers that have delays
  std::vector<Late> by_way_;  // at way_of()
  LateWorkers late_;
  struct OneWay {
    bool forward = false;
    std::vector<double> delays;  // of that direction's cells
  };
  std::map<uint32_t, OneWay> one_way_;  // late workers of which only one direction is late
  size_t cells_ = 0;
  double most_ns_ = 0;                               // largest delay of a late cell, beyond usual_ns_
  double cell_ns_ = 0, best_ns_ = 0, usual_ns_ = 0;  // time of the median cell; lower quartile and median of delays
  std::shared_ptr<WorkerAt> worker_at_ = std::make_shared<WorkerAt>();
  std::map<Pair, double> message_ns_;      // median for each pair
  std::shared_ptr<const OwnSends> sends_;  // null where ranks do not wait for their sends, or sends were not recorded
};

}  // namespace

LateWorkers draft_delays(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const Delays delays(scene);
  if (!delays.known()) return {};
  if (delays.own_sends()) draft_blocking_sends(delays.own_sends(), delays.cells(), out);
  const bool everywhere = delays.everywhere();
  const auto begins = draft_late_begins(scene, everywhere ? LateWorkers{} : delays.late_workers(), delays.cell_ns(),
                                        delays.cells(), out);
  if (everywhere) {
    const double above_ns = delays.standing_out_above_ns();
    if (std::isfinite(above_ns)) delays.draft_standing_out(above_ns, out);
    delays.draft_everywhere(above_ns, out);
    return {};
  }
  delays.draft_late_workers(begins, out);
  delays.draft_pauses(out);
  return delays.late_receivers();
}

}  // namespace stageline
