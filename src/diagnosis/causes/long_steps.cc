#include "diagnosis/causes/long_steps.h"

#include "diagnosis/causes/start_delays.h"
#include "pipeline/replay/recorded_messages.h"

namespace stageline {
namespace {

constexpr size_t kMaxSuspects = 12;  // most operations, and most ranks, that are tried one by one
// The first is the minimum share of a step's excess for trying an operation. The second is the share of the worst
// rank's excess that another rank must have to be above noise.
constexpr double kMinOfExcess = 0.1;
constexpr double kMinExplained = 0.5;  // minimum share of the excess that the named reason explains
constexpr size_t kMaxSteps = 16;       // most long steps that are looked into
constexpr double kMuchMore = 1.25;     // all replicas' operations must explain this many times what one operation does
// Minimum share of all extra time that ranks must hold, and of the ranks that must be long.
constexpr double kNearlyAll = 0.8;
constexpr double kLateTime = 0.1;  // minimum delay of a late start, as a share of the cell's usual time
constexpr double kLong = 1.1;      // minimum time of a long rank, to its usual one
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Link = std::pair<int32_t, int32_t>;  // stages: from, to

// Times of operations without the other causes (`now`), and their usual times.
class UsualTimes {
 public:
  struct Times {
    double dur_ns = 0, delay_ns = 0;
  };

  UsualTimes(const CauseScene& of, const std::vector<bool>& steps, const OpWorld& world)
      : scene(of), messages(scene.trace, scene.graph), sends(scene.trace), world_(world) {
    computing.assign(scene.graph.stage_of.size(), false);
    for (uint32_t op = 0; op < scene.graph.size(); ++op)
      if (computes(op)) computing[scene.graph.part[op]] = true;
    const std::vector<OpStretch> counted = counted_ops(scene.graph, steps);
    const size_t keys = scene.times.place_count() + scene.graph.types.size();
    const auto key = [this](uint32_t op) { return key_of(op); };
    dur_ns_ = OpValues(counted, keys, key, [this](uint32_t op) { return now(op).dur_ns; }).take_medians();
    delay_ns_ = OpValues(counted, keys, key, [this](uint32_t op) { return now(op).delay_ns; }).take_medians();
  }

  Times now(uint32_t op) const {
    Times times;
    world_(op, times.dur_ns, times.delay_ns);
    return times;
  }
  Times usual(uint32_t op) const {
    const auto known = [](double ns) { return std::isnan(ns) ? 0.0 : ns; };
    return {known(dur_ns_[key_of(op)]), known(delay_ns_[key_of(op)])};
  }

  bool computes(uint32_t op) const { return scene.times.worker_of(op) != CellTimes::kNone; }

  const CauseScene& scene;
  const ReceivedMessages messages;
  const RecordedMessages sends;
  std::vector<bool> computing;  // for each part, whether it computes in any step

 private:
  uint32_t key_of(uint32_t op) const {
    return static_cast<uint32_t>(computes(op) ? scene.times.place_of(op)
                                              : scene.times.place_count() + scene.graph.type[op]);
  }
  const OpWorld& world_;
  std::vector<double> dur_ns_, delay_ns_;
};

// Looks for what made one step long. Each try gives some operations their usual times and replays the step; what takes
// away half of the excess is named. Single operations are tried first, then the smallest set of ranks that belong
// together, several stages, a link, late starts everywhere, and at last nearly all ranks.
class StepSearch {
 public:
  StepSearch(const UsualTimes& usual, const GraphStep& step, LongStep& found)
      : usual_(usual), g_(usual.scene.graph), step_(step), found_(found) {
    std::vector<bool> lacks = usual.computing;
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (usual.computes(op)) lacks[g_.part[op]] = false;
    for (size_t part = 0; part < lacks.size(); ++part)
      if (lacks[part]) lacks_.emplace(g_.dp_of[part], g_.stage_of[part]);
    for (uint32_t op = step.begin; op < step.end; ++op) {
      const UsualTimes::Times usually = usual.usual(op);
      UsualTimes::Times now = usual.now(op);
      if (waits_for_unread(op)) now.dur_ns = std::min(now.dur_ns, usually.dur_ns);
      base_.dur_ns.push_back(now.dur_ns), base_.delay_ns.push_back(now.delay_ns);
      if (usual.computes(op)) {
        PartExcess& part = by_part_[g_.part[op]];
        part.own_ns += now.dur_ns, part.usual_ns += usually.dur_ns;
        part.ops.push_back(op);
        if (fed(op)) part.late_ns += std::max(0.0, now.delay_ns - usually.delay_ns);
      }
      if (is_message(g_.kind[op]) && now.dur_ns > usually.dur_ns) by_link_[link_of(op)].push_back(op);
    }
    whole_ns_ = end_of(base_);
    // Over many ranks, random differences add up; so a rank with little compared with the worst one does not count.
    double max_ns = max_over<double>(by_part_, [&](const auto& entry) { return entry.second.excess_ns(); });
    for (const auto& [part, excess] : by_part_)
      if (excess.excess_ns() >= kMinOfExcess * max_ns) sum_ns_ += excess.excess_ns();
  }

  void explain() {
    const LongStep unexplained = found_;
    if (take_operation()) {
      // Other late starts may add to a single one; they must explain much more than it does.
      const LongStep single = found_;
      if ((single.by != LongBy::kPause && single.by != LongBy::kLate) || single.share >= kNearlyAll) return;
      found_ = unexplained;
      if (!take_late_starts() || found_.share < kMuchMore * single.share) found_ = single;
      return;
    }
    if (!take_set() && !take_stages() && !take_link() && !take_late_starts()) take_all();
  }

 private:
  // Times of the compute cells of one rank: the measured one, the usual one, and the delay of their starts.
  struct PartExcess {
    double own_ns = 0, usual_ns = 0, late_ns = 0;
    std::vector<uint32_t> ops = {};  // its compute cells
    double excess_ns() const { return late_ns + std::max(0.0, own_ns - usual_ns); }
  };
  // Operations that are tried together: their times or, with `delay`, their starts.
  struct Suspect {
    double excess_ns = 0;
    std::vector<uint32_t> ops = {};
    bool delay = false;
  };

  // Returns whether all that a cell waits for was read; if not, its late start may be that of the sender of its input.
  bool fed(uint32_t op) const {
    if (g_.cell[op] == kNoCell || lacks_.empty())
      return g_.cell[op] == kNoCell || usual_.scene.coverage.fed(g_.cell[op]);
    const int32_t sender = g_.stage(op) + (g_.kind[op] == CellKind::kForward ? -1 : 1);
    return usual_.scene.coverage.fed(g_.cell[op]) && !lacks_.contains({g_.dp(op), sender}) &&
           (usual_.scene.times.chunks() == 1 ||
            std::ranges::none_of(lacks_, [&](const auto& place) { return place.first == g_.dp(op); }));
  }
  // Returns whether a rank of this collective was not read: the time of the collective is also that of waiting for it.
  bool waits_for_unread(uint32_t op) const {
    return g_.types[g_.type[op]].communicates && !is_message(g_.kind[op]) &&
           (!usual_.scene.coverage.read_everywhere(g_.stage(op)) ||
            std::ranges::any_of(lacks_, [&](const auto& place) { return place.second == g_.stage(op); }));
  }
  double end_of(const OpTimes& times) const {
    const ReplayedOps run = replay_step_ops(g_, step_, times);
    double end = 0;
    for (size_t i = 0; i < run.end_ns.size(); ++i)
      if (g_.closes(step_.begin + i)) end = std::max(end, run.end_ns[i]);
    return end;
  }
  double gain(const OpTimes& world) const { return whole_ns_ - end_of(world); }
  bool enough(double gain_ns) const { return gain_ns >= kMinExplained * found_.excess_ns; }
  double now_ns(uint32_t op, bool delay) const { return (delay ? base_.delay_ns : base_.dur_ns)[op - step_.begin]; }
  double usual_ns(uint32_t op, bool delay) const {
    const UsualTimes::Times times = usual_.usual(op);
    return delay ? times.delay_ns : times.dur_ns;
  }
  void set_usual(OpTimes& world, uint32_t op, bool delay) const {
    (delay ? world.delay_ns : world.dur_ns)[op - step_.begin] = usual_ns(op, delay);
  }

  // Shortens the delay of cells that began when their rank's own send of one of these messages ended, by the time of
  // that send: the rank waited for it.
  void release_senders(OpTimes& world, const std::vector<uint32_t>& messages) const {
    const Cells& cells = usual_.scene.trace.cells;
    for (const uint32_t message : messages) {
      if (!is_message(g_.kind[message]) || g_.waits(message).size() != 1) continue;
      const uint32_t made = g_.cell[g_.waits(message).front()];
      if (made == kNoCell) continue;
      const Cell from = cells.at(made);
      const bool forward = g_.kind[message] == CellKind::kRecvForward;
      const auto* sent = usual_.sends.sent({from.part, from.step, forward, std::max(from.chunk, 0), from.micro_batch});
      const auto sender = by_part_.find(from.part);
      if (!sent || sender == by_part_.end()) continue;
      for (const uint32_t op : sender->second.ops) {
        if (g_.cell[op] == kNoCell) continue;
        const int64_t start = cells.start_ns[g_.cell[op]];
        if (std::abs(static_cast<double>(start - sent->end_ns)) > kAtOnce * usual_ns(op, false)) continue;
        double& delay = world.delay_ns[op - step_.begin];
        const double held = std::min(delay, static_cast<double>(sent->end_ns - sent->start_ns));
        delay = std::max(std::min(delay, usual_ns(op, true)), delay - held);
      }
    }
  }

  // The operations that take the same time as this one: a send and its receive; otherwise just itself.
  std::vector<uint32_t> members_of(uint32_t op) const {
    if (g_.group(op) == kNoGroup) return {op};
    std::vector<uint32_t> members;
    for (uint32_t i = g_.groups[g_.group(op)].begin; i < g_.groups[g_.group(op)].end; ++i) members.push_back(i);
    return members;
  }
  // The stages of a message; kUnknown where the other one is not known.
  Link link_of(uint32_t op) const {
    int32_t other = kUnknown;
    for (const uint32_t member : members_of(op))
      if (g_.stage(member) != g_.stage(op)) other = g_.stage(member);
    for (const uint32_t on : g_.waits(op))
      if (other == kUnknown && g_.stage(on) != g_.stage(op)) other = g_.stage(on);
    const bool sends = is_send(g_.kind[op]);
    return sends ? Link{g_.stage(op), other} : Link{other, g_.stage(op)};
  }
  size_t replicas_of(const std::vector<uint32_t>& ops) const {
    std::set<int32_t> replicas = mapped<std::set>(ops, [&](const uint32_t op) { return g_.dp(op); });
    return replicas.size();
  }

  // Tries single operations, and the same operation in several replicas. The latter must explain much more than one of
  // them alone, or that one is the cause.
  bool take_operation() {
    using At = std::tuple<int32_t, CellKind, int32_t, int32_t, bool>;  // stage, kind, micro-batch, chunk, delay
    std::vector<Suspect> single, everywhere;
    std::map<At, Suspect> places;
    for (uint32_t op = step_.begin; op < step_.end; ++op)
      for (const bool delay : {false, true}) {
        const double excess_ns = now_ns(op, delay) - usual_ns(op, delay);
        if (!(excess_ns > 0) || excess_ns < kMinOfExcess * found_.excess_ns) continue;
        single.push_back({excess_ns, members_of(op), delay});
        Suspect& place = places[{g_.stage(op), g_.kind[op], g_.micro_batch[op], g_.chunk[op], delay}];
        place.excess_ns = std::max(place.excess_ns, excess_ns);
        place.delay = delay;
        place.ops.insert(place.ops.end(), single.back().ops.begin(), single.back().ops.end());
      }
    for (auto& [place, suspect] : places)
      if (replicas_of(suspect.ops) > 1) everywhere.push_back(std::move(suspect));
    const Suspect* best = nullptr;
    double best_ns = 0;
    const auto try_largest = [&](std::vector<Suspect>& list, double beyond_best) {
      sort_stably(list, std::greater(), &Suspect::excess_ns);
      if (list.size() > kMaxSuspects) list.resize(kMaxSuspects);
      for (const Suspect& suspect : list) {
        OpTimes world = base_;
        for (const uint32_t op : suspect.ops) set_usual(world, op, suspect.delay);
        if (!suspect.delay) release_senders(world, suspect.ops);
        const double gain_ns = gain(world);
        if (gain_ns > beyond_best * best_ns) best_ns = gain_ns, best = &suspect;
      }
    };
    try_largest(single, 1);
    try_largest(everywhere, kMuchMore);
    if (!best || !enough(best_ns)) return false;
    const uint32_t worst = *std::ranges::max_element(
        best->ops, [&](uint32_t a, uint32_t b) { return now_ns(a, best->delay) < now_ns(b, best->delay); });
    name(worst, best->delay, best->excess_ns);
    found_.replicas = replicas_of(best->ops);
    found_.share = best_ns / found_.excess_ns;
    return true;
  }

  void name(uint32_t op, bool delay, double excess_ns) {
    found_.op = op;
    found_.cell = g_.cell[op];
    found_.part = g_.part[op];
    found_.stage = g_.stage(op);
    found_.own_ns = now_ns(op, delay), found_.others_ns = usual_ns(op, delay);
    if (is_message(g_.kind[op])) {
      found_.by = LongBy::kMessage;
      std::tie(found_.from_stage, found_.stage) = link_of(op);
    } else if (!is_compute(g_.kind[op])) {
      found_.by = LongBy::kTail;
    } else if (!delay) {
      found_.by = LongBy::kCell;
    } else if (!fed(op)) {
      found_.by = LongBy::kUnread;
      const int32_t from = g_.stage(op) + (g_.kind[op] == CellKind::kForward ? -1 : 1);
      if (usual_.scene.times.chunks() == 1 && from >= 0 && from < g_.stage_count) found_.from_stage = from;
    } else {
      found_.by = LongBy::kPause;
      found_.from_stage = usual_.messages.sender_of(op);
      if (found_.from_stage == kUnknown) return;
      const std::optional<double> under_way = usual_.messages.under_way_ns(op, excess_ns);
      if (under_way ? *under_way >= kMinExplained * excess_ns : !usual_.messages.any())
        found_.by = under_way ? LongBy::kMessage : LongBy::kLate;
    }
  }

  // Returns whether the long messages of a link are one hang. Messages come one after another, and those behind one
  // that hangs end when it ends.
  //
  //     the first   ├──────────────────────┤            a slow link ends them one by one
  //     the next         ├──────────────────┤
  bool is_one_hang(const std::vector<uint32_t>& ops) const {
    constexpr double kSameEnd = 0.1;                 // of the longest message
    std::map<int32_t, std::array<int64_t, 2>> ends;  // for each replica, the first and the last end
    double longest = max_over<double>(ops, [&](const uint32_t op) { return g_.dur_ns[op]; });
    for (const uint32_t op : ops) {
      if (2 * g_.dur_ns[op] < longest) continue;  // a little late because of those before it
      auto& [first, last] = ends.try_emplace(g_.dp(op), std::array{INT64_MAX, INT64_MIN}).first->second;
      first = std::min(first, g_.ended_ns(op)), last = std::max(last, g_.ended_ns(op));
    }
    return std::ranges::all_of(ends, [&](const auto& entry) {
      return static_cast<double>(entry.second[1] - entry.second[0]) <= kSameEnd * longest;
    });
  }

  // Tries the smallest set of ranks that belong together and hold nearly all of the extra time.
  bool take_set() {
    std::map<std::pair<LongBy, std::string>, std::vector<int32_t>> sets;
    for (const auto& [part, excess] : by_part_) {
      const Part& p = usual_.scene.trace.parts[part];
      sets[{LongBy::kRank, std::to_string(part)}].push_back(part);
      sets[{LongBy::kReplica, std::to_string(p.dp)}].push_back(part);
      sets[{LongBy::kStage, std::to_string(g_.stage_of[part])}].push_back(part);
      sets[{LongBy::kMachine, p.machine_name}].push_back(part);
    }
    LongBy by = LongBy::kNothing;
    const std::vector<int32_t>* smallest = nullptr;
    for (const auto& [key, parts] : sets) {
      if (key.first != LongBy::kRank && (parts.size() < 2 || parts.size() == by_part_.size())) continue;
      if (key.first == LongBy::kMachine && key.second.empty()) continue;
      double held_ns = 0, min_ns = kInfinity;
      for (const int32_t part : parts) {
        const double excess_ns = by_part_.at(part).excess_ns();
        held_ns += excess_ns, min_ns = std::min(min_ns, excess_ns);
      }
      // Each of the ranks must have its share; otherwise one of them, or another set, is the cause.
      if (held_ns < kNearlyAll * sum_ns_ || min_ns < kMinExplained * held_ns / parts.size()) continue;
      if (!smallest || parts.size() < smallest->size()) by = key.first, smallest = &parts;
    }
    return smallest && take_ranks(*smallest, by);
  }

  // Tries several whole stages: those with at least half of the worst stage's excess. They must be at most half of all
  // stages and hold nearly all of the excess.
  bool take_stages() {
    std::map<int32_t, std::pair<double, std::vector<int32_t>>> stages;
    double max_ns = 0, held_ns = 0;
    for (const auto& [part, excess] : by_part_) {
      auto& [ns, parts] = stages[g_.stage_of[part]];
      max_ns = std::max(max_ns, ns += excess.excess_ns());
      parts.push_back(part);
    }
    std::vector<int32_t> parts;
    size_t taken = 0;
    for (const auto& [stage, own] : stages) {
      if (own.first < kMinExplained * max_ns || stage == kUnknown) continue;
      ++taken, held_ns += own.first;
      parts.insert(parts.end(), own.second.begin(), own.second.end());
    }
    if (taken < 2 || 2 * taken > stages.size() || held_ns < kNearlyAll * sum_ns_) return false;
    return take_ranks(parts, LongBy::kStages);
  }

  // Tries the messages of each link.
  bool take_link() {
    const std::vector<uint32_t>* best = nullptr;
    double best_ns = 0;
    for (const auto& [link, ops] : by_link_) {
      if (link.first == kUnknown || link.second == kUnknown) continue;
      OpTimes world = base_;
      for (const uint32_t op : ops) set_usual(world, op, false);
      release_senders(world, ops);
      const double gain_ns = gain(world);
      if (!enough(gain_ns) || gain_ns <= best_ns) continue;
      best_ns = gain_ns, best = &ops;
      std::tie(found_.from_stage, found_.stage) = link;
    }
    if (!best) return false;
    found_.by = LongBy::kLink;
    found_.share = best_ns / found_.excess_ns;
    found_.count = best->size();
    found_.own_ns = found_.others_ns = 0;
    for (const uint32_t op : *best) {
      found_.own_ns += now_ns(op, false) / best->size();
      found_.others_ns += usual_ns(op, false) / best->size();
    }
    if (!is_one_hang(*best)) return true;
    // Any message may take a little longer than the median one, so the first of those that hung is named.
    const auto longest = *std::max_element(best->begin(), best->end(),
                                           [&](uint32_t a, uint32_t b) { return g_.dur_ns[a] < g_.dur_ns[b]; });
    uint32_t first = longest;
    for (const uint32_t op : *best)
      if (2 * g_.dur_ns[op] >= g_.dur_ns[longest] && g_.start_ns[op] < g_.start_ns[first]) first = op;
    name(first, false, found_.excess_ns);
    found_.replicas = replicas_of(*best);
    return true;
  }

  // Tries the step with all work started as usual, where late starts are nearly all of the extra time.
  bool take_late_starts() {
    double late_ns = 0;
    for (const auto& [part, excess] : by_part_) late_ns += excess.late_ns;
    if (late_ns < kNearlyAll * sum_ns_) return false;
    OpTimes world = base_;
    int64_t count = 0;
    std::set<int32_t> parts;
    for (uint32_t op = step_.begin; op < step_.end; ++op) {
      if (!usual_.computes(op)) continue;
      const auto [dur_ns, delay_ns] = usual_.usual(op);
      double& own_ns = world.delay_ns[op - step_.begin];
      if (own_ns - delay_ns >= kLateTime * dur_ns) ++count, parts.insert(g_.part[op]);
      own_ns = std::min(own_ns, delay_ns);
    }
    const double gain_ns = gain(world);
    if (!enough(gain_ns) || count == 0) return false;
    found_.by = parts.size() > 1 ? LongBy::kHosts : LongBy::kRank;
    if (parts.size() == 1) found_.part = *parts.begin(), found_.stage = g_.stage_of[found_.part];
    found_.share = gain_ns / found_.excess_ns;
    found_.count = count;
    found_.late_ns = late_ns;
    found_.parts.assign(parts.begin(), parts.end());
    return true;
  }

  void take_all() {
    std::vector<int32_t> long_ones;
    for (const auto& [part, excess] : by_part_)
      if (excess.own_ns + excess.late_ns >= kLong * excess.usual_ns) long_ones.push_back(part);
    if (long_ones.size() < kNearlyAll * by_part_.size()) return;
    if (take_ranks(long_ones, LongBy::kAll)) found_.stage = kUnknown;
  }

  // Tries the step with the usual times of these ranks; returns false, and adds nothing, when it is almost as long.
  bool take_ranks(const std::vector<int32_t>& parts, LongBy by) {
    const std::set<int32_t> own(parts.begin(), parts.end());
    OpTimes world = base_;
    for (uint32_t op = step_.begin; op < step_.end; ++op) {
      if (!usual_.computes(op) || !own.contains(g_.part[op])) continue;
      for (const bool delay : {false, true}) {
        double& ns = (delay ? world.delay_ns : world.dur_ns)[op - step_.begin];
        ns = std::min(ns, usual_ns(op, delay));
      }
    }
    const double gain_ns = gain(world);
    if (!enough(gain_ns)) return false;
    found_.by = by;
    found_.share = gain_ns / found_.excess_ns;
    found_.parts = parts;
    found_.part = parts.size() == 1 ? parts.front() : kUnknown;
    found_.stage = g_.stage_of[parts.front()];
    for (const int32_t part : parts) {
      const PartExcess& excess = by_part_.at(part);
      found_.own_ns += excess.own_ns, found_.others_ns += excess.usual_ns, found_.late_ns += excess.late_ns;
    }
    return true;
  }

  const UsualTimes& usual_;
  const StepGraph& g_;
  const GraphStep& step_;
  LongStep& found_;
  OpTimes base_;
  double whole_ns_ = 0, sum_ns_ = 0;  // the step's end; the extra time of all ranks
  std::map<int32_t, PartExcess> by_part_;
  std::set<std::pair<int32_t, int32_t>> lacks_;    // replicas and stages of ranks that did not record this step
  std::map<Link, std::vector<uint32_t>> by_link_;  // messages that took longer than usual
};

}  // namespace

void explain_long_steps(const CauseScene& scene, const OpWorld& world, const std::vector<bool>& usual,
                        const std::vector<size_t>& steps, std::vector<LongStep>& out) {
  if (steps.empty()) return;
  const UsualTimes times(scene, usual, world);
  for (size_t i = 0; i < std::min(steps.size(), kMaxSteps); ++i)
    StepSearch(times, scene.graph.steps[steps[i]], out[i]).explain();
}

}  // namespace stageline
