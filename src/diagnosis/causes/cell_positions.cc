#include "diagnosis/causes/cell_times.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr int64_t kMinSeen = 3;        // steps (or replicas of steps) in which a place must be seen
constexpr double kLongPosition = 1.1;  // minimum ratio of a long place to the usual cell
constexpr double kNearlyAlways = 0.8;  // share of its cells that must have half of the mean excess or more
constexpr double kErrors = 6;  // standard errors of the mean; many, because one of many places may be long by chance
// Share of a stage's micro-batches; where more are long (and not just one of several), the position is not the reason.
constexpr double kMaxOfBatches = 0.25;
// Share of a micro-batch's places of those kinds that are long somewhere; if this many are long, the micro-batch is
// long as a whole, in these kinds.
constexpr double kMinLongPlaces = 0.5;
constexpr size_t kMaxCells = 10'000'000;
constexpr size_t kMaxPositions = 200;

struct Seen {
  int64_t count = 0;
  double sum = 0, squares = 0;
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
  const bool all = std::ranges::all_of(places, [&](size_t p) {
    Seen less, more;
    for (size_t b = 0; b < m; ++b) {
      Seen& sum = course.level[b] > middle ? more : less;
      sum.count += seen[p * m + b].count, sum.sum += seen[p * m + b].sum;
    }
    // For a trend, the means of its two halves differ by half as much as its ends.
    const double min_excess = (high / low - 1) / (course.kind == CourseKind::kTrend ? 4 : 2);
    return less.count > 0 && more.count > 0 && more.mean() >= (1 + min_excess) * less.mean();
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
    const auto same = std::ranges::find_if(out.list, [&](const CellPosition& other) {
      return other.stage == position.stage && other.chunk == position.chunk && alike(other.within, course);
    });
    for (const size_t p : places) shape[p] = course, number[p] = static_cast<uint8_t>(same - out.list.begin() + 1);
    if (same == out.list.end()) out.list.push_back(std::move(position));
    else same->kind = CellKind::kOther;
  };
  for (const auto& [kind, places] : of_kind) take(places, true);
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> of_stage;  // by stage and chunk
  if (out.list.empty() && stages.size() > 1)
    for (const auto& [kind, places] : of_kind)
      for (const size_t p : places) of_stage[{what[p].stage, what[p].chunk}].push_back(p);
  for (const auto& [stage, places] : of_stage) {
    const Course first = shape_of(seen, {places.front()}, m);
    const bool all = first.varies() && places.size() > 1 &&
                     std::ranges::all_of(places, [&](size_t p) { return alike(shape_of(seen, {p}, m), first); });
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

// A micro-batch over all its places.
struct Batch {
  bool whole = false;                // it is long at most of its places
  bool everywhere = false;           // it is long on every stage
  CellKind kind = CellKind::kOther;  // of all its long places; kOther: several kinds
  bool same(const Batch& other) const {
    return whole && other.whole && kind == other.kind && everywhere == other.everywhere;
  }
};

// Cells by place and micro-batch: cell (p, b) is at p × m_ + b.
class PositionSearch {
 public:
  PositionSearch(const StepGraph& g, const std::vector<bool>& counts, const std::function<double(uint32_t op)>& ratio,
                 const std::function<uint32_t(uint32_t op)>& place, size_t places, size_t micro_batches)
      : g_(g), counts_(counts), ratio_(ratio), place_(place), places_(places), m_(micro_batches), seen_(places * m_),
        what_(places), is_long_(seen_.size(), 0) {}

  CellPositions find() {
    measure();
    CellPositions out;
    find_shapes(g_, seen_, what_, m_, [&](const auto& body) { each(body); }, out);
    if (!out.list.empty() || !mark_long_cells()) return out;
    drop_occasional_cells();
    std::vector<Batch> batches;
    for (size_t b = 0; b < m_; ++b) batches.push_back(batch(b));
    if (std::ranges::find(is_long_, 1) != is_long_.end()) list_positions(batches, out);
    return out;
  }

 private:
  // Calls body(step, op, cell) for the operations whose time can be compared.
  template <class Body> void each(const Body& body) const {
    for (size_t s = 0; s < g_.steps.size(); ++s)
      for (uint32_t op = g_.steps[s].begin; op < g_.steps[s].end; ++op)
        if (g_.micro_batch[op] >= 0 && ratio_(op) > 0) body(s, op, place_(op) * m_ + g_.micro_batch[op]);
  }

  void measure() {
    each([&](size_t s, uint32_t op, size_t at) {
      what_[at / m_] = {g_.stage(op), g_.chunk[op], g_.kind[op]};
      if (!counts_[s]) return;
      const double r = ratio_(op);
      ++seen_[at].count, seen_[at].sum += r, seen_[at].squares += r * r;
    });
  }

  // Returns false where no cell was seen often enough.
  bool mark_long_cells() {
    std::vector<double> deviations;
    for (const Seen& cell : seen_)
      if (cell.count >= kMinSeen) deviations.push_back(cell.deviation());
    if (deviations.empty()) return false;
    const double usual_deviation = median_of(std::move(deviations));
    for (size_t at = 0; at < seen_.size(); ++at) {
      const Seen& cell = seen_[at];
      if (cell.count < kMinSeen) continue;
      const double error = std::max(usual_deviation, cell.deviation()) / std::sqrt(cell.count);
      is_long_[at] = cell.mean() >= kLongPosition && cell.mean() - 1 > kErrors * error;
    }
    return true;
  }

  // A cell must be long nearly always, and few of its place; otherwise another cause makes it long.
  void drop_occasional_cells() {
    std::vector<int64_t> often(seen_.size(), 0);
    each([&](size_t s, uint32_t op, size_t at) {
      if (counts_[s] && is_long_[at] && ratio_(op) - 1 >= (seen_[at].mean() - 1) / 2) ++often[at];
    });
    for (size_t p = 0; p < places_; ++p) {
      size_t known = 0, too_long = 0;
      for (size_t at = p * m_; at < (p + 1) * m_; ++at) {
        if (is_long_[at] && often[at] < kNearlyAlways * seen_[at].count) is_long_[at] = 0;
        known += seen_[at].count > 0, too_long += is_long_[at];
      }
      const bool alone = too_long == 1 && known > 2;
      if (!alone && too_long > kMaxOfBatches * known) std::fill_n(is_long_.begin() + p * m_, m_, 0);
    }
  }

  Batch batch(size_t b) const {
    size_t known = 0, too_long = 0;
    std::set<int32_t> stages, long_stages;
    std::set<CellKind> long_kinds;
    std::map<CellKind, size_t> known_of;
    for (size_t p = 0; p < places_; ++p) {
      if (seen_[p * m_ + b].count == 0) continue;
      ++known_of[what_[p].kind];
      stages.insert(what_[p].stage);
      if (is_long_[p * m_ + b] == 0) continue;
      ++too_long;
      long_stages.insert(what_[p].stage), long_kinds.insert(what_[p].kind);
    }
    for (const CellKind kind : long_kinds) known += known_of[kind];
    return {too_long > 1 && too_long >= kMinLongPlaces * known, long_stages.size() == stages.size(),
            long_kinds.size() == 1 ? *long_kinds.begin() : CellKind::kOther};
  }

  // Returns the first of a row of micro-batches that are long at the same place, or long as a whole in the same way.
  size_t first_of(const std::vector<Batch>& batches, size_t at) const {
    size_t b = at % m_;
    if (batches[b].whole)
      while (b > 0 && batches[b - 1].same(batches[b])) --b;
    else
      for (size_t before = at; b > 0 && !batches[b - 1].whole && is_long_[before - 1] != 0; --before) --b;
    return b;
  }

  void list_positions(const std::vector<Batch>& batches, CellPositions& out) const {
    out.factor.assign(g_.size(), 1.0F);
    out.of.assign(g_.size(), 0);
    // (place, or places_ for all; first micro-batch) → index into out.list.
    std::map<std::pair<size_t, size_t>, size_t> number;
    std::vector<int64_t> cells;
    each([&](size_t s, uint32_t op, size_t at) {
      if (!is_long_[at]) return;
      const size_t b = at % m_, first = first_of(batches, at);
      const bool whole = batches[b].whole;
      const auto [entry, fresh] = number.try_emplace({whole ? places_ : at / m_, first}, out.list.size());
      if (fresh && out.list.size() < kMaxPositions) {
        CellPosition position;
        position.micro_batch = position.last_micro_batch = static_cast<int32_t>(first);
        position.every_stage = batches[b].everywhere;
        position.kind = whole ? batches[b].kind : g_.kind[op];
        if (!whole) position.stage = g_.stage(op), position.chunk = g_.chunk[op];
        out.list.push_back(position);
        cells.push_back(0);
      }
      if (entry->second >= out.list.size()) return;
      out.factor[op] = static_cast<float>(seen_[at].mean());
      out.of[op] = static_cast<uint8_t>(entry->second + 1);
      CellPosition& position = out.list[entry->second];
      position.last_micro_batch = std::max(position.last_micro_batch, static_cast<int32_t>(b));
      if (!counts_[s]) return;
      position.own_ns += g_.dur_ns[op], position.usual_ns += g_.dur_ns[op] / ratio_(op);
      const double off = ratio_(op) / seen_[at].mean() - 1;
      position.excess_error += off * off;
      ++cells[entry->second];
    });
    for (size_t i = 0; i < out.list.size(); ++i) {
      CellPosition& position = out.list[i];
      position.ratio = position.usual_ns > 0 ? position.own_ns / position.usual_ns : 1;
      if (cells[i] > 0) position.own_ns /= cells[i], position.usual_ns /= cells[i];
      const double error = position.ratio * std::sqrt(position.excess_error) / std::max<double>(cells[i], 1);
      position.excess_error = position.ratio > 1 ? error / (position.ratio - 1) : 0;
    }
  }

  const StepGraph& g_;
  const std::vector<bool>& counts_;
  const std::function<double(uint32_t op)>& ratio_;
  const std::function<uint32_t(uint32_t op)>& place_;
  size_t places_, m_;
  std::vector<Seen> seen_;
  std::vector<PlaceKind> what_;  // for each place
  std::vector<uint8_t> is_long_;
};

}  // namespace

CellPositions find_positions(const StepGraph& g, const std::vector<bool>& counts,
                             const std::function<double(uint32_t op)>& ratio,
                             const std::function<uint32_t(uint32_t op)>& place, size_t places) {
  const size_t m = g.micro_batch.empty() ? 0 : *std::ranges::max_element(g.micro_batch) + 1;
  if (m < 2 || places * m > kMaxCells) return {};
  return PositionSearch(g, counts, ratio, place, places, m).find();
}

}  // namespace stageline
