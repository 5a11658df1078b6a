#include "diagnosis/causes/cell_positions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/stage_costs.h"

namespace stageline {
namespace {

constexpr int64_t kLeastSeen = 3;      // steps (or replicas of steps) that a place must be seen in
constexpr double kLongPosition = 1.1;  // times the usual cell
constexpr double kNearlyAlways = 0.8;  // of the times it is seen, that it is long by half of its mean excess or more
constexpr double kErrors = 6;          // standard errors of the mean: there are many places to be long by chance
constexpr double kMostOfBatches =
    0.25;  // of a stage's micro-batches: where more are long, and not one of several, position does not tell
constexpr double kMostPlaces = 0.5;  // of the places of a micro-batch: from so many on it is the micro-batch's
constexpr size_t kMostCells = 10'000'000;

struct Seen {
  int64_t count = 0;
  double sum = 0, squares = 0, least = 0;
  double mean() const { return sum / static_cast<double>(count); }
  double deviation() const {
    const auto n = static_cast<double>(count);
    return n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
  }
};

}  // namespace

CellPositions find_positions(const StepGraph& g, const std::vector<bool>& counts,
                             const std::function<double(uint32_t op)>& ratio,
                             const std::function<uint32_t(uint32_t op)>& place, size_t places) {
  CellPositions out;
  int32_t batches = 0;
  for (const int32_t mb : g.micro_batch) batches = std::max(batches, mb + 1);
  if (batches < 2 || places * static_cast<size_t>(batches) > kMostCells) return out;
  const auto m = static_cast<size_t>(batches);
  std::vector<Seen> seen(places * m);
  const auto each = [&](const auto& body) {
    for (size_t s = 0; s < g.steps.size(); ++s)
      for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op)
        if (g.micro_batch[op] >= 0 && ratio(op) > 0)
          body(s, op, place(op) * m + static_cast<size_t>(g.micro_batch[op]));
  };
  each([&](size_t s, uint32_t op, size_t at) {
    if (!counts[s]) return;
    const double r = ratio(op);
    ++seen[at].count, seen[at].sum += r, seen[at].squares += r * r;
  });
  std::vector<double> deviations;
  for (const Seen& cell : seen)
    if (cell.count >= kLeastSeen) deviations.push_back(cell.deviation());
  if (deviations.empty()) return out;
  const double usual_deviation = median_of(std::move(deviations));
  std::vector<uint8_t> is_long(seen.size(), 0);
  for (size_t at = 0; at < seen.size(); ++at) {
    const Seen& cell = seen[at];
    if (cell.count < kLeastSeen) continue;
    const double error = std::max(usual_deviation, cell.deviation()) / std::sqrt(static_cast<double>(cell.count));
    is_long[at] = cell.mean() >= kLongPosition && cell.mean() - 1 > kErrors * error;
  }
  // Nearly always, or it is another cause's.
  std::vector<int64_t> often(seen.size(), 0);
  each([&](size_t s, uint32_t op, size_t at) {
    if (counts[s] && is_long[at] && ratio(op) - 1 >= (seen[at].mean() - 1) / 2) ++often[at];
  });
  for (size_t p = 0; p < places; ++p) {
    size_t known = 0, too_long = 0;
    for (size_t b = 0; b < m; ++b) {
      const size_t at = p * m + b;
      if (is_long[at] && static_cast<double>(often[at]) < kNearlyAlways * static_cast<double>(seen[at].count))
        is_long[at] = 0;
      known += seen[at].count > 0, too_long += is_long[at];
    }
    const bool alone = too_long == 1 && known > 2;
    if (!alone && static_cast<double>(too_long) > kMostOfBatches * static_cast<double>(known))
      for (size_t b = 0; b < m; ++b) is_long[p * m + b] = 0;
  }
  std::vector<uint8_t> whole(m, 0);  // micro-batches that are long at most of their places
  bool any = false;
  for (size_t b = 0; b < m; ++b) {
    size_t known = 0, too_long = 0;
    for (size_t p = 0; p < places; ++p) known += seen[p * m + b].count > 0, too_long += is_long[p * m + b];
    whole[b] = too_long > 1 && static_cast<double>(too_long) >= kMostPlaces * static_cast<double>(known);
    any = any || too_long > 0;
  }
  if (!any) return out;
  out.factor.assign(g.size(), 1.0F);
  out.of.assign(g.size(), 0);
  std::map<std::pair<size_t, size_t>, size_t> number;  // (place or all, micro-batch) → into list
  std::vector<int64_t> cells;
  each([&](size_t s, uint32_t op, size_t at) {
    if (!is_long[at]) return;
    const size_t b = at % m, p = whole[b] ? places : at / m;
    const auto [entry, fresh] = number.try_emplace({p, b}, out.list.size());
    if (fresh && out.list.size() < 200) {
      CellPosition position;
      position.micro_batch = static_cast<int32_t>(b);
      if (!whole[b]) position.stage = g.stage(op), position.chunk = g.chunk[op], position.kind = g.kind[op];
      out.list.push_back(position);
      cells.push_back(0);
    }
    if (entry->second >= out.list.size()) return;
    out.factor[op] = static_cast<float>(seen[at].mean());
    out.of[op] = static_cast<uint8_t>(entry->second + 1);
    if (!counts[s]) return;
    CellPosition& position = out.list[entry->second];
    position.own_ns += g.dur_ns[op], position.usual_ns += g.dur_ns[op] / ratio(op);
    ++cells[entry->second];
  });
  for (size_t i = 0; i < out.list.size(); ++i) {
    CellPosition& position = out.list[i];
    position.ratio = position.usual_ns > 0 ? position.own_ns / position.usual_ns : 1;
    if (cells[i] > 0)
      position.own_ns /= static_cast<double>(cells[i]), position.usual_ns /= static_cast<double>(cells[i]);
  }
  return out;
}

}  // namespace stageline
