#include "pipeline/clocks/clock_net.h"

#include "base/parallel.h"
#include "pipeline/clocks/clock_graph.h"

namespace stageline::align {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPpb = 1e9;  // drifts are solved in parts per billion, so that numbers are near one
// In ppb: what quartz clocks differ by, which is all that is known without evidence.
constexpr double kUsualDrift = 2e4;
// Limit of rounds, each of which drops all contradictions found; a run that needs more cannot be aligned.
constexpr int kMaxRounds = 256;

bool counts(const Edge& edge) { return !edge.dropped && edge.fit.possible; }
bool guesses(const Edge& edge) { return counts(edge) && edge.fit.two_way; }

double weight_of(double sigma) { return std::isfinite(sigma) && sigma > 0 ? 1 / (sigma * sigma) : 0; }

// Returns what edges say about offsets at t = 0 once drifts are known: each line is turned about the middle of its
// samples.
std::vector<Guess> offset_guesses(const std::vector<Edge>& edges, const std::vector<double>& drift) {
  std::vector<Guess> out;
  for (const Edge& e : edges) {
    if (!guesses(e)) continue;
    const double b = (drift[e.b] - drift[e.a]) / kPpb;
    const double value = e.fit.offset + (e.fit.slope - b) * e.fit.middle_t;
    out.push_back({e.a, e.b, value, std::max(weight_of(e.fit.offset_sigma), 1e-24)});
  }
  return out;
}

// Returns the limits within each component. Bounds between components, which only one-way traffic connects, are of no
// use.
template <class Most>
std::vector<Limit> limits_of(const std::vector<Edge>& edges, const std::vector<int32_t>& component, Most max) {
  std::vector<Limit> limits;
  for (uint32_t k = 0; k < edges.size(); ++k) {
    const Edge& e = edges[k];
    if (!counts(e) || component[e.a] != component[e.b]) continue;
    const auto [up, down] = max(e);
    if (up < kInfinity) limits.push_back({e.a, e.b, up, static_cast<int32_t>(k)});
    if (down < kInfinity) limits.push_back({e.b, e.a, down, static_cast<int32_t>(k)});
  }
  return limits;
}

void to_root(std::vector<double>& x, const std::vector<int32_t>& component) {
  std::vector<double> zero(x.size());
  for (size_t i = 0; i < x.size(); ++i) zero[i] = x[component[i]];
  for (size_t i = 0; i < x.size(); ++i) x[i] -= zero[i];
}

// Drops from each negative cycle the edge that drop_first() puts before the others.
void drop_wrong(std::vector<Edge>& edges, const std::vector<Limit>& limits,
                const std::vector<std::vector<int32_t>>& cycles, const std::vector<double>& residuals,
                Solution& solution) {
  for (const std::vector<int32_t>& cycle : cycles) {
    Solution::Dropped dropped{0, {}};
    for (const int32_t l : cycle) dropped.cycle.push_back(static_cast<size_t>(limits[l].edge));
    dropped.edge = dropped.cycle.front();
    for (const size_t e : dropped.cycle)
      if (drop_first(edges[e], residuals[e], edges[dropped.edge], residuals[dropped.edge])) dropped.edge = e;
    edges[dropped.edge].dropped = true;
    solution.dropped.push_back(std::move(dropped));
  }
}

// The bounds of the drifts whatever the offsets, and of the offsets at t = 0 whatever the drifts.
std::vector<Limit> drift_limits(const std::vector<Edge>& edges, const std::vector<int32_t>& component) {
  return limits_of(edges, component,
                   [](const Edge& e) { return std::pair(e.fit.slope_high * kPpb, -e.fit.slope_low * kPpb); });
}
std::vector<Limit> offset_limits(const std::vector<Edge>& edges, const std::vector<int32_t>& component) {
  return limits_of(edges, component, [](const Edge& e) {
    return std::pair(highest_at(e.bounds.upper, 0, e.fit.slope_low, e.fit.slope_high),
                     highest_at(e.bounds.negated_lower, 0, -e.fit.slope_high, -e.fit.slope_low));
  });
}

// The bounds of each node's drift and offset: facts, not guesses.
struct Facts {
  std::vector<int32_t> component;  // nodes that two-way traffic ties to each other
  Intervals drifts, offsets;
};

// Drops edges until no cycle of bounds contradicts itself. The drifts come first, since bounds of offsets use them.
Facts drop_contradictions(size_t node_count, std::vector<Edge>& edges, Solution& solution) {
  std::vector<double> drift_residuals, offset_residuals;  // for each edge; filled when first needed
  for (int round = 0;; ++round) {
    std::vector<Guess> ties;
    for (const Edge& e : edges)
      if (guesses(e)) ties.push_back({e.a, e.b, 0, 1});
    const std::vector<int32_t> component = components(node_count, ties);
    const std::vector<Limit> drifts = drift_limits(edges, component), offsets = offset_limits(edges, component);
    const auto wrong_drifts = negative_cycles(node_count, drifts);
    const auto wrong_offsets =
        wrong_drifts.empty() ? negative_cycles(node_count, offsets) : std::vector<std::vector<int32_t>>();
    if (wrong_drifts.empty() && wrong_offsets.empty())
      return {component, intervals(node_count, drifts, component), intervals(node_count, offsets, component)};
    if (round >= kMaxRounds) {
      for (Edge& e : edges) e.dropped = true;  // a run whose every part contradicts the rest: nothing is tied
      solution.hopeless = true;
    } else if (!wrong_drifts.empty()) {
      if (drift_residuals.empty()) drift_residuals = residual_errors(node_count, edges, true);
      drop_wrong(edges, drifts, wrong_drifts, drift_residuals, solution);
    } else {
      if (offset_residuals.empty()) offset_residuals = residual_errors(node_count, edges, false);
      drop_wrong(edges, offsets, wrong_offsets, offset_residuals, solution);
    }
  }
}

// Returns the drift of each node against the root of its component, in ppb.
std::vector<double> solve_drifts(size_t node_count, const std::vector<Edge>& edges, const Facts& facts, double limit,
                                 Solution& solution) {
  if (!(limit > 0)) return std::vector<double>(node_count, 0);
  std::vector<Guess> slopes;
  for (const Edge& e : edges)
    if (guesses(e)) slopes.push_back({e.a, e.b, e.fit.slope * kPpb, weight_of(e.fit.slope_sigma * kPpb)});
  std::vector<double> drift = least_squares(node_count, slopes, weight_of(kUsualDrift));
  // Components by slopes of weight 0 are those by any guess.
  solution.consistent = move_inside(drift, drift_limits(edges, facts.component)) && solution.consistent;
  to_root(drift, facts.component);
  return drift;
}

// Returns the offset of each node at t = 0 against the root of its component.
std::vector<double> solve_offsets(size_t node_count, const std::vector<Edge>& edges, const Facts& facts,
                                  const std::vector<double>& drift, Solution& solution) {
  std::vector<double> offset = least_squares(node_count, offset_guesses(edges, drift), 0);
  const std::vector<Limit> exact = limits_of(edges, facts.component, [&](const Edge& e) {
    const double b = (drift[e.b] - drift[e.a]) / kPpb;
    return std::pair(e.bounds.upper.support(b), e.bounds.negated_lower.support(-b));
  });
  if (!move_inside(offset, exact)) {
    // The drifts chosen keep every pair's bounds but not all around some cycle: by less than anyone can see.
    solution.consistent = false;
    move_inside(offset, offset_limits(edges, facts.component));
  }
  to_root(offset, facts.component);
  return offset;
}

}  // namespace

void fit_edges(std::vector<Edge>& edges, double drift_limit) {
  parallel_for(edges.size(), [&](size_t k) {
    if (!edges[k].dropped) edges[k].fit = fit_tie(edges[k].points, edges[k].kind, drift_limit, edges[k].bounds);
  });
}

Solution solve(size_t node_count, std::vector<Edge>& edges, double drift_limit) {
  Solution solution;
  const Facts facts = drop_contradictions(node_count, edges, solution);
  const std::vector<double> drift = solve_drifts(node_count, edges, facts, drift_limit, solution);
  const std::vector<double> offset = solve_offsets(node_count, edges, facts, drift, solution);
  const Intervals &drifts = facts.drifts, &offsets = facts.offsets;
  for (size_t i = 0; i < node_count; ++i)
    solution.nodes.push_back({offset[i], offsets.low.empty() ? -kInfinity : offsets.low[i],
                              offsets.high.empty() ? kInfinity : offsets.high[i], 0, 0, drift[i] / kPpb,
                              drifts.low.empty() ? -kInfinity : drifts.low[i] / kPpb,
                              drifts.high.empty() ? kInfinity : drifts.high[i] / kPpb, facts.component[i]});
  set_likely_errors(edges, solution);
  return solution;
}

}  // namespace stageline::align
