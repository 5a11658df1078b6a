#include "diagnosis/causes/start_reasons.h"

namespace stageline {
namespace {

struct LateBegin {
  uint32_t op;
  double late_ns;
};
struct BeginsOfWorker {
  std::vector<LateBegin> usual, in_long_steps;
  double sum_ns() const {  // of the usual ones
    return sum_over<double>(usual, &LateBegin::late_ns);
  }
};

// For each worker its first operation of the step that waits for nothing; CellTimes::kNone where it has none.
std::vector<uint32_t> first_of_step(const CauseScene& scene, const GraphStep& step) {
  const StepGraph& graph = scene.graph;
  std::vector<uint32_t> first(scene.times.workers().size(), CellTimes::kNone);
  for (uint32_t op = step.begin; op < step.end; ++op) {
    const uint32_t w = scene.times.worker_of(op);
    if (w == CellTimes::kNone || !graph.waits(op).empty()) continue;
    if (first[w] == CellTimes::kNone || graph.start_ns[op] < graph.start_ns[first[w]]) first[w] = op;
  }
  return first;
}

// For each worker its beginnings that are late compared with those of the same stage in the same step.
std::vector<BeginsOfWorker> compare_begins(const CauseScene& scene, double min_late_ns) {
  const std::vector<CellTimes::Worker>& workers = scene.times.workers();
  std::map<int32_t, std::vector<uint32_t>> by_stage;
  for (uint32_t w = 0; w < workers.size(); ++w) by_stage[workers[w].stage].push_back(w);
  std::vector<BeginsOfWorker> begins(workers.size());
  for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
    const std::vector<uint32_t> first = first_of_step(scene, scene.graph.steps[s]);
    for (const auto& [stage, peers] : by_stage) {
      std::vector<double> delays;
      for (const uint32_t w : peers)
        if (first[w] != CellTimes::kNone) delays.push_back(scene.graph.delay_ns[first[w]]);
      if (delays.size() < 2) continue;
      std::ranges::sort(delays);
      for (const uint32_t w : peers) {
        if (first[w] == CellTimes::kNone) continue;
        const double own_ns = scene.graph.delay_ns[first[w]], late_ns = own_ns - median_beside(delays, own_ns);
        if (late_ns > min_late_ns)
          (scene.counts[s] ? begins[w].usual : begins[w].in_long_steps).push_back({first[w], late_ns});
      }
    }
  }
  return begins;
}

LateBegins describe(const CauseScene& scene, uint32_t worker, const BeginsOfWorker& begins) {
  LateBegins out{.worker = worker, .count = std::ssize(begins.usual)};
  std::map<uint32_t, double> late_ns;
  double max_ns = 0;
  for (const auto& [op, ns] : begins.usual) {
    late_ns[op] = ns;
    max_ns = std::max(max_ns, ns);
    out.each_ns += ns / begins.usual.size();
    if (scene.graph.cell[op] == kNoCell) continue;
    const int64_t start_ns = scene.trace.cells.start_ns[scene.graph.cell[op]];
    out.pauses.push_back({scene.graph.part[op], start_ns - static_cast<int64_t>(ns), start_ns});
  }
  for (const auto& [op, ns] : begins.in_long_steps)
    if (ns <= kMaxOfUsual * max_ns) late_ns[op] = ns;
  out.late_ns = std::make_shared<const std::map<uint32_t, double>>(std::move(late_ns));
  return out;
}

// From this share of late cells of one direction of a worker on, its message is the cause.
constexpr double kMinOneWay = 0.3;
// Share of the delays of one direction during which their messages must have been under way.
constexpr double kByMessage = 0.8;
constexpr size_t kMinApart = 4;         // fewer delays do not make a kind
constexpr double kChanceOneWay = 0.01;  // most chance that a host's pauses would all hit cells of one direction

// The directions that wait for the same link, by receiving stage and forward.
using Links = std::map<std::pair<int32_t, bool>, std::vector<WorkerWay>>;
std::pair<int32_t, bool> link_of(const CauseScene& scene, const WorkerWay& key) {
  return {scene.times.workers()[key.first].stage, key.second};
}

std::vector<WorkerWay> other_ways(std::vector<WorkerWay> keys) {
  for (WorkerWay& key : keys) key.second = !key.second;
  return keys;
}

class LateLinks {
 public:
  explicit LateLinks(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {}

  // Returns the directions whose late cells the links explain.
  std::set<WorkerWay> find(std::vector<LateLink>& out) const {
    std::set<WorkerWay> linked;
    std::vector<WorkerWay> left;
    const auto add = [&](const std::vector<WorkerWay>& keys, bool tail) {
      linked.insert(keys.begin(), keys.end());
      if (out.size() < kMaxWorkerCauses) out.push_back({keys, tail});
    };
    // A link is slow in all replicas or in one; workers that wait for the same link are one cause.
    Links slow_links;
    for (const WorkerWay& key : starts_.ways()) {
      const LateStarts& late = starts_.late_at(key);
      if (late.count == 0) continue;
      if (is_message_late(key, late) || is_message_late_in_whole_steps(key, late))
        slow_links[link_of(scene_, key)].push_back(key);
      else left.push_back(key);
    }
    for (auto& [link, keys] : slow_links) {
      for (const WorkerWay& key : left)
        if (link_of(scene_, key) == link && starts_.late_at(key).count >= kMinLateCells) keys.push_back(key);
      add(keys, false);
    }
    std::erase_if(left, [&](const WorkerWay& key) { return linked.contains(key); });
    // Links whose messages are late in some steps are looked for over all replicas, because one replica shows too few.
    Links links;
    for (const WorkerWay& key : left) links[link_of(scene_, key)].push_back(key);
    const double tries = std::ranges::count_if(
        links, [&](const auto& entry) { return starts_.sum_of(entry.second).count >= kMinLateCells; });
    for (const auto& [link, keys] : links) {
      if (!is_message_tail(keys, tries)) continue;
      add(keys, !comes_by_steps(keys));
    }
    // Where hosts are prompt, the messages of a link are the cause even if the tests above did not find it. Examples
    // are links with both directions late in some steps, or with late messages always at the same places.
    if (starts_.hosts() == StartDelays::Hosts::kPrompt && !starts_.messages().any())
      for (const auto& [link, keys] : links) {
        if (linked.contains(keys.front()) || starts_.sum_of(keys).count < kMinCertain ||
            starts_.sender_of(keys.front()) == kUnknown)
          continue;
        // A rank whose cells are late whatever they wait for is the cause itself, even if other ranks' hosts are
        // prompt.
        if (5 * starts_.sum_of(other_ways(keys)).count > starts_.sum_of(keys).count) continue;
        add(keys, false);
      }
    return linked;
  }

 private:
  // Returns whether cells are late in one direction only, and often: then the message is late, if it was not recorded.
  bool is_message_late(const WorkerWay& key, const LateStarts& late) const {
    if (g_.source != GraphSource::kComputeCells || g_.messages_recorded) return false;
    const LateStarts& other = starts_.late_at({key.first, !key.second});
    if (other.count * 5 > other.of || late.count < kMinLateCells || starts_.sender_of(key) == kUnknown ||
        late.count < kMinOneWay * late.of)
      return false;
    // Where there are few micro-batches, the first one alone may be that many cells; a slow link delays all
    // micro-batches alike.
    const StartDelays::Places places = starts_.places_of({key});
    return places.late.size() >= kWholeStep * places.all.size();
  }

  // Returns whether the link is slow in some steps: most cells are late in these, and almost none in others, though not
  // many over the run. Single late messages would come in any step.
  bool is_message_late_in_whole_steps(const WorkerWay& key, const LateStarts& late) const {
    if (g_.source != GraphSource::kComputeCells || late.count < kMinLateCells) return false;
    if (starts_.sender_of(key) == kUnknown) return false;
    const LateStarts& other = starts_.late_at({key.first, !key.second});
    if (5 * other.count > late.count) return false;  // the host stops, whatever comes
    if (starts_.messages().any() && late.received > 0 && late.message_ns < kByMessage * late.ns) return false;
    int64_t in_whole = 0, whole = 0;
    for (const StartDelays::StepLate& step : starts_.late_by_step(key)) {
      if (step.count < kMinLateCells || step.count < kWholeStep * step.of) continue;
      in_whole += step.count, ++whole;
    }
    return whole > 0 && in_whole >= kEverywhere * late.count;
  }

  // Returns whether late cells come from a step on, or in every n-th step, and almost never in others; chance does not
  // choose steps.
  bool comes_by_steps(const std::vector<WorkerWay>& keys) const {
    std::vector<double> counts(g_.steps.size(), 0);
    for (const WorkerWay& key : keys) {
      const std::vector<StartDelays::StepLate> steps = starts_.late_by_step(key);
      for (size_t s = 0; s < steps.size(); ++s) counts[s] += steps[s].count;
    }
    for (size_t s = 0; s < counts.size(); ++s)
      if (!scene_.counts[s]) counts[s] = kNaN;
    const Course course = course_of(counts);
    const auto [low, high] = std::minmax(course.low, course.high);
    return (course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery) && low <= kNextToNothing * high;
  }

  // Returns whether the message is late in some steps: its recorded receive was under way. Without recorded messages,
  // only cells of its direction must be late, which pauses of a host would almost never cause. `tries` is the number of
  // links that are tested.
  bool is_message_tail(const std::vector<WorkerWay>& keys, double tries) const {
    const LateStarts late = starts_.sum_of(keys);
    if (g_.source != GraphSource::kComputeCells || late.count < kMinLateCells) return false;
    if (starts_.sender_of(keys.front()) == kUnknown) return false;
    // If the same places are late in every step, the cause is the order of work or the loop, because a link has no
    // places.
    const StartDelays::Places places = starts_.places_of(keys);
    const auto steps = std::ranges::count(scene_.counts, true);
    if (2 * late.count >= steps * std::ssize(places.late)) return false;
    if (starts_.messages().any()) return late.received > 0 && late.message_ns >= kByMessage * late.ns;
    const LateStarts other = starts_.sum_of(other_ways(keys));
    if (late.of == 0 || other.of == 0) return false;
    // The chance that at least this many of all late cells are of this direction, by a binomial distribution.
    const double own = late.of / static_cast<double>(late.of + other.of);
    const int64_t all = late.count + other.count;
    double chance = 0;
    for (int64_t k = late.count; k <= all; ++k) {
      const double n = all, x = k;
      chance += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(own) +
                         (n - x) * std::log1p(-own));
    }
    return chance * tries < kChanceOneWay;
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
};

// Returns whether at most half of the links (by direction) are late, or there is only one pair of stages: then they can
// be named.
bool few_links_are_late(const StartDelays& starts) {
  if (starts.scene().times.stages() == 2) return true;
  Links links;
  for (const WorkerWay& key : starts.ways())
    if (starts.sender_of(key) != kUnknown) links[link_of(starts.scene(), key)].push_back(key);
  const auto late = std::ranges::count_if(links, [&](const auto& entry) {
    const LateStarts sum = starts.sum_of(entry.second);
    return sum.count >= kRareLate * sum.of;
  });
  return 2 * late <= std::ssize(links);
}

// Returns whether cells are late on most ranks, and too often for pauses.
bool late_everywhere(const StartDelays& starts) {
  if (starts.hosts() == StartDelays::Hosts::kPrompt && few_links_are_late(starts)) return false;
  int64_t count = 0, often = 0;
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    if (starts.delays().of(worker).empty()) continue;
    const int64_t own = starts.late_of(worker);
    count += own;
    often += own >= kRareLate * starts.delays().of(worker).size();
  }
  return often > 1 && 2 * often >= starts.worked() && count >= kRareLate * starts.cells();
}

// Returns whether ranks whose median cell is late lose more by that than all ranks by single late cells. Then these
// ranks are the cause, and the rest, which a busy machine makes everywhere, is not.
bool late_ranks_outweigh(const StartDelays& starts) {
  double launched_ns = 0, rest_ns = 0;
  for (const auto& [worker, by] : starts.late_workers()) {
    const auto way = starts.one_way().find(worker);
    launched_ns += by * (way == starts.one_way().end() ? starts.delays().of(worker).size() : way->second.delays.size());
  }
  for (const WorkerWay& way : starts.ways()) rest_ns += starts.late_at(way).ns;
  return launched_ns > rest_ns;
}

// For late starts everywhere: the delay above which delays are of another kind than the rest. These must be few cells
// that hold half of all that is lost, with a gap of a factor of two down to the next one. Returns ∞ where there are
// none.
//
//     cells  ▁▁▂▂▂▃▃                █ █    a busy host makes many cells a little late, a collector a few by much
//     late by 1 … 12 ms       60 … 300 ms
double standing_out_above_ns(const StartDelays& starts) {
  const double limit = starts.best_ns() + starts.late_ns();
  std::vector<double> late;
  double all_ns = 0;
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker)
    for (const double ns : starts.delays().of(worker))
      if (ns > limit) late.push_back(ns - starts.best_ns()), all_ns += ns - starts.best_ns();
  sort_stably(late, std::greater<>());
  const auto max = static_cast<size_t>(kRareLate * starts.cells());
  double above_ns = 0;
  for (size_t i = 0; i + 1 < late.size() && i < max; ++i) {
    above_ns += late[i];
    if (i + 1 >= kMinApart && late[i] >= kStandsOut * late[i + 1] && late[i] >= kLongPause * starts.cell_ns() &&
        2 * above_ns >= all_ns)
      return starts.best_ns() + (late[i] + late[i + 1]) / 2;
  }
  return INFINITY;
}

}  // namespace

std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns) {
  constexpr double kAsLate = 2;  // factor within which beginnings are as late as the rank's other cells
  const std::vector<BeginsOfWorker> begins = compare_begins(scene, kLateStart * cell_ns);
  std::vector<std::pair<double, uint32_t>> worst;  // (sum of delays, negated; worker)
  for (uint32_t w = 0; w < begins.size(); ++w)
    if (std::ssize(begins[w].usual) >= kMinLateCells) worst.emplace_back(-begins[w].sum_ns(), w);
  std::ranges::sort(worst);
  if (worst.size() > kMaxWorkerCauses) worst.resize(kMaxWorkerCauses);
  std::vector<LateBegins> found;
  for (const auto& [sum_ns, w] : worst) {
    found.push_back(describe(scene, w, begins[w]));
    LateBegins& own = found.back();
    for (const auto& [worker, ns] : late)
      if (worker == w) own.as_late = own.each_ns <= kAsLate * ns && kAsLate * own.each_ns >= ns;
  }
  return found;
}

CauseWorld LateBegins::without() const {
  return [less = late_ns](uint32_t op, double&, double& delay) {
    if (const auto at = less->find(op); at != less->end()) delay -= at->second;
  };
}

StartReasons::StartReasons(const CauseScene& scene) : starts(scene) {
  if (!starts.known()) return;
  everywhere = late_everywhere(starts) && !late_ranks_outweigh(starts);
  begins = late_begins(scene, everywhere ? LateWorkers{} : starts.late_workers(), starts.cell_ns());
  if (everywhere) {
    above_ns = standing_out_above_ns(starts);
    return;
  }
  linked = LateLinks(starts).find(links);
  late_receivers = starts.late_receivers();
}

WorkerWay worst_way(const StartDelays& starts, const LateLink& link) {
  return *std::ranges::max_element(
      link.ways, [&](const WorkerWay& a, const WorkerWay& b) { return starts.late_at(a).ns < starts.late_at(b).ns; });
}

Suspect suspect_of(const StartDelays& starts, const LateLink& link) {
  const CauseScene& scene = starts.scene();
  const WorkerWay worst = worst_way(starts, link);
  const CellTimes::Worker& worker = scene.times.workers()[worst.first];
  Suspect suspect;
  suspect.cause.places = {{.kind = PlaceKind::kLink,
                           .stage = worker.stage,
                           .replica = scene.graph.dp_count > 1 && link.ways.size() == 1 ? worker.dp : kUnknown,
                           .from_stage = starts.sender_of(worst)}};
  suspect.cause.figures.stage = worker.stage;
  const auto without = [&](bool small) {
    return [excess = starts.excess(small), ways = std::set<WorkerWay>(link.ways.begin(), link.ways.end()), &scene](
               uint32_t op, double&, double& delay) {
      if (ways.contains(way_at(scene, op))) delay -= excess(op);
    };
  };
  suspect.without = without(false);
  // A message that its receiver waited for only at the end delays it by less than counts as late.
  if (!link.tail) suspect.otherwise = without(true);
  return suspect;
}

}  // namespace stageline
