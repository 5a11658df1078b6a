#include "diagnosis/causes/cell_times.h"

#include "base/sorting.h"
#include "model/intervals.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr size_t kMaxPlaces = 10'000'000;
constexpr int32_t kMaxChunks = 100'000'000;
constexpr size_t kMinBatches = 8;      // that a correlation needs
constexpr size_t kMinCertainOnes = 5;  // that it needs if it differs from 0 by kErrors
// The minimum correlation between even and odd stages by which the cells of a micro-batch agree.
constexpr double kStagesAlike = 0.5;
constexpr double kMinUneven = 0.03;  // minimum standard deviation of a cell's work with which data count as uneven
constexpr double kAlike = 0.8;       // minimum correlation with which lengths are properties of the micro-batches
constexpr double kErrors = 3;        // standard errors by which a correlation must differ from 0

using Points = std::vector<std::pair<double, double>>;

// Returns the correlation over the points of all these lists, one after the other.
double correlation_of(const std::vector<const Points*>& lists) {
  const size_t count = sum_over<size_t>(lists, [](const Points* points) { return points->size(); });
  if (count < kMinCertainOnes) return 0;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  const double n = count;
  for (const Points* points : lists)
    for (const auto& [a, b] : *points) x += a / n, y += b / n;
  for (const Points* points : lists)
    for (const auto& [a, b] : *points) xx += (a - x) * (a - x), yy += (b - y) * (b - y), xy += (a - x) * (b - y);
  const double r = xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
  const bool certain = std::atanh(std::clamp(r, -1 + 1e-9, 1 - 1e-9)) * std::sqrt(n - 3) > kErrors;
  return count >= kMinBatches || certain ? r : 0;
}
double correlation_of(const Points& points) { return correlation_of(std::vector<const Points*>{&points}); }

}  // namespace

CellTimes::CellTimes(const Trace& trace, const StepGraph& graph, const std::vector<bool>& counts,
                     std::vector<double> work)
    : graph_(graph), counts_(counts), work_(std::move(work)) {
  const std::vector<uint32_t> pairs = overlapped_pairs(trace.cells);
  std::vector<uint32_t> partner;  // for each operation; empty: no pair overlaps
  if (std::ranges::any_of(pairs, [](uint32_t other) { return other != kNoPair; })) {
    std::vector<uint32_t> op_of(trace.cells.size(), kNone);
    for (uint32_t op = 0; op < graph.size(); ++op)
      if (graph.cell[op] != kNoCell) op_of[graph.cell[op]] = op;
    overlapped_.resize(graph.size());
    partner.assign(graph.size(), kNone);
    for (uint32_t op = 0; op < graph.size(); ++op) {
      if (graph.cell[op] == kNoCell || pairs[graph.cell[op]] == kNoPair) continue;
      overlapped_[op] = 1;
      partner[op] = op_of[pairs[graph.cell[op]]];
    }
  }
  find_workers();
  worker_factor_.assign(workers_.size(), 1.0);
  left_out_.assign(workers_.size(), 0);
  const std::vector<double> usual =
      OpValues(
          counted_ops(graph_, counts_), place_count(),
          [&](uint32_t op) { return worker_of(op) == kNone ? kNone : static_cast<uint32_t>(place_of(op)); },
          [&](uint32_t op) { return work_ns(op); })
          .take_medians();
  positions_ = find_positions(
      graph, counts,
      [&](uint32_t op) {
        return worker_of(op) != kNone && usual[place_of(op)] > 0 ? work_ns(op) / usual[place_of(op)] : 0;
      },
      [&](uint32_t op) { return static_cast<uint32_t>(place_of(op)); }, place_count());
  find_sequences(partner, usual);
  // Where all stages agree but no micro-batch is much longer, the differences are lengths too, not routing. With few
  // micro-batches it is unknown whether they agree.
  if (overlapped_.empty() && sequences_.compared && (!sequences_.on_all_stages || !factor_.empty()))
    find_routing(usual);
}

bool CellTimes::peers_apart() const {
  return std::ranges::any_of(graph_.types, [](const GraphType& type) { return type.inside; });
}

void CellTimes::find_workers() {
  const StepGraph& g = graph_;
  stages_ = std::max(g.stage_count, 1);
  const OpBlocks blocks(g.size(), g.stage_of.size());
  std::vector<int32_t> chunks(blocks.size(), 1);
  blocks.each([&](size_t b, uint32_t op) {
    if (is_compute(g.kind[op])) chunks[b] = std::max(chunks[b], std::min(g.chunk[op], kMaxChunks) + 1);
  });
  chunks_ = *std::ranges::max_element(chunks);
  // Such labels are not chunks of a model.
  if (place_count() > kMaxPlaces) chunks_ = 1;
  std::vector<uint8_t> works(blocks.size() * g.stage_of.size(), 0);
  blocks.each([&](size_t b, uint32_t op) {
    if (is_compute(g.kind[op]) && (chunks_ == 1 || g.chunk[op] >= 0))
      works[b * g.stage_of.size() + static_cast<size_t>(g.part[op])] = 1;
  });
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> parts;  // key: stage and replica
  for (size_t part = 0; part < g.stage_of.size(); ++part) {
    bool any = false;
    for (size_t b = 0; b < blocks.size(); ++b) any = any || works[b * g.stage_of.size() + part] != 0;
    if (any && g.stage_of[part] != kUnknown) parts[{g.stage_of[part], std::max(g.dp_of[part], 0)}].push_back(part);
  }
  of_part_.assign(g.stage_of.size(), kNone);
  const bool apart = peers_apart();
  for (const auto& [place, list] : parts)
    for (const size_t part : list) {
      if (apart || part == list.front()) workers_.push_back({place.second, place.first, static_cast<int32_t>(part)});
      of_part_[part] = static_cast<uint32_t>(workers_.size() - 1);
    }
}

// Lengths are used only where forwards and backwards are long together: a cell that is long by chance says nothing
// about its micro-batch.
void CellTimes::find_sequences(const std::vector<uint32_t>& partner, const std::vector<double>& usual) {
  const StepGraph& g = graph_;
  const auto ratio = [&](uint32_t op) {
    return worker_of(op) != kNone && usual[place_of(op)] > 0 ? work_ns(op) / (usual[place_of(op)] * position_factor(op))
                                                             : 0;
  };
  SequenceLengths lengths = sequence_lengths(g, counts_, ratio, partner, kLong);
  for (const SequenceLengths::Batch& batch : lengths.batches) {
    if (!counts_[batch.step]) continue;
    ++sequences_.all;
    if (batch.factor < kLong) continue;
    ++sequences_.long_ones;
    sequences_.long_factor += batch.factor;
  }
  sequences_.correlation = correlation_of(lengths.forward_backward);
  sequences_.compared =
      stages_ < 2 || sequences_.all >= static_cast<int64_t>(kMinBatches) || sequences_.correlation > 0;
  if (sequences_.long_ones > 0) sequences_.long_factor /= sequences_.long_ones;
  if (sequences_.correlation < kAlike) return;
  lengths.find_batches(g);
  sequences_.on_all_stages = stages_agree(lengths, ratio);
  if (!sequences_.on_all_stages || sequences_.long_ones == 0) return;
  factor_.assign(g.size(), 1.0F), without_long_.assign(g.size(), 1.0F), even_.assign(g.size(), 1.0F);
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (lengths.batch_of[op] == kNone) continue;
    // In an overlapped pair each half counts by its part.
    const bool pair = !partner.empty() && partner[op] != kNone && lengths.batch_of[partner[op]] != kNone;
    const double part = !pair ? 1 : g.kind[op] == CellKind::kForward ? lengths.forward_part : 1 - lengths.forward_part;
    double factor = 0, usual_ones = 0, length = 0, even = 0;
    bool known = true;
    for (const bool other : {false, true}) {
      const double share = other ? 1 - part : part;
      if (!(share > 0)) continue;
      const SequenceLengths::Batch& batch = lengths.batches[lengths.batch_of[other ? partner[op] : op]];
      factor += share * batch.factor;
      usual_ones += share * (batch.factor < kLong ? batch.factor : 1);
      length += share * batch.length;
      even += share * batch.even;
      known = known && batch.length > 0;
    }
    if (!(factor > 0)) continue;
    factor_[op] = static_cast<float>(factor);
    if (usual_ones > 0) without_long_[op] = static_cast<float>(factor / usual_ones);
    if (known && even > 0) even_[op] = static_cast<float>(even / length);
  }
}

// A sequence is long on every stage, so the mean over its cells on even stages must go along with the mean over those
// on odd stages.
bool CellTimes::stages_agree(const SequenceLengths& lengths, const std::function<double(uint32_t)>& ratio) const {
  if (stages_ < 2) return true;
  struct Half {
    double sum[2] = {0, 0}, count[2] = {0, 0};
  };
  std::vector<Half> halves(lengths.batches.size());
  // (sum, count) by which a slow rank is divided out.
  std::vector<std::pair<double, double>> of_worker(workers_.size());
  for (uint32_t op = 0; op < graph_.size(); ++op)
    if (lengths.batch_of[op] != kNone && ratio(op) > 0)
      of_worker[worker_of(op)].first += ratio(op), ++of_worker[worker_of(op)].second;
  for (uint32_t op = 0; op < graph_.size(); ++op) {
    if (lengths.batch_of[op] == kNone || !(ratio(op) > 0)) continue;
    Half& half = halves[lengths.batch_of[op]];
    const auto& [sum, count] = of_worker[worker_of(op)];
    half.sum[graph_.stage(op) % 2] += ratio(op) * count / sum, ++half.count[graph_.stage(op) % 2];
  }
  std::vector<std::pair<double, double>> points;
  for (size_t b = 0; b < halves.size(); ++b)
    if (counts_[lengths.batches[b].step] && halves[b].count[0] > 0 && halves[b].count[1] > 0)
      points.emplace_back(halves[b].sum[0] / halves[b].count[0], halves[b].sum[1] / halves[b].count[1]);
  return points.size() < kMinCertainOnes || correlation_of(points) >= kStagesAlike;
}

struct CellTimes::RoutingStep {
  Points points;    // by micro-batch of a worker: forward, backward
  Points replicas;  // by micro-batch of a stage: means over even ones, over odd ones
  double squares = 0, workers = 0;
};

// Compares the cells of a step that counts with their worker's mean, so that a rank that is slow for a while does not
// look like one with uneven data. Writes each cell's ratio to its usual time to `factor`.
CellTimes::RoutingStep CellTimes::routing_of(const GraphStep& step, const std::vector<double>& usual,
                                             std::vector<float>& factor) const {
  const StepGraph& g = graph_;
  struct Both {
    double own[2] = {0, 0}, usual[2] = {0, 0};  // forward, backward
  };
  const auto key = [&](uint32_t op) {
    return std::array{static_cast<int32_t>(worker_of(op)), g.chunk[op], g.micro_batch[op]};
  };
  const auto usual_ns = [&](uint32_t op) { return usual[place_of(op)] * position_factor(op) * sequence_factor(op); };
  RoutingStep out;
  std::vector<uint32_t> ops;
  std::vector<std::pair<double, double>> of_worker(workers_.size());  // sum of ratios, count
  for (uint32_t op = step.begin; op < step.end; ++op) {
    if (worker_of(op) == kNone || g.micro_batch[op] < 0 || !(usual_ns(op) > 0)) continue;
    ops.push_back(op);
    of_worker[worker_of(op)].first += work_ns(op) / usual_ns(op);
    ++of_worker[worker_of(op)].second;
  }
  sort_by_numbers(ops, key);
  for (const auto& [sum, count] : of_worker) out.workers += count > 0;
  // Key: stage, chunk, micro-batch; values: sum and count of each half of the replicas.
  std::map<std::tuple<int32_t, int32_t, int32_t>, Both> halves;
  auto half = halves.end();  // the one of the operations before; workers of a stage have the same ones in a row
  for (size_t first = 0, last = 0; first < ops.size(); first = last) {
    const auto own = key(ops[first]);
    const auto [worker, chunk, micro_batch] = own;
    Both both;
    for (; last < ops.size() && key(ops[last]) == own; ++last) {
      const bool back = g.kind[ops[last]] != CellKind::kForward;
      both.own[back] += work_ns(ops[last]), both.usual[back] += usual_ns(ops[last]);
    }
    const double mean = of_worker[worker].first / of_worker[worker].second;
    const double ratio = (both.own[0] + both.own[1]) / (both.usual[0] + both.usual[1]);
    for (size_t i = first; i < last && ratio > 0; ++i) factor[ops[i]] = static_cast<float>(ratio);
    if (!(both.usual[0] > 0) || !(both.usual[1] > 0) || !(mean > 0)) continue;
    out.points.emplace_back(both.own[0] / both.usual[0] / mean, both.own[1] / both.usual[1] / mean);
    out.squares += (ratio / mean - 1) * (ratio / mean - 1);
    half = halves.try_emplace(half == halves.end() ? half : std::next(half),
                              std::tuple(workers_[worker].stage, chunk, micro_batch));
    half->second.own[workers_[worker].dp % 2] += ratio / mean, ++half->second.usual[workers_[worker].dp % 2];
  }
  for (const auto& [place, both] : halves)
    if (both.usual[0] > 0 && both.usual[1] > 0)
      out.replicas.emplace_back(both.own[0] / both.usual[0], both.own[1] / both.usual[1]);
  return out;
}

void CellTimes::find_routing(const std::vector<double>& usual) {
  const StepGraph& g = graph_;
  std::vector<float> factor(g.size(), 1.0F);
  std::vector<RoutingStep> of_step(g.steps.size());
  parallel_for(g.steps.size(), [&](size_t s) {
    // The reason of a long step is another matter. Factor 0 means that its work is unknown.
    if (counts_[s]) of_step[s] = routing_of(g.steps[s], usual, factor);
    else std::fill(factor.begin() + g.steps[s].begin, factor.begin() + g.steps[s].end, 0.0F);
  });
  std::vector<const Points*> points, replicas;
  double squares = 0, means = 0, count = 0;
  for (const RoutingStep& step : of_step) {
    points.push_back(&step.points);
    replicas.push_back(&step.replicas);
    squares += step.squares, means += step.workers, count += step.points.size();
  }
  routing_.correlation = correlation_of(points);
  routing_.cells = static_cast<int64_t>(count);
  // Ratios to a mean that they are part of: as many of them say nothing as there are means.
  const double free = count - means;
  routing_.deviation = free > 0 ? std::sqrt(squares / free) : 0;
  // If every cell also scatters by itself, the correlation of forwards with backwards is above noise, but not by much.
  // Equal work of all replicas at the same time proves it; their common part then counts once.
  double half = 1;  // half of the replicas
  for (const Worker& worker : workers_) half = std::max(half, (worker.dp + 1) / 2.0);
  const double of_replicas = correlation_of(replicas);
  const bool together = std::atanh(std::min(routing_.correlation, 1 - 1e-9)) * std::sqrt(count / (2 * half)) > kErrors;
  routing_.shared = of_replicas >= kAlike && together;
  if (!routing_.shared && routing_.correlation < kAlike) return;
  if (routing_.shared) {
    // Halves of the replicas correlate by their common part, S, in spite of the separate part of each, N: r = S ÷ (S +
    // 2 N ÷ d).
    routing_.deviation /= std::sqrt(1 + (1 / of_replicas - 1) * half);
  }
  if (routing_.deviation < kMinUneven) return;
  deal_evenly(std::move(factor), usual);
}

// `ratio` gives for each operation its micro-batch's time on its worker, relative to the usual time.
void CellTimes::deal_evenly(std::vector<float> ratio, const std::vector<double>& usual) {
  const StepGraph& g = graph_;
  size_t replicas = 1;
  for (const Worker& worker : workers_) replicas = std::max(replicas, static_cast<size_t>(worker.dp) + 1);
  const size_t places = place_count() / kKinds;
  if (places * replicas > kMaxPlaces) return;
  // For each place, replica and kind of cell: the sum of its usual times × ratio, and the number of cells.
  struct Sum {
    double ns = 0, count = 0;
  };
  std::vector<Sum> sums(places * replicas * kKinds);
  std::vector<std::pair<double, double>> of_run(workers_.size());  // for each worker: sum of ratios, count
  const auto sum_of = [&](uint32_t op) {
    return (place_of(op) / kKinds * replicas + workers_[worker_of(op)].dp) * kKinds + place_of(op) % kKinds;
  };
  const auto known = [&](uint32_t op) {
    return worker_of(op) != kNone && g.micro_batch[op] >= 0 && usual[place_of(op)] > 0 && ratio[op] > 0;
  };
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (!known(op)) continue;
    of_run[worker_of(op)].first += ratio[op], ++of_run[worker_of(op)].second;
    Sum& sum = sums[sum_of(op)];
    sum.ns += usual[place_of(op)] * ratio[op], ++sum.count;
  }
  std::vector<std::vector<WorkLevel>> work(places, std::vector<WorkLevel>(replicas));
  for (size_t v = 0; v < places; ++v)
    for (size_t d = 0; d < replicas; ++d)
      for (size_t k = 0; k < kKinds; ++k)
        if (const Sum& sum = sums[(v * replicas + d) * kKinds + k]; sum.count > 0) {
          work[v][d].mean += sum.ns / sum.count;
          // A forward and its backward are the same micro-batch.
          work[v][d].count = std::max(work[v][d].count, sum.count);
        }
  const std::vector<std::vector<double>> becomes = even_levels(work, routing_.deviation, routing_.shared);
  // If the seen share is the largest of several, its spread shows how much each of them scatters, and so its excess
  // over an even share.
  double above = 1;
  if (routing_.shared) {
    const Largest largest = largest_of_normals(replicas);
    const double rest = largest.deviation - routing_.deviation * largest.mean;
    if (rest > 0) above += routing_.deviation / rest * largest.mean;
  }
  routing_.factor.assign(g.size(), 1.0F), routing_.own_factor.assign(g.size(), 1.0F);
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (!known(op)) continue;
    const size_t worker = worker_of(op);
    const double own = ratio[op] * of_run[worker].second / of_run[worker].first;
    const double even = becomes[place_of(op) / kKinds][workers_[worker].dp];
    routing_.own_factor[op] = static_cast<float>(own);
    routing_.factor[op] = static_cast<float>(own / even * above);
  }
}

std::vector<double> CellTimes::place_means() const {
  // Sums of whole nanoseconds are exact, so they may be added in parts; other sums are taken in the order of
  // operations.
  const bool whole = factor_.empty() && std::ranges::all_of(worker_factor_, [](double f) { return f == 1; });
  const OpBlocks blocks(counted_ops(graph_, counts_), whole ? place_count() : graph_.size());
  std::vector<double> sums(blocks.size() * place_count());
  std::vector<int64_t> counts(sums.size());
  blocks.each([&](size_t b, uint32_t op) {
    if (worker_of(op) == kNone) return;
    sums[b * place_count() + place_of(op)] += time_ns(op);
    ++counts[b * place_count() + place_of(op)];
  });
  std::vector<double> mean(place_count());
  for (size_t p = 0; p < mean.size(); ++p) {
    int64_t count = 0;
    for (size_t b = 0; b < blocks.size(); ++b)
      mean[p] += sums[b * place_count() + p], count += counts[b * place_count() + p];
    mean[p] /= count;  // 0 ÷ 0: NaN
  }
  return mean;
}

std::vector<std::vector<double>> CellTimes::worker_loads(bool all) const {
  const std::vector<double> usual = place_means();
  std::vector<std::vector<double>> loads(workers_.size(), std::vector<double>(graph_.steps.size()));
  parallel_for(graph_.steps.size(), [&](size_t s) {
    std::vector<double> sum(workers_.size()), count(workers_.size());
    for (uint32_t op = graph_.steps[s].begin; (all || counts_[s]) && op < graph_.steps[s].end; ++op) {
      if (worker_of(op) == kNone || !(usual[place_of(op)] > 0)) continue;
      // Both sums are weighted by time: a slow backward counts for more than a slow forward.
      sum[worker_of(op)] += time_ns(op);
      count[worker_of(op)] += usual[place_of(op)];
    }
    for (size_t w = 0; w < loads.size(); ++w) loads[w][s] = sum[w] / count[w];
  });
  return loads;
}

std::vector<CellTimes::Scatter> CellTimes::scatter(size_t keys, const std::function<uint32_t(uint32_t)>& key_of) const {
  const std::vector<double> usual = place_means();
  std::vector<Scatter> all(keys);
  std::vector<double> own(keys), theirs(keys), squares(keys);
  const auto each = [&](const GraphStep& step, const auto& body) {
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (worker_of(op) != kNone && usual[place_of(op)] > 0 && key_of(op) != kNone) body(op, key_of(op));
  };
  const auto each_step = [&](const auto& body) {
    for (size_t s = 0; s < graph_.steps.size(); ++s)
      if (counts_[s]) body(graph_.steps[s]);
  };
  std::vector<double> level;  // of each step: all cells, to what they usually take; a warm-up is slow as a whole
  each_step([&](const GraphStep& step) {
    double all_ns = 0, usual_ns = 0;
    each(step, [&](uint32_t op, uint32_t) { all_ns += time_ns(op), usual_ns += usual[place_of(op)]; });
    level.push_back(usual_ns > 0 ? all_ns / usual_ns : 1);
    each(step, [&](uint32_t op, uint32_t key) {
      own[key] += time_ns(op) / level.back(), theirs[key] += usual[place_of(op)];
    });
  });
  // (key, kind, chunk, micro-batch; a cell without a known micro-batch is a sample of its own): the excess of its
  // cells.
  std::map<std::tuple<uint32_t, CellKind, int32_t, int64_t>, double> excess;
  auto of_step = level.begin();
  each_step([&](const GraphStep& step) {
    excess.clear();
    const double step_level = *of_step++;
    each(step, [&](uint32_t op, uint32_t key) {
      const int64_t alone = -1 - static_cast<int64_t>(op);
      const int64_t micro_batch = graph_.micro_batch[op] >= 0 ? graph_.micro_batch[op] : alone;
      double& of_sample = excess[{key, graph_.kind[op], graph_.chunk[op], micro_batch}];
      of_sample += time_ns(op) / step_level - own[key] / theirs[key] * usual[place_of(op)];
    });
    for (const auto& [of, off] : excess) ++all[std::get<0>(of)].samples, squares[std::get<0>(of)] += off * off;
  });
  for (size_t key = 0; key < keys; ++key) {
    const double n = static_cast<double>(all[key].samples);
    all[key].error = n > 1 ? std::sqrt(squares[key] * n / (n - 1)) / theirs[key] : kNaN;
  }
  return all;
}

}  // namespace stageline
