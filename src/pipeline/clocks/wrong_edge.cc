#include "pipeline/clocks/wrong_edge.h"

#include <algorithm>
#include <cmath>

#include "pipeline/clocks/clock_graph.h"

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

}  // namespace stageline::align
