#include "pipeline/causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "model/pipeline_sums.h"
#include "model/stage_costs.h"
#include "model/statistics.h"
#include "pipeline/beyond_noise.h"
#include "pipeline/cell_times.h"
#include "pipeline/links.h"
#include "pipeline/order_cause.h"

namespace stageline {
namespace {

constexpr double kSlow = 1.05;             // of a stage or worker, against the others
constexpr double kSlowKind = 1.03;         // of one kind of cell of a slow stage, to be named
constexpr double kLatePause = 0.1;         // of the median compute cell, beyond which a late start is a pause
constexpr double kLateWorker = 0.05;       // the same for a whole worker's median
constexpr double kMostPaused = 0.3;        // of the cells: more of them are no pauses
constexpr size_t kMostWorkers = 8;         // slow ones that are told apart
constexpr size_t kMostCells = 10'000'000;  // workers times steps

// Changes an operation's times into those of a world without the cause.
using World = std::function<void(uint32_t op, double& dur_ns, double& delay_ns)>;
struct Draft {
  Cause cause;
  World without, evened;  // evened: may be empty
};

class Finder {
 public:
  Finder(const StepGraph& graph, const std::vector<bool>& counts) : g_(graph), counts_(counts), times_(graph, counts) {}

  std::vector<Draft> drafts() {
    find_sequences();
    if (times_.workers().size() * g_.steps.size() <= kMostCells) find_workers();
    find_stages();
    find_links();
    find_delays();
    return std::move(drafts_);
  }

 private:
  template <class Body>
  void each_op(const Body& body) const {
    for (size_t s = 0; s < g_.steps.size(); ++s)
      for (uint32_t op = g_.steps[s].begin; counts_[s] && op < g_.steps[s].end; ++op) body(op, s);
  }

  void find_sequences() {
    const CellTimes::Sequences& all = times_.sequences();
    if (!times_.sequence_factor_known()) return;
    Draft draft;
    draft.cause.kind = CauseKind::kLongSequences;
    draft.cause.ratio = all.long_factor;
    draft.cause.count = all.long_ones;
    draft.cause.of = all.all;
    draft.without = [this](uint32_t op, double& dur, double&) {
      const double f = times_.sequence_factor(op);
      if (f >= CellTimes::kLong) dur /= f;
    };
    draft.evened = [this](uint32_t op, double& dur, double&) { dur *= times_.even_factor(op); };
    drafts_.push_back(std::move(draft));
  }

  // A worker against the same stage's other replicas.
  void find_workers() {
    const auto loads = times_.worker_loads();
    std::map<int32_t, std::vector<size_t>> by_stage;
    for (size_t w = 0; w < loads.size(); ++w) by_stage[times_.workers()[w].stage].push_back(w);
    struct Slow {
      size_t worker;
      double ratio;
      int64_t slow_in, steps;
    };
    std::vector<Slow> slow;
    for (const auto& [stage, workers] : by_stage) {
      if (workers.size() < 2) continue;
      std::map<size_t, std::vector<double>> ratios;
      for (size_t s = 0; s < g_.steps.size(); ++s) {
        if (!counts_[s]) continue;
        std::vector<double> sorted;
        for (const size_t w : workers)
          if (!std::isnan(loads[w][s])) sorted.push_back(loads[w][s]);
        if (sorted.size() < 2) continue;
        std::sort(sorted.begin(), sorted.end());
        for (const size_t w : workers) {
          if (std::isnan(loads[w][s])) continue;
          // The median of the others: in a sorted list that is the middle with the own value left out.
          const auto own =
              static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), loads[w][s]) - sorted.begin());
          const auto other = [&](size_t i) { return sorted[i < own ? i : i + 1]; };
          const size_t n = sorted.size() - 1;
          const double others = (other((n - 1) / 2) + other(n / 2)) / 2;
          if (others > 0) ratios[w].push_back(loads[w][s] / others);
        }
      }
      for (const auto& [w, values] : ratios) {
        const double mean = mean_of(values);
        const double error = sample_std(values) / std::sqrt(static_cast<double>(values.size()));
        if (mean < kSlow || !beyond_noise(mean - 1, error, static_cast<int64_t>(values.size()))) continue;
        slow.push_back({w, mean, std::count_if(values.begin(), values.end(), [](double v) { return v >= kSlow; }),
                        static_cast<int64_t>(values.size())});
      }
    }
    std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.ratio > b.ratio; });
    if (slow.size() > kMostWorkers) slow.resize(kMostWorkers);
    for (const Slow& found : slow) {
      const CellTimes::Worker& worker = times_.workers()[found.worker];
      Draft draft;
      draft.cause.kind = CauseKind::kSlowWorker;
      draft.cause.stage = worker.stage;
      draft.cause.dp = worker.dp;
      draft.cause.part = worker.part;
      draft.cause.ratio = found.ratio;
      draft.cause.slowest_in = found.slow_in;
      draft.cause.steps = found.steps;
      draft.without = [this, w = static_cast<uint32_t>(found.worker), ratio = found.ratio](uint32_t op, double& dur,
                                                                                           double&) {
        if (times_.worker_of(op) == w) dur /= ratio;
      };
      drafts_.push_back(std::move(draft));
    }
    for (const Slow& found : slow) times_.even_out(found.worker, found.ratio);
  }

  // A stage against the others, kind by kind; with chunks, chunk by chunk.
  void find_stages() {
    if (times_.stages() < 2) return;
    const auto stages = static_cast<size_t>(times_.stages());
    const std::vector<double> means = times_.place_means();
    std::vector<double> count(means.size()), others(means.size(), std::nan("")), evened(means.size(), std::nan(""));
    each_op([&](uint32_t op, size_t) {
      if (times_.worker_of(op) != CellTimes::kNone) ++count[times_.place_of(op)];
    });
    // Others of one (chunk, kind) are those of all chunks: the first and the last chunk hold what only they have.
    for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
      std::vector<std::pair<double, size_t>> all;
      for (size_t p = kind; p < means.size(); p += CellTimes::kKinds)
        if (!std::isnan(means[p])) all.emplace_back(means[p], p);
      if (all.size() < 2) continue;
      std::sort(all.begin(), all.end());
      double sum = 0, n = 0;
      for (const auto& [mean, p] : all) sum += mean * count[p], n += count[p];
      for (size_t i = 0; i < all.size(); ++i) {
        const auto other = [&](size_t k) { return all[k < i ? k : k + 1].first; };
        const size_t m = all.size() - 1;
        others[all[i].second] = (other((m - 1) / 2) + other(m / 2)) / 2;
        evened[all[i].second] = sum / n;
      }
    }
    const auto to_others = std::make_shared<std::vector<double>>(means.size(), 1.0);
    const auto to_even = std::make_shared<std::vector<double>>(means.size(), 1.0);
    for (size_t p = 0; p < means.size(); ++p) {
      if (means[p] > 0 && others[p] < means[p]) (*to_others)[p] = others[p] / means[p];
      if (means[p] > 0 && evened[p] > 0) (*to_even)[p] = evened[p] / means[p];
    }
    std::vector<std::pair<double, Draft>> slow;  // by what they take beyond the others
    for (size_t stage = 0; stage < stages; ++stage) {
      double own = 0, theirs = 0;
      Draft draft;
      int32_t slow_chunks = 0, last_slow = kUnknown;
      double chunk_ratio = 0;
      std::map<size_t, std::array<double, 3>> kinds;
      for (int32_t chunk = 0; chunk < times_.chunks(); ++chunk) {
        double of_chunk = 0, of_others = 0;
        for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
          const size_t p = times_.place(static_cast<int32_t>(stage), chunk, static_cast<CellKind>(kind));
          if (std::isnan(means[p]) || std::isnan(others[p])) continue;
          of_chunk += means[p] * count[p];
          of_others += others[p] * count[p];
          auto& [a, b, n] = kinds[kind];
          a += means[p] * count[p], b += others[p] * count[p], n += count[p];
        }
        own += of_chunk, theirs += of_others;
        if (of_chunk >= kSlow * of_others && of_others > 0) {
          ++slow_chunks, last_slow = chunk;
          chunk_ratio = of_chunk / of_others;
        }
      }
      // A chunk of its own may be heavy (embedding, head) in a stage that is not.
      const bool whole = theirs > 0 && own >= kSlow * theirs;
      if (!whole && slow_chunks == 0) continue;
      draft.cause.kind = CauseKind::kSlowStage;
      draft.cause.stage = static_cast<int32_t>(stage);
      draft.cause.ratio = own / theirs;
      const bool one_chunk = times_.chunks() > 1 && slow_chunks == 1;
      if (one_chunk) draft.cause.chunk = last_slow, draft.cause.ratio = chunk_ratio;
      for (const auto& [kind, sums] : kinds)
        if (sums[0] >= kSlowKind * sums[1])
          draft.cause.times.push_back({static_cast<CellKind>(kind), sums[0] / sums[2], sums[1] / sums[2]});
      draft.without = [this, stage = static_cast<int32_t>(stage), to_others](uint32_t op, double& dur, double&) {
        if (times_.worker_of(op) != CellTimes::kNone && g_.stage[op] == stage) dur *= (*to_others)[times_.place_of(op)];
      };
      draft.evened = [this, to_even](uint32_t op, double& dur, double&) {
        if (times_.worker_of(op) != CellTimes::kNone) dur *= (*to_even)[times_.place_of(op)];
      };
      slow.emplace_back(own - theirs, std::move(draft));
    }
    std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (slow.size() > kMostWorkers) slow.resize(kMostWorkers);
    for (auto& [beyond, draft] : slow) {
      std::tie(draft.cause.slowest_in, draft.cause.steps) = slowest_in(draft.cause.stage, others);
      drafts_.push_back(std::move(draft));
    }
  }

  // Steps in which the stage's cells take at least kSlow times the others', and all of them.
  std::pair<int64_t, int64_t> slowest_in(int32_t stage, const std::vector<double>& others) const {
    int64_t slow = 0, all = 0;
    for (size_t s = 0; s < g_.steps.size(); ++s) {
      if (!counts_[s]) continue;
      double own = 0, theirs = 0;
      for (uint32_t op = g_.steps[s].begin; op < g_.steps[s].end; ++op) {
        if (times_.worker_of(op) == CellTimes::kNone || g_.stage[op] != stage) continue;
        const double other = others[times_.place_of(op)];
        if (std::isnan(other)) continue;
        own += times_.time_ns(op);
        theirs += other;
      }
      all += theirs > 0;
      slow += theirs > 0 && own >= kSlow * theirs;
    }
    return {slow, all};
  }

  // The stage on the other side of a message; kUnknown.
  int32_t sender_of(uint32_t op) const {
    for (const uint32_t on : g_.waits(op))
      if (g_.stage[on] != g_.stage[op]) return g_.stage[on];
    if (g_.group[op] != kNoGroup) {
      const GraphGroup& group = g_.groups[g_.group[op]];
      for (uint32_t i = group.begin; i < group.end && i < group.begin + 4; ++i)
        if (g_.stage[i] != g_.stage[op]) return g_.stage[i];
    }
    return kUnknown;
  }

  void find_links() {
    // (replica, from, to): transfers as their receivers have them.
    using Edge = std::tuple<int32_t, int32_t, int32_t>;
    std::map<Edge, std::vector<double>> transfers;
    const auto edges = std::make_shared<std::vector<uint32_t>>(g_.size(), CellTimes::kNone);
    std::vector<uint32_t>& edge_of = *edges;
    std::map<Edge, uint32_t> index;
    for (uint32_t op = 0; op < g_.size(); ++op) {
      const CellKind kind = g_.kind[op];
      if (!is_message(kind) || g_.stage[op] == kUnknown) continue;
      const int32_t other = sender_of(op);
      if (other == kUnknown) continue;
      const bool receives = kind == CellKind::kRecvForward || kind == CellKind::kRecvBackward;
      const Edge edge = receives ? Edge{g_.dp[op], other, g_.stage[op]} : Edge{g_.dp[op], g_.stage[op], other};
      edge_of[op] = index.try_emplace(edge, static_cast<uint32_t>(index.size())).first->second;
      if (receives) transfers[edge].push_back(std::max(0.0, g_.dur_ns[op]));
    }
    // One pair of stages in all replicas is one link; each against the median of the other links.
    std::map<std::pair<int32_t, int32_t>, std::vector<std::pair<double, int32_t>>> links;
    for (auto& [edge, values] : transfers)
      links[{std::get<1>(edge), std::get<2>(edge)}].emplace_back(median_of(values), std::get<0>(edge));
    std::vector<double> medians;
    std::map<std::pair<int32_t, int32_t>, double> median_link;
    for (const auto& [link, replicas] : links) {
      std::vector<double> values;
      for (const auto& [ns, dp] : replicas) values.push_back(ns);
      medians.push_back(median_link[link] = median_of(std::move(values)));
    }
    std::sort(medians.begin(), medians.end());
    std::vector<std::pair<double, Draft>> found;  // by time beyond the others
    for (const auto& [link, replicas] : links) {
      double others = median_link[link];  // one way alone: against the other replicas
      if (medians.size() > 1) {
        const auto own =
            static_cast<size_t>(std::lower_bound(medians.begin(), medians.end(), others) - medians.begin());
        const auto other = [&](size_t i) { return medians[i < own ? i : i + 1]; };
        const size_t n = medians.size() - 1;
        others = (other((n - 1) / 2) + other(n / 2)) / 2;
      }
      std::vector<std::pair<double, int32_t>> slow;
      for (const auto& entry : replicas)
        if (entry.first > kSlowLinkRatio * others && entry.first > 0) slow.push_back(entry);
      if (slow.empty()) continue;
      Draft draft;
      draft.cause.kind = CauseKind::kSlowLink;
      draft.cause.from_stage = link.first;
      draft.cause.stage = link.second;
      if (slow.size() == 1 && replicas.size() > 1) draft.cause.dp = slow[0].second;
      double own = 0;
      std::map<uint32_t, double> factor;
      for (const auto& [ns, dp] : slow) {
        own += ns / static_cast<double>(slow.size());
        factor[index.at({dp, link.first, link.second})] = others / ns;
      }
      draft.cause.ratio = others > 0 ? own / others : 0;
      draft.cause.times = {{CellKind::kOther, own, others}};
      draft.without = [edges, factor](uint32_t op, double& dur, double&) {
        if ((*edges)[op] == CellTimes::kNone) return;
        if (const auto it = factor.find((*edges)[op]); it != factor.end()) dur *= it->second;
      };
      found.emplace_back(own - others, std::move(draft));
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (found.size() > kMostWorkers) found.resize(kMostWorkers);
    for (auto& [beyond, draft] : found) drafts_.push_back(std::move(draft));
  }

  // Late starts of compute cells: of whole workers, then of single cells.
  void find_delays() {
    std::map<uint32_t, std::vector<double>> of_worker;
    std::vector<double> all, durations;
    each_op([&](uint32_t op, size_t) {
      if (times_.worker_of(op) == CellTimes::kNone || g_.waits(op).empty()) return;
      of_worker[times_.worker_of(op)].push_back(g_.delay_ns[op]);
      all.push_back(g_.delay_ns[op]);
      durations.push_back(g_.dur_ns[op]);
    });
    if (all.size() < 4) return;
    const double cell = median_of(std::move(durations)), usual = median_of(all);
    std::map<uint32_t, double> late;  // worker → what its cells are later than others'
    for (auto& [worker, delays] : of_worker) {
      const double own = median_of(delays);
      if (own - usual < kLateWorker * cell || of_worker.size() < 2) continue;
      late[worker] = own - usual;
      Draft draft;
      draft.cause.kind = CauseKind::kLateWorker;
      draft.cause.stage = times_.workers()[worker].stage;
      draft.cause.dp = times_.workers()[worker].dp;
      draft.cause.part = times_.workers()[worker].part;
      draft.cause.pause_ns = own - usual;
      draft.cause.count = draft.cause.of = static_cast<int64_t>(delays.size());
      draft.without = [this, worker = worker, by = own - usual](uint32_t op, double&, double& delay) {
        if (times_.worker_of(op) == worker && !g_.waits(op).empty()) delay = std::max(0.0, delay - by);
      };
      if (late.size() <= kMostWorkers) drafts_.push_back(std::move(draft));
    }
    const double limit = usual + kLatePause * cell;
    const auto excess = [this, late, usual, limit](uint32_t op) {
      const uint32_t worker = times_.worker_of(op);
      if (worker == CellTimes::kNone || g_.waits(op).empty()) return 0.0;
      const auto of = late.find(worker);
      const double delay = g_.delay_ns[op] - (of == late.end() ? 0 : of->second);
      return delay > limit ? delay - usual : 0.0;
    };
    // By worker and direction, those late, and all.
    std::map<std::pair<uint32_t, bool>, std::pair<int64_t, int64_t>> by_direction;
    std::map<std::pair<uint32_t, bool>, double> late_ns;
    each_op([&](uint32_t op, size_t) {
      if (times_.worker_of(op) == CellTimes::kNone || g_.waits(op).empty()) return;
      const std::pair key(times_.worker_of(op), g_.kind[op] == CellKind::kForward);
      const double by = excess(op);
      ++by_direction[key].second;
      by_direction[key].first += by > 0;
      late_ns[key] += by;
    });
    Draft pauses;
    pauses.cause.kind = CauseKind::kPauses;
    std::set<std::pair<uint32_t, bool>> linked;
    for (const auto& [key, counted] : by_direction) {
      const auto& [count, of] = counted;
      if (count == 0) continue;
      const double mean = late_ns[key] / static_cast<double>(count);
      // Late in one direction alone, and often: the message, where nobody recorded it.
      const auto other = by_direction.find({key.first, !key.second});
      const bool other_too = other != by_direction.end() && other->second.first * 5 > other->second.second;
      const int32_t stage = times_.workers()[key.first].stage, from = stage + (key.second ? -1 : 1);
      if (g_.source == GraphSource::kComputeCells && !other_too && from >= 0 && from < times_.stages() &&
          static_cast<double>(count) >= kMostPaused * static_cast<double>(of)) {
        Draft link;
        link.cause.kind = CauseKind::kSlowLink;
        link.cause.from_stage = from;
        link.cause.stage = stage;
        if (g_.dp_count > 1) link.cause.dp = times_.workers()[key.first].dp;
        link.cause.times = {{CellKind::kOther, mean, 0}};
        link.without = [this, excess, key](uint32_t op, double&, double& delay) {
          if (times_.worker_of(op) == key.first && (g_.kind[op] == CellKind::kForward) == key.second)
            delay -= excess(op);
        };
        linked.insert(key);
        if (linked.size() <= kMostWorkers) drafts_.push_back(std::move(link));
        continue;
      }
      pauses.cause.count += count;
      pauses.cause.pause_ns += late_ns[key];
      if (pauses.cause.part != times_.workers()[key.first].part) ++pauses.cause.ranks;
      pauses.cause.part = times_.workers()[key.first].part;
    }
    pauses.cause.of = static_cast<int64_t>(all.size());
    if (pauses.cause.count == 0 ||
        static_cast<double>(pauses.cause.count) > kMostPaused * static_cast<double>(pauses.cause.of))
      return;
    pauses.cause.pause_ns /= static_cast<double>(pauses.cause.count);
    if (pauses.cause.ranks != 1) pauses.cause.part = kUnknown;
    pauses.without = [this, excess, linked](uint32_t op, double&, double& delay) {
      if (!linked.contains({times_.worker_of(op), g_.kind[op] == CellKind::kForward})) delay -= excess(op);
    };
    drafts_.push_back(std::move(pauses));
  }

  const StepGraph& g_;
  const std::vector<bool>& counts_;
  CellTimes times_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::string_view cause_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kSlowStage: return "slow stage";
    case CauseKind::kSlowWorker: return "slow worker";
    case CauseKind::kSlowLink: return "slow link";
    case CauseKind::kLongSequences: return "long sequences";
    case CauseKind::kPauses: return "pauses";
    case CauseKind::kLateWorker: return "late launches";
    case CauseKind::kOrder: return "wrong order";
    case CauseKind::kUnsplit: return "unsplit backwards";
  }
  return "";
}

CauseList find_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory) {
  const std::vector<int32_t> outliers = outlier_steps(trace, pipeline_sums(trace));
  std::vector<bool> counts;
  std::vector<double> recorded;
  for (const GraphStep& step : graph.steps) {
    counts.push_back(!std::binary_search(outliers.begin(), outliers.end(), step.step));
    if (counts.back()) recorded.push_back(static_cast<double>(step.span_ns));
  }
  CauseList list;
  list.steps = static_cast<int64_t>(recorded.size());
  list.step_ns = mean_of(recorded);
  list.error_ns = sample_std(recorded) / std::sqrt(static_cast<double>(recorded.size()));
  // Without work that takes time every gap would look like a slow message.
  bool works = false;
  for (size_t i = 0; i < graph.size() && !works; ++i) works = is_compute(graph.kind[i]) && graph.dur_ns[i] > 0;
  if (!works) return list;
  Finder finder(graph, counts);
  std::vector<Draft> drafts = finder.drafts();
  // Worlds: as it was, then without each cause, then those evened out.
  std::vector<std::vector<const World*>> worlds(1);
  for (const Draft& draft : drafts) worlds.push_back({&draft.without});
  std::vector<size_t> evened(drafts.size(), 0);
  for (size_t d = 0; d < drafts.size(); ++d)
    if (drafts[d].evened) evened[d] = worlds.size(), worlds.push_back({&drafts[d].evened});
  const auto replay_all = [&] {
    return replay_worlds(graph, worlds.size(),
                         [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
                           for (size_t i = 0; i < dur.size(); ++i) {
                             dur[i] = graph.dur_ns[op];
                             delay[i] = graph.delay_ns[op];
                             for (const World* world : worlds[first + i]) (*world)(op, dur[i], delay[i]);
                           }
                         });
  };
  WorldTimes replayed = replay_all();
  const auto gain = [&](size_t world) {
    std::vector<double> gains;
    for (size_t s = 0; s < graph.steps.size(); ++s)
      if (counts[s]) gains.push_back(replayed.ns(s, 0) - replayed.ns(s, world));
    return std::pair(mean_of(gains), sample_std(gains) / std::sqrt(static_cast<double>(gains.size())));
  };
  const auto counts_for_nothing = [&](const Cause& c) {
    return !(c.lost_ns >= kLeastLost * list.step_ns) || !beyond_noise(c.lost_ns, c.error_ns, list.steps);
  };
  std::vector<const World*> all;
  for (size_t d = 0; d < drafts.size(); ++d) {
    Cause cause = std::move(drafts[d].cause);
    std::tie(cause.lost_ns, cause.error_ns) = gain(d + 1);
    if (evened[d] > 0) cause.saving_ns = gain(evened[d]).first;
    if (counts_for_nothing(cause)) continue;
    all.push_back(&drafts[d].without);
    list.causes.push_back(std::move(cause));
  }
  if (!all.empty()) {
    worlds = {{}, all};
    replayed = replay_all();
    std::tie(list.together_ns, list.together_error_ns) = gain(1);
  }
  std::vector<Cause> of_order;
  add_order_causes(graph, theory, counts, of_order);
  for (Cause& cause : of_order) {
    if (counts_for_nothing(cause)) continue;
    list.together_ns += cause.lost_ns;
    list.together_error_ns = std::hypot(list.together_error_ns, cause.error_ns);
    list.causes.push_back(std::move(cause));
  }
  std::stable_sort(list.causes.begin(), list.causes.end(), [](const Cause& a, const Cause& b) {
    return a.price_ns() != b.price_ns() ? a.price_ns() > b.price_ns() : a.lost_ns > b.lost_ns;
  });
  return list;
}

}  // namespace stageline
