#include "analyses/experts/expert_placement.h"

#include "analyses/experts/problems.h"
#include "model/statistics.h"

namespace stageline {
namespace {

// Exchanges an expert of the fullest rank with a smaller one elsewhere, where both ranks then have less than it has.
bool improve(const std::vector<double>& load, std::vector<size_t>& rank_of, std::vector<double>& total) {
  const auto full = static_cast<size_t>(std::ranges::max_element(total) - total.begin());
  double best = total[full] * (1 - 1e-12);
  size_t give = load.size(), take = load.size();
  for (size_t e = 0; e < load.size(); ++e)
    for (size_t f = 0; rank_of[e] == full && f < load.size(); ++f) {
      const double less = load[e] - load[f];
      if (rank_of[f] == full || less <= 0) continue;
      const double worse = std::max(total[full] - less, total[rank_of[f]] + less);
      if (worse < best) best = worse, give = e, take = f;
    }
  if (give == load.size()) return false;
  total[full] -= load[give] - load[take], total[rank_of[take]] += load[give] - load[take];
  std::swap(rank_of[give], rank_of[take]);
  return true;
}

// Population standard deviation ÷ mean.
double variation(const std::vector<double>& values) {
  const double mean = mean_of(values);
  const double squares = sum_over<double>(values, [&](double v) { return (v - mean) * (v - mean); });
  return share_or_zero(std::sqrt(squares / static_cast<double>(values.size())), mean);
}

// The tokens that a layer's routers sent in one step.
struct StepLoad {
  std::vector<double> experts;
  std::map<int32_t, const RouterLoad*> sources;
  double tokens = 0, top_k = 0;
};

// Expected largest ÷ mean of `tokens` tokens that each go to `top_k` of the experts at random.
double chance(double experts, double tokens, double top_k) {
  return 1 + std::sqrt(2 * std::log(experts) * (1 - top_k / experts) * experts / (top_k * tokens));
}

constexpr double kGain = 0.02;  // of the fullest rank ÷ the mean: less is not worth moving experts

void add_layer(const std::map<int64_t, StepLoad>& steps, std::vector<Table::Value> row, const RouterQuestion& question,
               Table& table, Diagnostics& notes) {
  const size_t half = steps.size() / 2;
  std::vector<double> whole, learned, expert_max, by_chance, cv, rank_max, source_max, now, placed, least;
  double dropped = 0;
  size_t at = 0;
  for (const auto& [number, step] : steps) {
    whole.resize(step.experts.size()), learned.resize(step.experts.size());
    for (size_t e = 0; e < whole.size(); ++e) {
      whole[e] += step.experts[e];
      if (at < half || steps.size() == 1) learned[e] += step.experts[e];
    }
    ++at;
  }
  const Placement best = place_experts(learned, question.ranks);
  at = 0;
  for (const auto& [number, step] : steps) {
    const bool judged = at++ >= half;
    const double sum = sum_over<double>(step.experts), experts = static_cast<double>(step.experts.size());
    if (!(sum > 0)) continue;
    std::vector<double> sent;
    for (const auto& [rank, own] : step.sources) {
      sent.push_back(sum_over<double>(own->rows));
      const double room = std::ceil(static_cast<double>(own->tokens * own->top_k) / experts * question.capacity);
      for (const int64_t rows : own->rows) dropped += std::max(0.0, static_cast<double>(rows) - room);
    }
    const double full = max_over_mean(rank_loads(step.experts, question.ranks));
    expert_max.push_back(max_over_mean(step.experts)), cv.push_back(variation(step.experts));
    by_chance.push_back(chance(experts, step.tokens, step.top_k));
    rank_max.push_back(full), source_max.push_back(max_over_mean(sent));
    if (!judged) continue;
    now.push_back(full), placed.push_back(max_over_mean(rank_loads(step.experts, question.ranks, best.rank_of)));
    least.push_back(std::max(1.0, std::ranges::max(step.experts) * static_cast<double>(question.ranks) / sum));
  }
  const double assignments = sum_over<double>(whole);
  const double before = max_over_mean(rank_loads(learned, question.ranks));
  const double after = max_over_mean(rank_loads(learned, question.ranks, best.rank_of));
  if (before - after > kGain && mean_of(now) - mean_of(placed) <= kGain) notes.add(problem::experts_not_carried);
  double copied = kNaN;
  if (question.extra > 0) {
    const ExpertCopies copies = copy_experts(learned, question.ranks, question.extra);
    copied = max_over_mean(rank_loads(copies.split(learned), question.ranks, copies.placement.rank_of));
  }
  for (const Table::Value& value : std::initializer_list<Table::Value>{
           std::ssize(steps), std::llround(assignments), std::ranges::max_element(whole) - whole.begin(),
           mean_of(expert_max), mean_of(by_chance), mean_of(cv), mean_of(rank_max), mean_of(source_max), mean_of(now),
           after, mean_of(placed), mean_of(least), copied,
           question.capacity > 0 ? share_or_zero(dropped, assignments) : kNaN})
    row.push_back(value);
  table.add_row(std::move(row));
}

}  // namespace

Placement place_experts(const std::vector<double>& load, size_t ranks) {
  auto order = indexes(load.size());
  std::vector<size_t> room(ranks, (load.size() + ranks - 1) / ranks);
  sort_stably(order, std::greater(), [&](size_t e) { return load[e]; });
  std::vector<double> total(ranks, 0);
  Placement out{std::vector<size_t>(load.size()), false};
  for (const size_t e : order) {
    size_t best = ranks;
    for (size_t r = 0; r < ranks; ++r)
      if (room[r] > 0 && (best == ranks || total[r] < total[best])) best = r;
    out.rank_of[e] = best, total[best] += load[e], --room[best];
  }
  while (improve(load, out.rank_of, total)) {
  }
  const double mean = sum_over<double>(load) / static_cast<double>(ranks);
  out.sure = std::ranges::max(total) <= std::max(mean, std::ranges::max(load)) * (1 + 1e-9);
  return out;
}

std::vector<double> rank_loads(const std::vector<double>& load, size_t ranks, const std::vector<size_t>& rank_of) {
  std::vector<double> total(ranks, 0);
  for (size_t e = 0; e < load.size(); ++e) total[rank_of.empty() ? e * ranks / load.size() : rank_of[e]] += load[e];
  return total;
}

double max_over_mean(const std::vector<double>& loads) {
  const double sum = sum_over<double>(loads);
  return sum > 0 ? std::ranges::max(loads) * static_cast<double>(loads.size()) / sum : 0;
}

std::vector<double> ExpertCopies::split(const std::vector<double>& load) const {
  std::vector<double> parts, copies(load.size(), 0);
  for (const size_t e : expert_of) ++copies[e];
  for (const size_t e : expert_of) parts.push_back(load[e] / copies[e]);
  return parts;
}

ExpertCopies copy_experts(const std::vector<double>& load, size_t ranks, int64_t extra) {
  std::vector<double> copies(load.size(), 1);
  for (int64_t k = 0; k < extra; ++k) {
    size_t most = 0;
    for (size_t e = 1; e < load.size(); ++e)
      if (load[e] / copies[e] > load[most] / copies[most]) most = e;
    ++copies[most];
  }
  ExpertCopies out;
  for (size_t e = 0; e < load.size(); ++e) out.expert_of.insert(out.expert_of.end(), static_cast<size_t>(copies[e]), e);
  out.placement = place_experts(out.split(load), ranks);
  return out;
}

Table router_layers(const Trace& trace, const RouterQuestion& question, Diagnostics& notes) {
  std::map<std::pair<std::string, int64_t>, std::map<int64_t, StepLoad>> layers;
  size_t experts = 1;
  for (const Part& part : trace.parts)
    for (const RouterLoad& load : part.router_loads) experts = std::max(experts, load.rows.size());
  experts = (experts + question.ranks - 1) / question.ranks * question.ranks;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (const Part& part : trace.parts)
    for (const RouterLoad& load : part.router_loads) {
      if (!wanted.empty() && !std::ranges::binary_search(wanted, part.rank)) continue;
      StepLoad& step = layers[{load.block, load.layer}][load.step];
      step.experts.resize(experts);
      for (size_t e = 0; e < load.rows.size(); ++e) step.experts[e] += static_cast<double>(load.rows[e]);
      step.sources[part.rank] = &load;
      step.tokens += static_cast<double>(load.tokens), step.top_k = static_cast<double>(load.top_k);
    }
  Table table(declared_table("experts/expert-layers"));
  for (const auto& [place, steps] : layers) add_layer(steps, {place.first, place.second}, question, table, notes);
  return table;
}

}  // namespace stageline
