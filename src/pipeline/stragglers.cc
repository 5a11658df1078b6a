#include "pipeline/stragglers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "model/pipeline_sums.h"
#include "model/stage_costs.h"
#include "pipeline/host_delays.h"
#include "pipeline/slow_rank.h"

namespace stageline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kErrors = 4;           // standard errors that a ratio must be beyond
constexpr int64_t kLeastPauses = 3;     // of a worker, to be its sign
constexpr double kMostOfPauses = 0.6;   // one rank has: they are its own
constexpr double kSteadyPeriod = 0.25;  // scatter of the times between pauses

// Median of sorted values without the one at `skip`; NaN when it is the only one.
double median_without(const std::vector<double>& sorted, size_t skip) {
  const size_t n = sorted.size() - 1;
  if (n == 0) return kNaN;
  const auto at = [&](size_t k) { return sorted[k < skip ? k : k + 1]; };
  return n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
}

// Each value ÷ the median of the others; NaN where it is alone or they are 0.
std::vector<double> against_others(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(values[a], a) < std::pair(values[b], b); });
  std::vector<double> sorted, ratio(values.size(), kNaN);
  for (const size_t i : order) sorted.push_back(values[i]);
  for (size_t k = 0; k < order.size(); ++k) {
    const double others = median_without(sorted, k);
    if (others > 0) ratio[order[k]] = values[order[k]] / others;
  }
  return ratio;
}

struct Scatter {  // of the cells of one kind
  double count = 0, sum = 0, squares = 0;
};

class Finder {
 public:
  Finder(const Trace& trace, const StepGraph& graph)
      : trace_(trace), graph_(graph), sums_(pipeline_sums(trace)), without_(outlier_steps(trace, sums_)) {}

  Stragglers find() {
    find_loads();
    find_steps();
    find_correlations();
    find_delays();
    judge();
    price();
    return std::move(out_);
  }

 private:
  bool counts(int32_t step) const { return !std::binary_search(without_.begin(), without_.end(), step); }
  const Part& part(int32_t p) const { return trace_.parts[static_cast<size_t>(p)]; }

  void find_loads() {
    std::vector<double> busy(trace_.parts.size(), 0);
    std::vector<int64_t> steps(trace_.parts.size(), 0);
    for (const RankSums& rank : sums_.ranks) {
      if (!counts(rank.step)) continue;
      busy[static_cast<size_t>(rank.part)] += static_cast<double>(rank.busy_ns);
      ++steps[static_cast<size_t>(rank.part)];
    }
    worker_of_.assign(trace_.parts.size(), -1);
    std::map<int32_t, std::vector<int32_t>> by_stage;
    for (size_t p = 0; p < busy.size(); ++p) {
      if (steps[p] == 0 || trace_.parts[p].stage == kUnknown) continue;
      worker_of_[p] = static_cast<int32_t>(out_.workers.size());
      by_stage[trace_.parts[p].stage].push_back(worker_of_[p]);
      StragglerWorker worker;
      worker.part = static_cast<int32_t>(p);
      worker.steps = steps[p];
      worker.busy_ns = busy[p] / static_cast<double>(steps[p]);
      worker.period_ns = worker.s_w = kNaN;
      out_.workers.push_back(worker);
    }
    const std::vector<double> errors = relative_errors();
    const std::vector<double> usual = usual_busy_ns(trace_, without_);
    std::map<int32_t, double> stage_busy;
    for (const auto& [stage, members] : by_stage) {
      std::vector<double> all, cells;
      double sum = 0;
      for (const int32_t w : members) {
        const StragglerWorker& worker = out_.workers[static_cast<size_t>(w)];
        all.push_back(worker.busy_ns);
        cells.push_back(usual[static_cast<size_t>(worker.part)] / static_cast<double>(worker.steps));
        sum += worker.busy_ns;
      }
      stage_busy[stage] = median_of(all);
      const std::vector<double> of_all = against_others(all), of_cells = against_others(cells);
      const auto peers = static_cast<double>(members.size()) - 1;
      for (size_t k = 0; k < members.size(); ++k) {
        StragglerWorker& worker = out_.workers[static_cast<size_t>(members[k])];
        worker.busy_ratio = peers > 0 ? worker.busy_ns * static_cast<double>(members.size()) / sum : kNaN;
        worker.ratio = peers > 0 ? std::min(of_all[k], of_cells[k]) : kNaN;
        // A median of n values scatters 1.25 times as much as their mean.
        worker.error = peers > 0 ? errors[static_cast<size_t>(worker.part)] * std::sqrt(1 + 1.57 / peers) : kNaN;
      }
    }
    std::vector<double> stages;
    for (const auto& [stage, ns] : stage_busy) stages.push_back(ns);
    if (stages.size() > 1)
      for (const auto& [stage, ns] : stage_busy)
        if (const double usual_stage = median_of(stages); usual_stage > 0) stage_ratio_[stage] = ns / usual_stage;
  }

  // Standard error of a part's mean busy time as a share of it, by the scatter of its cells within a kind.
  std::vector<double> relative_errors() const {
    std::vector<std::map<std::pair<CellKind, int32_t>, Scatter>> scatter(trace_.parts.size());
    const Cells& cells = trace_.cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!is_compute(cells.kind[i]) || cells.step[i] == kUnknown || !counts(cells.step[i])) continue;
      Scatter& s = scatter[static_cast<size_t>(cells.part[i])][{cells.kind[i], cells.chunk[i]}];
      const auto dur = static_cast<double>(cells.dur_ns(i));
      s.count += 1;
      s.sum += dur;
      s.squares += dur * dur;
    }
    std::vector<double> errors(scatter.size(), 0);
    for (size_t p = 0; p < scatter.size(); ++p) {
      double total = 0, variance = 0;
      for (const auto& [key, s] : scatter[p]) {
        total += s.sum;
        // Of a single cell nothing is known: it could be twice as long.
        variance +=
            s.count > 1 ? std::max(0.0, s.squares - s.sum * s.sum / s.count) * s.count / (s.count - 1) : s.squares;
      }
      errors[p] = total > 0 ? std::sqrt(variance) / total : 0;
    }
    return errors;
  }

  void find_steps() {
    struct Member {
      int32_t stage, part;
      double busy_ns;
    };
    std::map<int32_t, std::vector<double>> by_stage;  // mean busy, steps that count
    for (size_t i = 0; i < sums_.ranks.size();) {
      const int32_t step = sums_.ranks[i].step;
      std::vector<Member> members;
      for (; i < sums_.ranks.size() && sums_.ranks[i].step == step; ++i) {
        const RankSums& rank = sums_.ranks[i];
        if (part(rank.part).stage != kUnknown)
          members.push_back({part(rank.part).stage, rank.part, static_cast<double>(rank.busy_ns)});
      }
      std::stable_sort(members.begin(), members.end(),
                       [](const Member& a, const Member& b) { return a.stage < b.stage; });
      for (size_t m = 0; m < members.size();) {
        StragglerStep row;
        row.step = step;
        row.stage = members[m].stage;
        std::vector<double> busy;
        const size_t first = m;
        for (; m < members.size() && members[m].stage == row.stage; ++m) busy.push_back(members[m].busy_ns);
        for (const double ns : busy) row.busy_ns += ns / static_cast<double>(busy.size());
        const std::vector<double> ratios = against_others(busy);
        for (size_t k = 0; busy.size() > 1 && k < ratios.size(); ++k) {
          const int32_t w = worker_of_[static_cast<size_t>(members[first + k].part)];
          if (w < 0) continue;
          StragglerWorker& worker = out_.workers[static_cast<size_t>(w)];
          const double error = worker.error * std::sqrt(static_cast<double>(worker.steps));
          const bool slow = ratios[k] >= 1 + std::max(kStragglerRatio - 1, kErrors * error);
          if (slow && counts(step)) ++worker.slow_steps;
          if (row.slowest_part < 0 || ratios[k] > row.slowest_ratio) {
            row.slowest_part = members[first + k].part;
            row.slowest_ratio = ratios[k];
            row.slow = slow;
          }
        }
        if (counts(step)) by_stage[row.stage].push_back(row.busy_ns);
        out_.steps.push_back(row);
      }
    }
    std::map<int32_t, double> usual;
    for (auto& [stage, values] : by_stage) usual[stage] = median_of(std::move(values));
    for (StragglerStep& row : out_.steps)
      if (const auto it = usual.find(row.stage); it != usual.end() && it->second > 0)
        row.ratio = row.busy_ns / it->second;
  }

  void find_correlations() {
    struct Sums {
      double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    };
    struct Job {
      int32_t part, chunk, micro_batch;
      bool backward;
      double dur_ns;
      auto key() const { return std::tie(part, chunk, micro_batch); }
    };
    std::map<int32_t, Sums> by_stage;
    std::vector<Job> jobs;
    std::vector<std::pair<double, double>> pairs;
    for (const GraphStep& step : graph_.steps) {
      if (!step.counts) continue;
      jobs.clear();
      for (uint32_t i = step.begin; i < step.end; ++i) {
        const CellKind kind = graph_.kind[i];
        const bool backward = kind == CellKind::kBackward || kind == CellKind::kInputGrad;
        if ((kind == CellKind::kForward || backward) && graph_.micro_batch[i] != kUnknown &&
            graph_.stage[i] != kUnknown)
          jobs.push_back({graph_.part[i], graph_.chunk[i], graph_.micro_batch[i], backward, graph_.dur_ns[i]});
      }
      std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
        return std::tuple(a.key(), a.backward, a.dur_ns) < std::tuple(b.key(), b.backward, b.dur_ns);
      });
      for (size_t i = 0; i < jobs.size();) {
        const int32_t p = jobs[i].part, chunk = jobs[i].chunk;
        pairs.clear();
        double f = 0, b = 0;
        while (i < jobs.size() && jobs[i].part == p && jobs[i].chunk == chunk) {
          size_t j = i;
          while (j < jobs.size() && jobs[j].key() == jobs[i].key()) ++j;
          if (j - i == 2 && !jobs[i].backward && jobs[i + 1].backward) {
            pairs.emplace_back(jobs[i].dur_ns, jobs[i + 1].dur_ns);
            f += jobs[i].dur_ns;
            b += jobs[i + 1].dur_ns;
          }
          i = j;
        }
        const auto n = static_cast<double>(pairs.size());
        if (pairs.size() < 3 || !(f > 0) || !(b > 0)) continue;  // of two, one is above the mean and one below
        Sums& s = by_stage[part(p).stage];
        for (const auto& [forward, backward] : pairs) {
          const double x = forward * n / f - 1, y = backward * n / b - 1;
          s.n += 1;
          s.x += x;
          s.y += y;
          s.xx += x * x;
          s.yy += y * y;
          s.xy += x * y;
        }
      }
    }
    for (const auto& [stage, s] : by_stage) {
      FbCorrelation c;
      c.stage = stage;
      c.pairs = static_cast<int64_t>(s.n);
      const double vx = s.xx - s.x * s.x / s.n, vy = s.yy - s.y * s.y / s.n;
      c.spread = std::sqrt(std::max(0.0, vx / s.n));
      // Spreads of parts in a billion are rounding.
      c.r = c.pairs >= kLeastPairs && vx / s.n > 1e-18 && vy / s.n > 1e-18
                ? (s.xy - s.x * s.y / s.n) / std::sqrt(vx * vy)
                : kNaN;
      c.data_dependent = c.r >= kCorrelated && c.spread >= kLeastSpread;
      out_.correlations.push_back(c);
    }
  }

  void find_delays() {
    delays_ = host_delays(trace_, graph_);
    for (StragglerWorker& worker : out_.workers) {
      const RankDelays& own = delays_.ranks[static_cast<size_t>(worker.part)];
      worker.cells = own.cells;
      worker.pauses = static_cast<int64_t>(own.pause_at_ns.size());
      worker.pause_ns = own.pause_ns;
      worker.late_ns = own.late_ns;
      if (own.pause_at_ns.size() < 5) continue;
      std::vector<double> between;
      double sum = 0, squares = 0;
      for (size_t i = 1; i < own.pause_at_ns.size(); ++i) {
        between.push_back(static_cast<double>(own.pause_at_ns[i] - own.pause_at_ns[i - 1]));
        sum += between.back();
        squares += between.back() * between.back();
      }
      const auto n = static_cast<double>(between.size());
      const double mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
      if (mean > 0 && deviation <= kSteadyPeriod * mean) worker.period_ns = median_of(between);
    }
  }

  void judge() {
    for (StragglerWorker& worker : out_.workers) {
      const RankDelays& own = delays_.ranks[static_cast<size_t>(worker.part)];
      const bool alone = std::isnan(worker.ratio);
      const bool slow = !alone && worker.ratio >= 1 + std::max(kStragglerRatio - 1, kErrors * worker.error);
      if (slow && static_cast<double>(worker.slow_steps) >= kStragglerSteps * static_cast<double>(worker.steps))
        worker.verdict = StragglerVerdict::kPersistent;
      else if (own.late)
        worker.verdict = StragglerVerdict::kLateLaunch;
      else if (worker.pauses >= kLeastPauses)
        worker.verdict = StragglerVerdict::kPauses;
      else if (worker.slow_steps > 0)
        worker.verdict = StragglerVerdict::kNowAndThen;
      else if (alone)
        worker.verdict = StragglerVerdict::kAlone;
    }
  }

  void price();

  const Trace& trace_;
  const StepGraph& graph_;
  PipelineSums sums_;
  std::vector<int32_t> without_;
  std::vector<int32_t> worker_of_;  // by part; −1
  std::map<int32_t, double> stage_ratio_;
  HostDelays delays_;
  Stragglers out_;
};

// What every operation would take if the micro-batches of a stage and step were all alike.
std::vector<double> balanced_ns(const StepGraph& graph, const std::vector<double>& ratio_of_part) {
  std::vector<double> balanced = graph.dur_ns;
  std::map<std::tuple<int32_t, CellKind, int32_t>, std::pair<double, double>> sums;
  for (const GraphStep& step : graph.steps) {
    sums.clear();
    const auto key = [&](uint32_t i) { return std::tuple(graph.stage[i], graph.kind[i], graph.chunk[i]); };
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (!is_compute(graph.kind[i])) continue;
      auto& [sum, weight] = sums[key(i)];
      sum += graph.dur_ns[i];
      weight += ratio_of_part[static_cast<size_t>(graph.part[i])];
    }
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (!is_compute(graph.kind[i])) continue;
      const auto& [sum, weight] = sums[key(i)];
      if (weight > 0) balanced[i] = sum / weight * ratio_of_part[static_cast<size_t>(graph.part[i])];
    }
  }
  return balanced;
}

void Finder::price() {
  std::vector<StragglerLoss> causes;
  std::vector<double> ratio_of_part(trace_.parts.size(), 1);
  std::vector<size_t> slow;
  int64_t pauses = 0, with_pauses = 0, most = 0, delayed_cells = 0;
  int32_t most_part = -1;
  double pause_ns = 0;
  for (size_t w = 0; w < out_.workers.size(); ++w) {
    const StragglerWorker& worker = out_.workers[w];
    if (worker.verdict == StragglerVerdict::kPersistent) {
      slow.push_back(w);
      ratio_of_part[static_cast<size_t>(worker.part)] = worker.ratio;
    }
    delayed_cells += worker.cells;
    pauses += worker.pauses;
    pause_ns += worker.pause_ns;
    with_pauses += worker.pauses > 0 ? 1 : 0;
    if (worker.pauses > most) {
      most = worker.pauses;
      most_part = worker.part;
    }
  }
  std::stable_sort(slow.begin(), slow.end(),
                   [&](size_t a, size_t b) { return out_.workers[a].ratio > out_.workers[b].ratio; });
  for (size_t k = 0; k < std::min(slow.size(), kMostPriced / 2); ++k) {
    const StragglerWorker& worker = out_.workers[slow[k]];
    StragglerLoss loss;
    loss.part = worker.part;
    loss.ratio = worker.ratio;
    loss.count = worker.slow_steps;
    loss.of = worker.steps;
    causes.push_back(loss);
  }
  for (const StragglerWorker& worker : out_.workers) {
    if (worker.verdict != StragglerVerdict::kLateLaunch || causes.size() >= kMostPriced - 8) continue;
    StragglerLoss loss;
    loss.cause = StragglerCause::kLateLaunch;
    loss.part = worker.part;
    loss.each_ns = worker.late_ns;
    loss.count = loss.of = worker.cells;
    causes.push_back(loss);
  }
  if (pauses >= kLeastPauses) {
    StragglerLoss loss;
    loss.cause = StragglerCause::kPauses;
    loss.count = pauses;
    loss.of = delayed_cells;
    loss.workers = with_pauses;
    loss.each_ns = pause_ns / static_cast<double>(pauses);
    if (static_cast<double>(most) > kMostOfPauses * static_cast<double>(pauses)) loss.part = most_part;
    causes.push_back(loss);
  }
  const FbCorrelation* longest = nullptr;
  size_t dependent = 0;
  for (const FbCorrelation& c : out_.correlations) {
    dependent += c.data_dependent ? 1 : 0;
    if (c.data_dependent && (!longest || c.spread > longest->spread)) longest = &c;
  }
  // What lies in the data shows on every stage; half of them, where some are too even to tell.
  if (longest && dependent * 2 >= out_.correlations.size()) {
    StragglerLoss loss;
    loss.cause = StragglerCause::kLongSequences;
    loss.ratio = longest->r;
    loss.spread = longest->spread;
    loss.count = longest->pairs;
    causes.push_back(loss);
  }
  for (const auto& [stage, ratio] : stage_ratio_) {
    if (ratio < kSlowStageRatio || causes.size() >= kMostPriced) continue;
    StragglerLoss loss;
    loss.cause = StragglerCause::kSlowStage;
    loss.stage = stage;
    loss.ratio = ratio;
    causes.push_back(loss);
  }

  const bool balance = std::any_of(causes.begin(), causes.end(),
                                   [](const StragglerLoss& c) { return c.cause == StragglerCause::kLongSequences; });
  const std::vector<double> balanced = balance ? balanced_ns(graph_, ratio_of_part) : std::vector<double>{};
  const WorldTimes times = replay_worlds(
      graph_, causes.size() + 1, [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
        std::fill(dur_ns.begin(), dur_ns.end(), graph_.dur_ns[op]);
        // What messages, collectives and the optimizer are late by is mostly waiting for ranks that nothing recorded
        // ties them to: kept, it would eat every saving.
        std::fill(delay_ns.begin(), delay_ns.end(), is_compute(graph_.kind[op]) ? graph_.delay_ns[op] : 0.0);
        if (!is_compute(graph_.kind[op])) return;
        for (size_t k = 0; k < dur_ns.size(); ++k) {
          if (first + k == 0) continue;  // as recorded
          const StragglerLoss& cause = causes[first + k - 1];
          switch (cause.cause) {
            case StragglerCause::kSlowWorker:
              if (graph_.part[op] == cause.part) dur_ns[k] /= cause.ratio;
              break;
            case StragglerCause::kSlowStage:
              if (graph_.stage[op] == cause.stage) dur_ns[k] /= cause.ratio;
              break;
            case StragglerCause::kLateLaunch:
              if (graph_.part[op] == cause.part)
                delay_ns[k] = std::max(0.0, delay_ns[k] - std::max(0.0, cause.each_ns - delays_.usual_late_ns));
              break;
            case StragglerCause::kPauses: delay_ns[k] -= delays_.pause_of_op[op]; break;
            case StragglerCause::kLongSequences: dur_ns[k] = balanced[op]; break;
            case StragglerCause::kSlowStep: break;
          }
        }
      });
  out_.step_ns = times.mean_ns(0);
  for (size_t c = 0; c < causes.size(); ++c) causes[c].saving_ns = out_.step_ns - times.mean_ns(c + 1);
  // Long steps stand outside the means: what they cost is spread over all steps.
  std::vector<double> spans;
  for (const StepSums& step : sums_.steps) spans.push_back(static_cast<double>(step.span_ns()));
  const double usual = median_of(spans);
  for (const StepSums& step : sums_.steps) {
    if (counts(step.step) || causes.size() >= 2 * kMostPriced || !(usual > 0)) continue;
    StragglerLoss loss;
    loss.cause = StragglerCause::kSlowStep;
    loss.step = step.step;
    loss.ratio = static_cast<double>(step.span_ns()) / usual;
    loss.saving_ns = (static_cast<double>(step.span_ns()) - usual) / static_cast<double>(sums_.steps.size());
    causes.push_back(loss);
  }
  for (StragglerLoss& cause : causes) {
    cause.saving_share = out_.step_ns > 0 ? cause.saving_ns / out_.step_ns : kNaN;
    if (cause.saving_share >= kLeastWorth) out_.causes.push_back(cause);
  }
  std::stable_sort(out_.causes.begin(), out_.causes.end(),
                   [](const StragglerLoss& a, const StragglerLoss& b) { return a.saving_ns > b.saving_ns; });
}

}  // namespace

std::string_view straggler_verdict_name(StragglerVerdict verdict) {
  switch (verdict) {
    case StragglerVerdict::kFine: return "fine";
    case StragglerVerdict::kPersistent: return "persistent";
    case StragglerVerdict::kNowAndThen: return "now and then";
    case StragglerVerdict::kLateLaunch: return "late launches";
    case StragglerVerdict::kPauses: return "pauses";
    case StragglerVerdict::kAlone: return "no peer";
  }
  return "";
}

std::string_view straggler_cause_name(StragglerCause cause) {
  switch (cause) {
    case StragglerCause::kSlowWorker: return "slow worker";
    case StragglerCause::kSlowStage: return "slow stage";
    case StragglerCause::kLongSequences: return "long sequences";
    case StragglerCause::kPauses: return "pauses";
    case StragglerCause::kLateLaunch: return "late launches";
    case StragglerCause::kSlowStep: return "slow step";
  }
  return "";
}

Stragglers find_stragglers(const Trace& trace, const StepGraph& graph) { return Finder(trace, graph).find(); }

}  // namespace stageline
