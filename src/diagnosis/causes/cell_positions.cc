#include "diagnosis/causes/cell_positions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

constexpr int64_t kMinSeen = 3;        // steps (or replicas of steps) in which a place must be seen
constexpr double kLongPosition = 1.1;  // least ratio of a long place to the usual cell
constexpr double kNearlyAlways = 0.8;  // share of its cells that must have half of the mean excess or more
constexpr double kErrors = 6;  // standard errors of the mean; many, because one of many places may be long by chance
constexpr double kMaxOfBatches =
    // Share of a stage's micro-batches; where more are long (and not just one of several), the position is not the
    // reason.
    0.25;
// Share of a micro-batch's places; if this many are long, the micro-batch is long as a whole.
constexpr double kMaxPlaces = 0.5;
constexpr size_t kMaxCells = 10'000'000;
constexpr size_t kMaxPositions = 200;

struct Seen {
  int64_t count = 0;
  double sum = 0, squares = 0, least = 0;
  double mean() const { return sum / count; }
  double deviation() const {
    const double n = count;
    return n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
  }
};

struct PlaceKind {
  int32_t stage = kUnknown, chunk = kUnknown;
  CellKind kind = CellKind::kOther;
};

// How cells of some places of one kind follow the number of their micro-batch: the median over the places for each
// micro-batch. It counts only if every place shows at least half of that difference; otherwise the result does not
// vary.
Course shape_of(const std::vector<Seen>& seen, const std::vector<size_t>& places, size_t m) {
  std::vector<double> by_batch(m, kNaN);
  for (size_t b = 0; b < m; ++b) {
    std::vector<double> ratios;
    for (const size_t p : places)
      if (seen[p * m + b].count >= kMinSeen) ratios.push_back(seen[p * m + b].mean());
    if (!ratios.empty()) by_batch[b] = median_of(std::move(ratios));
  }
  Course course = course_of(by_batch);
  // A few long micro-batches at either end are positions of their own, not a shape.
  const double few = kMaxOfBatches * m;
  const double after = course.high_count, before = m - after;
  const bool shaped =
      course.kind == CourseKind::kTrend || (course.kind == CourseKind::kOnset && std::min(before, after) > few);
  const auto [low, high] = std::minmax(course.low, course.high);
  if (!shaped || !(low > 0) || high < kLongPosition * low || high - low < kErrors * course.noise) return {};
  const double middle = (low + high) / 2;
  const bool all = std::all_of(places.begin(), places.end(), [&](size_t p) {
    Seen less, more;
    for (size_t b = 0; b < m; ++b) {
      Seen& sum = course.level[b] > middle ? more : less;
      sum.count += seen[p * m + b].count, sum.sum += seen[p * m + b].sum;
    }
    // For a trend, the means of its two halves differ by half as much as its ends.
    const double least = (high / low - 1) / (course.kind == CourseKind::kTrend ? 4 : 2);
    return less.count > 0 && more.count > 0 && more.mean() >= (1 + least) * less.mean();
  });
  return all ? course : Course{};
}

bool alike(const Course& a, const Course& b) {
  return a.kind == b.kind && a.from == b.from && (a.high > a.low) == (b.high > b.low);
}

// Finds shapes that all stages share, for each kind of cell; kinds with the same shape become one position. Where there
// are none, finds shapes that all the work of one stage shares.
template <class Each>
void find_shapes(const StepGraph& g, const std::vector<Seen>& seen, const std::vector<PlaceKind>& what, size_t m,
                 const Each& each, CellPositions& out) {
  std::map<CellKind, std::vector<size_t>> of_kind;
  std::set<int32_t> stages;
  for (size_t p = 0; p < what.size(); ++p)
    if (what[p].kind != CellKind::kOther) of_kind[what[p].kind].push_back(p), stages.insert(what[p].stage);
  std::vector<uint8_t> number(what.size(), 0);  // for each place 1 + index into out.list; 0: none
  std::vector<Course> shape(what.size());
  const auto take = [&](const std::vector<size_t>& places, bool everywhere) {
    Course course = shape_of(seen, places, m);
    if (!course.varies() || out.list.size() == kMaxPositions) return;
    CellPosition position;
    position.kind = what[places.front()].kind;
    position.every_stage = everywhere;
    if (!everywhere) position.stage = what[places.front()].stage, position.chunk = what[places.front()].chunk;
    position.last_micro_batch = static_cast<int32_t>(m) - 1;
    position.ratio = std::max(course.low, course.high) / std::min(course.low, course.high);
    position.within = course;
    const auto same = std::find_if(out.list.begin(), out.list.end(), [&](const CellPosition& other) {
      return other.stage == position.stage && other.chunk == position.chunk && alike(other.within, course);
    });
    for (const size_t p : places) shape[p] = course, number[p] = static_cast<uint8_t>(same - out.list.begin() + 1);
    if (same == out.list.end())
      out.list.push_back(std::move(position));
    else
      same->kind = CellKind::kOther;
  };
  for (const auto& [kind, places] : of_kind) take(places, true);
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> of_stage;  // by stage and chunk
  if (out.list.empty() && stages.size() > 1)
    for (const auto& [kind, places] : of_kind)
      for (const size_t p : places) of_stage[{what[p].stage, what[p].chunk}].push_back(p);
  for (const auto& [stage, places] : of_stage) {
    const Course first = shape_of(seen, {places.front()}, m);
    const bool all = first.varies() && places.size() > 1 && std::all_of(places.begin(), places.end(), [&](size_t p) {
                       return alike(shape_of(seen, {p}, m), first);
                     });
    for (const size_t p : places)
      if (all) take({p}, false);
  }
  if (out.list.empty()) return;
  out.factor.assign(g.size(), 1.0F);
  out.of.assign(g.size(), 0);
  each([&](size_t, uint32_t op, size_t at) {
    const Course& course = shape[at / m];
    if (!course.varies()) return;
    out.factor[op] = static_cast<float>(course.level[at % m] / std::min(course.low, course.high));
    out.of[op] = number[at / m];
  });
}

}  // namespace

CellPositions find_positions(const StepGraph& g, const std::vector<bool>& counts,
                             const std::function<double(uint32_t op)>& ratio,
                             const std::function<uint32_t(uint32_t op)>& place, size_t places) {
  CellPositions out;
  int32_t batches = 0;
  for (const int32_t mb : g.micro_batch) batches = std::max(batches, mb + 1);
  if (batches < 2 || places * batches > kMaxCells) return out;
  const size_t m = batches;
  std::vector<Seen> seen(places * m);
  const auto each = [&](const auto& body) {
    for (size_t s = 0; s < g.steps.size(); ++s)
      for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op)
        if (g.micro_batch[op] >= 0 && ratio(op) > 0) body(s, op, place(op) * m + g.micro_batch[op]);
  };
  each([&](size_t s, uint32_t op, size_t at) {
    if (!counts[s]) return;
    const double r = ratio(op);
    ++seen[at].count, seen[at].sum += r, seen[at].squares += r * r;
  });
  std::vector<PlaceKind> what(places);
  each([&](size_t, uint32_t op, size_t at) { what[at / m] = {g.stage(op), g.chunk[op], g.kind[op]}; });
  find_shapes(g, seen, what, m, each, out);
  if (!out.list.empty()) return out;
  std::vector<double> deviations;
  for (const Seen& cell : seen)
    if (cell.count >= kMinSeen) deviations.push_back(cell.deviation());
  if (deviations.empty()) return out;
  const double usual_deviation = median_of(std::move(deviations));
  std::vector<uint8_t> is_long(seen.size(), 0);
  for (size_t at = 0; at < seen.size(); ++at) {
    const Seen& cell = seen[at];
    if (cell.count < kMinSeen) continue;
    const double error = std::max(usual_deviation, cell.deviation()) / std::sqrt(cell.count);
    is_long[at] = cell.mean() >= kLongPosition && cell.mean() - 1 > kErrors * error;
  }
  // A place must be long nearly always; otherwise another cause makes it long.
  std::vector<int64_t> often(seen.size(), 0);
  each([&](size_t s, uint32_t op, size_t at) {
    if (counts[s] && is_long[at] && ratio(op) - 1 >= (seen[at].mean() - 1) / 2) ++often[at];
  });
  for (size_t p = 0; p < places; ++p) {
    size_t known = 0, too_long = 0;
    for (size_t b = 0; b < m; ++b) {
      const size_t at = p * m + b;
      if (is_long[at] && often[at] < kNearlyAlways * seen[at].count) is_long[at] = 0;
      known += seen[at].count > 0, too_long += is_long[at];
    }
    const bool alone = too_long == 1 && known > 2;
    if (!alone && too_long > kMaxOfBatches * known)
      for (size_t b = 0; b < m; ++b) is_long[p * m + b] = 0;
  }
  std::vector<uint8_t> whole(m, 0);    // for each micro-batch, whether it is long at most of its places
  std::vector<uint8_t> everywhere(m);  // whether it is also long on every stage
  std::vector<CellKind> kinds(m);      // the kind of all its long places; kOther: several kinds
  bool any = false;
  for (size_t b = 0; b < m; ++b) {
    size_t known = 0, too_long = 0;
    std::set<int32_t> stages, long_stages;
    std::set<CellKind> long_kinds;
    for (size_t p = 0; p < places; ++p) {
      if (seen[p * m + b].count == 0) continue;
      ++known;
      stages.insert(what[p].stage);
      if (is_long[p * m + b] == 0) continue;
      ++too_long;
      long_stages.insert(what[p].stage), long_kinds.insert(what[p].kind);
    }
    whole[b] = too_long > 1 && too_long >= kMaxPlaces * known;
    everywhere[b] = long_stages.size() == stages.size();
    kinds[b] = long_kinds.size() == 1 ? *long_kinds.begin() : CellKind::kOther;
    any = any || too_long > 0;
  }
  if (!any) return out;
  out.factor.assign(g.size(), 1.0F);
  out.of.assign(g.size(), 0);
  // The first of a row of micro-batches that are long at the same place, or long as a whole in the same way.
  const auto first_of = [&](size_t at) {
    size_t b = at % m;
    const size_t p = at / m;
    if (whole[b] != 0)
      while (b > 0 && whole[b - 1] != 0 && kinds[b - 1] == kinds[b] && everywhere[b - 1] == everywhere[b]) --b;
    else
      while (b > 0 && whole[b - 1] == 0 && is_long[p * m + b - 1] != 0) --b;
    return b;
  };
  // (place, or `places` for all; first micro-batch) → index into out.list.
  std::map<std::pair<size_t, size_t>, size_t> number;
  std::vector<int64_t> cells;
  each([&](size_t s, uint32_t op, size_t at) {
    if (!is_long[at]) return;
    const size_t b = at % m, p = whole[b] ? places : at / m, first = first_of(at);
    const auto [entry, fresh] = number.try_emplace({p, first}, out.list.size());
    if (fresh && out.list.size() < kMaxPositions) {
      CellPosition position;
      position.micro_batch = position.last_micro_batch = static_cast<int32_t>(first);
      position.every_stage = everywhere[b] != 0;
      position.kind = whole[b] ? kinds[b] : g.kind[op];
      if (!whole[b]) position.stage = g.stage(op), position.chunk = g.chunk[op];
      out.list.push_back(position);
      cells.push_back(0);
    }
    if (entry->second >= out.list.size()) return;
    out.factor[op] = static_cast<float>(seen[at].mean());
    out.of[op] = static_cast<uint8_t>(entry->second + 1);
    CellPosition& position = out.list[entry->second];
    position.last_micro_batch = std::max(position.last_micro_batch, static_cast<int32_t>(b));
    if (!counts[s]) return;
    position.own_ns += g.dur_ns[op], position.usual_ns += g.dur_ns[op] / ratio(op);
    ++cells[entry->second];
  });
  for (size_t i = 0; i < out.list.size(); ++i) {
    CellPosition& position = out.list[i];
    position.ratio = position.usual_ns > 0 ? position.own_ns / position.usual_ns : 1;
    if (cells[i] > 0) position.own_ns /= cells[i], position.usual_ns /= cells[i];
  }
  return out;
}

}  // namespace stageline
