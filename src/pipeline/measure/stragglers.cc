#include "pipeline/measure/stragglers.h"

#include "base/parallel.h"
#include "model/statistics.h"
#include "pipeline/measure/host_delays.h"

namespace stageline {
namespace {

constexpr double kErrors = 4;      // standard errors by which a ratio must exceed 1
constexpr int64_t kMinPauses = 3;  // pauses that a worker must have so that they are its verdict
// Most scatter of the times between pauses that still are steady, as a share of their mean.
constexpr double kSteadyPeriod = 0.25;

// Median of sorted values without the one at `skip`; NaN when it is the only one.
double median_without(const std::vector<double>& sorted, size_t skip) {
  const size_t n = sorted.size() - 1;
  if (n == 0) return kNaN;
  const auto at = [&](size_t k) { return sorted[k < skip ? k : k + 1]; };
  return n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
}

// Each value ÷ the median of the other values; NaN where there are no others or their median is 0.
std::vector<double> against_others(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t a) { return std::pair(values[a], a); });
  std::vector<double> sorted, ratio(values.size(), kNaN);
  for (const size_t i : order) sorted.push_back(values[i]);
  for (size_t k = 0; k < order.size(); ++k) {
    const double others = median_without(sorted, k);
    if (others > 0) ratio[order[k]] = values[order[k]] / others;
  }
  return ratio;
}

// For each part: the sum over kinds of the median of its compute cells times their number, steps in `without` left out.
std::vector<double> usual_busy_ns(const Trace& trace, const std::vector<int32_t>& without) {
  constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  const Cells& cells = trace.cells;
  std::vector<std::vector<RankRange>> of_part(trace.parts.size());
  for (const RankRange& range : rank_ranges(cells))
    if (range.step != kUnknown && !std::ranges::binary_search(without, range.step))
      of_part[range.part].push_back(range);
  std::vector<double> usual(trace.parts.size());
  parallel_for(of_part.size(), [&](size_t part) {
    ByEnum<CellKind, std::vector<double>, kKinds> durations;
    for (const RankRange& range : of_part[part])
      for (size_t i = range.begin; i < range.end; ++i)
        if (is_compute(cells.kind[i])) durations[cells.kind[i]].push_back(cells.dur_ns(i));
    for (std::vector<double>& values : durations) {
      const double count = values.size();
      if (count > 0) usual[part] += count * median_of(std::move(values));
    }
  });
  return usual;
}

// Sums over the cells of one kind and chunk.
struct Scatter {
  double count = 0, sum = 0, squares = 0;
};

class Finder {
 public:
  Finder(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage, const PipelineSums& sums)
      : trace_(trace), graph_(graph), coverage_(coverage), sums_(sums), without_(sums.outliers) {}

  Stragglers find() {
    find_loads();
    find_steps();
    find_correlations();
    find_delays();
    judge();
    find_slow_steps();
    return std::move(out_);
  }

 private:
  bool counts(int32_t step) const { return !std::ranges::binary_search(without_, step); }
  const Part& part(int32_t p) const { return trace_.parts[p]; }

  void find_loads() {
    std::vector<double> busy(trace_.parts.size(), 0);
    std::vector<int64_t> steps(trace_.parts.size(), 0);
    for (const RankSums& rank : sums_.ranks) {
      if (!counts(rank.step)) continue;
      busy[rank.part] += rank.busy_ns;
      ++steps[rank.part];
    }
    worker_of_.assign(trace_.parts.size(), -1);
    std::map<int32_t, std::vector<int32_t>> by_stage;
    for (uint32_t p = 0; p < busy.size(); ++p) {
      if (steps[p] == 0 || trace_.parts[p].stage == kUnknown) continue;
      worker_of_[p] = static_cast<int32_t>(out_.workers.size());
      by_stage[trace_.parts[p].stage].push_back(worker_of_[p]);
      StragglerWorker worker{.part = static_cast<int32_t>(p), .steps = steps[p], .busy_ns = busy[p] / steps[p]};
      worker.period_ns = worker.s_w = kNaN;
      out_.workers.push_back(worker);
    }
    const std::vector<double> errors = relative_errors();
    const std::vector<double> usual = usual_busy_ns(trace_, without_);
    for (const auto& [stage, members] : by_stage) {
      std::vector<double> all, cells;
      double sum = 0;
      for (const int32_t w : members) {
        const StragglerWorker& worker = out_.workers[w];
        all.push_back(worker.busy_ns);
        cells.push_back(usual[worker.part] / worker.steps);
        sum += worker.busy_ns;
      }
      const std::vector<double> of_all = against_others(all), of_cells = against_others(cells);
      const auto peers = static_cast<double>(members.size()) - 1;
      for (size_t k = 0; k < members.size(); ++k) {
        StragglerWorker& worker = out_.workers[members[k]];
        worker.busy_ratio = peers > 0 ? worker.busy_ns * members.size() / sum : kNaN;
        worker.ratio = peers > 0 ? std::min(of_all[k], of_cells[k]) : kNaN;
        // The median of n values scatters √1.57 ≈ 1.25 times as much as their mean.
        worker.error = peers > 0 ? errors[worker.part] * std::sqrt(1 + 1.57 / peers) : kNaN;
      }
    }
  }

  // Standard error of each part's mean busy time as a share of it, from the scatter of its cells within a kind and
  // chunk.
  std::vector<double> relative_errors() const {
    std::vector<std::map<std::pair<CellKind, int32_t>, Scatter>> scatter(trace_.parts.size());
    const Cells& cells = trace_.cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!is_compute(cells.kind[i]) || cells.step[i] == kUnknown || !counts(cells.step[i])) continue;
      Scatter& s = scatter[cells.part[i]][{cells.kind[i], cells.chunk[i]}];
      const double dur = cells.dur_ns(i);
      s.count += 1;
      s.sum += dur;
      s.squares += dur * dur;
    }
    std::vector<double> errors(scatter.size(), 0);
    for (size_t p = 0; p < scatter.size(); ++p) {
      double total = 0, variance = 0;
      for (const auto& [key, s] : scatter[p]) {
        total += s.sum;
        // A single cell says nothing about scatter; it might just as well take twice as long.
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
    std::map<int32_t, std::vector<double>> by_stage;  // mean busy time of the stage's workers, over steps that count
    for (size_t i = 0; i < sums_.ranks.size();) {
      const int32_t step = sums_.ranks[i].step;
      std::vector<Member> members;
      for (; i < sums_.ranks.size() && sums_.ranks[i].step == step; ++i) {
        const RankSums& rank = sums_.ranks[i];
        if (part(rank.part).stage != kUnknown)
          members.push_back({part(rank.part).stage, rank.part, static_cast<double>(rank.busy_ns)});
      }
      sort_stably(members, {}, &Member::stage);
      for (size_t m = 0; m < members.size();) {
        StragglerStep row{.step = step, .stage = members[m].stage};
        std::vector<double> busy;
        const size_t first = m;
        for (; m < members.size() && members[m].stage == row.stage; ++m) busy.push_back(members[m].busy_ns);
        for (const double ns : busy) row.busy_ns += ns / busy.size();
        const std::vector<double> ratios = against_others(busy);
        for (size_t k = 0; busy.size() > 1 && k < ratios.size(); ++k) {
          const int32_t w = worker_of_[members[first + k].part];
          if (w < 0) continue;
          StragglerWorker& worker = out_.workers[w];
          const double error = worker.error * std::sqrt(worker.steps);
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

  // Whether forwards and backwards of the same micro-batches are long together, as with sequences of different lengths.
  void find_correlations() {
    std::map<int32_t, PairSums> by_stage;
    for (const GraphStep& step : graph_.steps)
      if (step.counts) add_pairs(step, by_stage);
    for (const auto& [stage, s] : by_stage) {
      FbCorrelation c{.stage = stage, .pairs = static_cast<int64_t>(s.n)};
      const double vx = s.xx - s.x * s.x / s.n, vy = s.yy - s.y * s.y / s.n;
      c.spread = std::sqrt(std::max(0.0, vx / s.n));
      // A spread of less than one part in a billion is rounding.
      c.r = c.pairs >= kMinPairs && vx / s.n > 1e-18 && vy / s.n > 1e-18 ? (s.xy - s.x * s.y / s.n) / std::sqrt(vx * vy)
                                                                         : kNaN;
      c.data_dependent = c.r >= kCorrelated && c.spread >= kMinSpread;
      out_.correlations.push_back(c);
    }
  }

  // Sums over pairs of a forward (x) and a backward (y), each as a share of its mean, less 1.
  struct PairSums {
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    void add(double forward, double backward) {
      n += 1;
      x += forward;
      y += backward;
      xx += forward * forward;
      yy += backward * backward;
      xy += forward * backward;
    }
  };
  struct Job {
    int32_t part, chunk, micro_batch;
    bool backward;
    double dur_ns;
    auto key() const { return std::tie(part, chunk, micro_batch); }
  };

  // Returns the step's forwards and backwards, those of a micro-batch next to each other.
  std::vector<Job> jobs_of(const GraphStep& step) const {
    std::vector<Job> jobs;
    for (uint32_t i = step.begin; i < step.end; ++i) {
      const bool backward = is_backward(graph_.kind[i]);
      if (graph_.types[graph_.type[i]].overlapped) continue;  // it also contains the time of another micro-batch
      if ((graph_.kind[i] == CellKind::kForward || backward) && graph_.micro_batch[i] != kUnknown &&
          graph_.stage(i) != kUnknown)
        jobs.push_back({graph_.part[i], graph_.chunk[i], graph_.micro_batch[i], backward, graph_.dur_ns[i]});
    }
    std::ranges::sort(jobs, {}, [](const Job& a) { return std::tuple(a.key(), a.backward, a.dur_ns); });
    return jobs;
  }

  // Adds the pairs of each part and chunk, against their own means.
  void add_pairs(const GraphStep& step, std::map<int32_t, PairSums>& by_stage) const {
    const std::vector<Job> jobs = jobs_of(step);
    std::vector<std::pair<double, double>> pairs;
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
      const double n = pairs.size();
      // Two values are always one above and one below their mean.
      if (pairs.size() < 3 || !(f > 0) || !(b > 0)) continue;
      for (const auto& [forward, backward] : pairs)
        by_stage[part(p).stage].add(forward * n / f - 1, backward * n / b - 1);
    }
  }

  void find_delays() {
    delays_ = host_delays(trace_, graph_, coverage_);
    for (StragglerWorker& worker : out_.workers) {
      const RankDelays& own = delays_.ranks[worker.part];
      worker.cells = own.cells;
      worker.pauses = own.pause_at_ns.size();
      worker.pause_ns = own.pause_ns;
      worker.late_ns = own.late_ns;
      if (own.pause_at_ns.size() < 5) continue;
      std::vector<double> between;
      double sum = 0, squares = 0;
      for (size_t i = 1; i < own.pause_at_ns.size(); ++i) {
        between.push_back(own.pause_at_ns[i] - own.pause_at_ns[i - 1]);
        sum += between.back();
        squares += between.back() * between.back();
      }
      const double n = between.size();
      const double mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
      if (mean > 0 && deviation <= kSteadyPeriod * mean) worker.period_ns = median_of(between);
    }
  }

  void judge() {
    for (StragglerWorker& worker : out_.workers) {
      const RankDelays& own = delays_.ranks[worker.part];
      const bool alone = std::isnan(worker.ratio);
      const bool slow = !alone && worker.ratio >= 1 + std::max(kStragglerRatio - 1, kErrors * worker.error);
      if (slow && worker.slow_steps >= kStragglerSteps * worker.steps) worker.verdict = StragglerVerdict::kPersistent;
      else if (own.late) worker.verdict = StragglerVerdict::kLateLaunch;
      else if (worker.pauses >= kMinPauses) worker.verdict = StragglerVerdict::kPauses;
      else if (worker.slow_steps > 0) worker.verdict = StragglerVerdict::kSometimes;
      else if (alone) worker.verdict = StragglerVerdict::kAlone;
    }
  }

  // Outlier steps are not part of the means; what they cost is spread over all steps.
  void find_slow_steps() {
    auto spans = mapped<double>(sums_.steps, &StepSums::span_ns);
    const double usual = median_of(spans);
    for (const StepSums& step : sums_.steps) {
      if (counts(step.step) || !(usual > 0)) continue;
      const double span = step.span_ns();
      out_.slow_steps.push_back({step.step, span / usual, (span - usual) / sums_.steps.size()});
    }
  }

  const Trace& trace_;
  const StepGraph& graph_;
  const RunCoverage& coverage_;
  const PipelineSums& sums_;
  const std::vector<int32_t>& without_;
  std::vector<int32_t> worker_of_;  // for each part its index in out_.workers; −1: none
  HostDelays delays_;
  Stragglers out_;
};

}  // namespace

std::string_view straggler_verdict_name(StragglerVerdict verdict) {
  static constexpr auto kTexts =
      texts_by<StragglerVerdict::kAlone>({"fine", "persistent", "sometimes", "late launches", "pauses", "no peer"});
  return kTexts[verdict];
}

Stragglers find_stragglers(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage,
                           const PipelineSums& sums) {
  return Finder(trace, graph, coverage, sums).find();
}

double StragglerWorker::beyond_ns() const {
  if (steps == 0) return 0;
  const double longer = ratio > 1 ? busy_ns * (1 - 1 / ratio) : 0;
  const double late = verdict == StragglerVerdict::kLateLaunch ? late_ns * cells : 0;
  return longer + (pause_ns + late) / steps;
}

std::vector<size_t> worst_workers(const Stragglers& stragglers) {
  const std::vector<StragglerWorker>& workers = stragglers.workers;
  std::vector<size_t> order;
  for (size_t i = 0; i < workers.size(); ++i)
    if (workers[i].beyond_ns() > 0) order.push_back(i);
  const auto key = [&](size_t i) {
    const StragglerVerdict verdict = workers[i].verdict;
    const bool is_well = verdict == StragglerVerdict::kFine || verdict == StragglerVerdict::kAlone;
    return std::tuple(is_well, -workers[i].beyond_ns(), workers[i].part);
  };
  std::ranges::sort(order, {}, key);
  return order;
}

Text straggler_words(const StragglerWorker& worker) {
  Args args;
  args.set("ratio", fixed(worker.ratio, 2)).set("slow", grouped(worker.slow_steps)).count("steps", worker.steps);
  args.set("late", human_duration(worker.late_ns)).count("pauses", worker.pauses);
  if (worker.pauses > 0) args.set("pause", human_duration(worker.pause_ns / worker.pauses));
  args.set("period", std::isfinite(worker.period_ns) ? human_duration(worker.period_ns) : "");
  switch (worker.verdict) {
    case StragglerVerdict::kFine: return {};
    case StragglerVerdict::kPersistent: return words("straggler.persistent", args);
    case StragglerVerdict::kSometimes: return words("straggler.sometimes", args);
    case StragglerVerdict::kLateLaunch: return words("straggler.late", args);
    case StragglerVerdict::kPauses: return words("straggler.pauses", args);
    case StragglerVerdict::kAlone: return words("straggler.alone");
  }
  return {};
}

}  // namespace stageline
