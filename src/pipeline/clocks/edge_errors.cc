#include "pipeline/clocks/clock_graph.h"
#include "pipeline/clocks/clock_net.h"

namespace stageline::align {
namespace {

constexpr int kReweighted = 12;       // rounds of reweighting; residuals settle within a few
constexpr double kUsualDrift = 2e-5;  // of an edge without a slope of its own
constexpr double kMinSigma = 1e-12;   // keeps divisions from being by zero, and any weight from outweighing everything
constexpr double kMinResidualRatio = 1.001;  // residuals that are closer decide nothing

int evidence_rank(TieKind kind) {
  switch (kind) {
    case TieKind::kOperator: return 0;
    case TieKind::kMessages: return 1;
    case TieKind::kGaps:
    case TieKind::kCollectives: return 3;
  }
  return 3;
}

// Returns how many edges of this kind must agree to outvote an edge of messages: collectives may span other ranks than
// they seem to, and gaps contain work.
double distrust(TieKind kind) {
  switch (kind) {
    case TieKind::kOperator: return 0.01;
    case TieKind::kMessages: return 1;
    case TieKind::kGaps:
    case TieKind::kCollectives: return 3;
  }
  return 3;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One tie between two nodes, for one quantity (offset or drift).
struct Way {
  size_t a, b;
  double variance, residual;
};

// Returns errors from each component's root along the best path, scaled by how much larger the residuals are than
// expected.
std::vector<double> errors_of(const Solution& solution, const std::vector<Way>& ways) {
  const size_t n = solution.nodes.size();
  std::vector<std::vector<size_t>> at(n);
  for (size_t w = 0; w < ways.size(); ++w) {
    at[ways[w].a].push_back(w);
    at[ways[w].b].push_back(w);
  }
  std::vector<double> variance(n, kInfinity);
  using Reached = std::pair<double, size_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  // Root → (Σ residual² / variance, how many ties are more than a tree needs).
  std::map<int32_t, std::pair<double, int64_t>> misfit;
  for (size_t i = 0; i < n; ++i) {
    const int32_t root = solution.nodes[i].root;
    if (static_cast<size_t>(root) == i) {
      variance[i] = 0;
      queue.emplace(0.0, i);
    } else {
      --misfit[root].second;
    }
  }
  while (!queue.empty()) {
    const auto [so_far, node] = queue.top();
    queue.pop();
    if (so_far > variance[node]) continue;
    for (const size_t w : at[node]) {
      const size_t to = ways[w].a == node ? ways[w].b : ways[w].a;
      const double via = so_far + ways[w].variance;
      if (!(via < variance[to])) continue;
      variance[to] = via;
      queue.emplace(via, to);
    }
  }
  for (const Way& way : ways) {
    auto& [sum, spare] = misfit[solution.nodes[way.a].root];
    if (!(way.variance > 0)) continue;
    sum += way.residual * way.residual / way.variance;
    ++spare;
  }
  std::vector<double> errors(n);
  for (size_t i = 0; i < n; ++i) {
    const auto found = misfit.find(solution.nodes[i].root);
    double worse = 1;
    if (found != misfit.end() && found->second.second > 0)
      worse = std::max(1.0, std::sqrt(found->second.first / found->second.second));
    errors[i] = std::sqrt(variance[i]) * worse;
  }
  return errors;
}

}  // namespace

std::vector<double> residual_errors(size_t node_count, const std::vector<Edge>& edges, bool slopes) {
  // Offsets in microseconds, drifts in parts per billion, so that numbers are near one.
  constexpr double kNsPerUnit = 1e3;
  constexpr double kPpb = 1e9;
  std::vector<Guess> guesses;
  std::vector<size_t> edge_of;
  std::vector<double> sigma;
  for (size_t k = 0; k < edges.size(); ++k) {
    const Edge& e = edges[k];
    if (e.dropped || !e.fit.possible || !e.fit.two_way) continue;
    const double slope_sigma =
        std::isfinite(e.fit.slope_sigma) ? std::min(e.fit.slope_sigma, kUsualDrift) : kUsualDrift;
    const double edge_sigma =
        slopes ? slope_sigma * kPpb : std::hypot(e.fit.offset_sigma, slope_sigma * e.fit.middle_t) / kNsPerUnit;
    guesses.push_back({e.a, e.b, slopes ? e.fit.slope * kPpb : e.fit.offset / kNsPerUnit, 0});
    sigma.push_back(std::isfinite(edge_sigma) ? std::max(edge_sigma, kMinSigma) : 1 / kMinSigma);
    edge_of.push_back(k);
  }
  // A precise edge is just as likely to be wrong as another, so no sigma counts as below the median one; edges then
  // have nearly equal votes.
  if (sigma.empty()) return std::vector<double>(edges.size(), 0);
  std::vector<double> sorted = sigma;
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  for (size_t g = 0; g < guesses.size(); ++g) sigma[g] = distrust(edges[edge_of[g]].kind) * std::max(sigma[g], *middle);
  std::vector<double> residual(guesses.size(), 0);
  for (int round = 0; round <= kReweighted; ++round) {
    for (size_t g = 0; g < guesses.size(); ++g)
      guesses[g].weight = 1 / (sigma[g] * std::max(sigma[g], std::abs(residual[g])));
    const std::vector<double> x = least_squares(node_count, guesses, 0);
    for (size_t g = 0; g < guesses.size(); ++g) residual[g] = x[guesses[g].to] - x[guesses[g].from] - guesses[g].value;
  }
  std::vector<double> errors(edges.size(), 0);
  for (size_t g = 0; g < guesses.size(); ++g) errors[edge_of[g]] = std::abs(residual[g]) / sigma[g];
  return errors;
}

bool drop_first(const Edge& x, double x_residual, const Edge& y, double y_residual) {
  const bool by_hand_x = x.kind == TieKind::kOperator, by_hand_y = y.kind == TieKind::kOperator;
  if (by_hand_x != by_hand_y) return by_hand_y;
  if (x_residual > y_residual * kMinResidualRatio) return true;
  if (y_residual > x_residual * kMinResidualRatio) return false;
  if (evidence_rank(x.kind) != evidence_rank(y.kind)) return evidence_rank(x.kind) > evidence_rank(y.kind);
  return x.fit.offset_sigma > y.fit.offset_sigma;
}

void set_likely_errors(const std::vector<Edge>& edges, Solution& solution) {
  std::vector<Way> offsets, drifts;
  for (const Edge& e : edges) {
    if (e.dropped || !e.fit.possible || !e.fit.two_way) continue;
    const size_t a = e.a, b = e.b;
    const NodeClock &from = solution.nodes[a], &to = solution.nodes[b];
    const double slope = to.drift - from.drift;
    // Where a tie says nothing about its slope, its bounds do.
    const double slope_sigma = std::min(e.fit.slope_sigma, (e.fit.slope_high - e.fit.slope_low) / 4);
    const double own = std::hypot(e.fit.offset_sigma, e.fit.asymmetry / std::sqrt(3.0), slope_sigma * e.fit.middle_t);
    const double value = e.fit.offset + (e.fit.slope - slope) * e.fit.middle_t;
    offsets.push_back({a, b, own * own, to.offset - from.offset - value});
    drifts.push_back({a, b, slope_sigma * slope_sigma, slope - e.fit.slope});
  }
  const std::vector<double> offset_errors = errors_of(solution, offsets), drift_errors = errors_of(solution, drifts);
  for (size_t i = 0; i < solution.nodes.size(); ++i) {
    NodeClock& node = solution.nodes[i];
    node.offset_error =
        std::min(offset_errors[i], std::max(node.offset_high - node.offset, node.offset - node.offset_low));
    node.drift_error = std::min(drift_errors[i], std::max(node.drift_high - node.drift, node.drift - node.drift_low));
  }
}

}  // namespace stageline::align
