// A clock that is set during the run shows as a jump of y between two straight lines, in both directions at once:
//
//     y        ┌──────────      samples are cut into blocks of equal number, each block gives one value that a few
//     ─────────┘                bad samples cannot move; the best few lines through the blocks show the jumps
//              t
//
// Messages whose senders wait for their receivers end at the same moment on both sides, so the median of a block gives
// y to microseconds. The smallest gaps of a block are nearest to it.
//
// A delay of one direction (a slower link, a late host) moves the samples of that direction alone, and is not a jump:
//
//     a clock is set by 4 ms     samples from a +4 ms     from b +4 ms
//     a link is slower by 8 ms   samples from a +8 ms     from b  0 ms
#include "pipeline/clocks/tie_fit.h"

namespace stageline::align {
namespace {

constexpr size_t kMaxBlocks = 64, kMinBlocks = 3;  // blocks in all; the least for each line
constexpr size_t kMinSamples = 4;                  // number in one block, for each direction
constexpr double kMinJumpNs = 20'000;              // the network may cause smaller ones
constexpr double kJumpToScatter = 6;
constexpr size_t kMaxPieces = 6;    // lines that one search may find
constexpr double kMinOfJump = 0.5;  // minimum share of a jump that each direction by itself must show
constexpr double kMinGain = 9;      // one line must leave this number of times the squared residual

struct Block {
  double from_t = 0, to_t = 0, t = 0, y = 0;
  double of_a = 0, of_b = 0;  // what the samples of each direction say of y, which is their middle
};

double middle_of(std::vector<double> values, size_t nth) {
  const auto at = values.begin() + nth;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::vector<Block> blocks_of(const TiePoints& points, TieKind kind) {
  const auto &a = points.from_a.kept(), &b = points.from_b.kept();
  std::vector<Block> blocks;
  if (a.empty() || b.empty()) return blocks;
  const size_t count = std::min({kMaxBlocks, a.size() / kMinSamples, b.size() / kMinSamples});
  if (count < 2 * kMinBlocks) return blocks;
  // Blocks have equal numbers of samples of the direction that has fewer; of the other direction they take those of the
  // same time.
  const bool by_a = a.size() <= b.size();
  const std::vector<Sample>&few = by_a ? a : b, &many = by_a ? b : a;
  size_t next = 0;
  for (size_t k = 0; k < count; ++k) {
    const size_t begin = few.size() * k / count, end = few.size() * (k + 1) / count;
    Block block{few[begin].t, k + 1 < count ? few[end].t : 1e300, 0, 0};
    std::vector<double> ours, theirs;
    for (size_t i = begin; i < end; ++i) {
      ours.push_back(few[i].y);
      block.t += few[i].t / (end - begin);
    }
    while (next < many.size() && k > 0 && many[next].t < block.from_t) ++next;
    for (; next < many.size() && many[next].t < block.to_t; ++next) theirs.push_back(many[next].y);
    if (ours.empty() || theirs.empty()) continue;
    // Samples from a are y + τ ≥ y, so their smallest are nearest to y; of samples from b the largest are.
    const bool gaps = kind == TieKind::kGaps;
    const auto value = [&](const std::vector<double>& v, bool from_a) {
      return middle_of(v, gaps ? (from_a ? v.size() / 8 : v.size() - 1 - v.size() / 8) : v.size() / 2);
    };
    block.of_a = by_a ? value(ours, true) : value(theirs, true);
    block.of_b = by_a ? value(theirs, false) : value(ours, false);
    block.y = (block.of_a + block.of_b) / 2;
    blocks.push_back(block);
  }
  return blocks;
}

// Sums from which the least-squares line of any range of blocks follows in O(1).
class LineSums {
 public:
  LineSums(const std::vector<Block>& blocks, double Block::* value) : sums_(blocks.size() + 1) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const double t = blocks[i].t - blocks[0].t, y = blocks[i].*value - blocks[0].*value;
      sums_[i + 1] = sums_[i];
      sums_[i + 1].t += t;
      sums_[i + 1].y += y;
      sums_[i + 1].tt += t * t;
      sums_[i + 1].ty += t * y;
      sums_[i + 1].yy += y * y;
    }
    t0_ = blocks[0].t;
    y0_ = blocks[0].*value;
  }
  // Returns the line of blocks [begin, end), and in `squares` its sum of squared residuals.
  Line line(size_t begin, size_t end, double drift_limit, double& squares) const {
    const double n = end - begin;
    const Sums &p = sums_[begin], &q = sums_[end];
    const double t = (q.t - p.t) / n, y = (q.y - p.y) / n;
    const double tt = (q.tt - p.tt) - n * t * t, ty = (q.ty - p.ty) - n * t * y, yy = (q.yy - p.yy) - n * y * y;
    const double slope = tt > 0 ? std::clamp(ty / tt, -drift_limit, drift_limit) : 0;
    squares = std::max(0.0, yy - 2 * slope * ty + slope * slope * tt);
    return {y + y0_ - slope * (t + t0_), slope, 0};
  }

 private:
  struct Sums {
    double t = 0, y = 0, tt = 0, ty = 0, yy = 0;
  };
  std::vector<Sums> sums_;
  double t0_ = 0, y0_ = 0;
};

// For each number of pieces from 1 on: the best way to cut the blocks into this number of lines. It has the end of each
// line, and the sum of squares that is left. It is found by dynamic programming over all places where lines can change.
struct Cuts {
  std::vector<std::vector<size_t>> ends;  // index: pieces − 1
  std::vector<double> squares;
};

Cuts best_cuts(const LineSums& sums, size_t n, double drift_limit) {
  std::vector<std::vector<double>> best(kMaxPieces, std::vector<double>(n + 1, -1));
  std::vector<std::vector<size_t>> from(kMaxPieces, std::vector<size_t>(n + 1, 0));
  for (size_t end = kMinBlocks; end <= n; ++end)
    for (size_t begin = 0; begin + kMinBlocks <= end; begin += begin == 0 ? kMinBlocks : 1) {
      double squares = 0;
      sums.line(begin, end, drift_limit, squares);
      if (begin == 0) best[0][end] = squares;
      for (size_t k = 1; k < kMaxPieces && begin > 0; ++k) {
        if (best[k - 1][begin] < 0) continue;
        const double sum = best[k - 1][begin] + squares;
        if (best[k][end] >= 0 && sum >= best[k][end]) continue;
        best[k][end] = sum;
        from[k][end] = begin;
      }
    }
  Cuts cuts;
  for (size_t k = 0; k < kMaxPieces && best[k][n] >= 0; ++k) {
    std::vector<size_t> ends;
    for (size_t at = n, piece = k + 1; piece-- > 0; at = from[piece][at]) ends.push_back(at);
    std::ranges::reverse(ends);
    cuts.ends.push_back(std::move(ends));
    cuts.squares.push_back(best[k][n]);
  }
  return cuts;
}

}  // namespace

std::vector<ClockJump> find_jumps(const TiePoints& points, TieKind kind, double drift_limit) {
  if (kind == TieKind::kOperator) return {};
  const std::vector<Block> blocks = blocks_of(points, kind);
  const size_t n = blocks.size();
  if (n < 2 * kMinBlocks) return {};
  const LineSums sums(blocks, &Block::y), sums_a(blocks, &Block::of_a), sums_b(blocks, &Block::of_b);
  const Cuts cuts = best_cuts(sums, n, drift_limit);
  double unused = 0;
  // Takes the fewest lines that explain nearly everything. (A jump up and a jump down again may show only together.)
  for (size_t k = 1; k < cuts.ends.size(); ++k) {
    if (cuts.squares[k] * kMinGain > cuts.squares[0]) continue;
    const size_t freedom = 2 * (k + 1);
    const double scatter = std::sqrt(cuts.squares[k] / (n > freedom ? n - freedom : 1));
    std::vector<ClockJump> jumps;
    for (size_t p = 0; p < k; ++p) {
      const size_t begin = p == 0 ? 0 : cuts.ends[k][p - 1], at = cuts.ends[k][p], end = cuts.ends[k][p + 1];
      ClockJump jump{.before = sums.line(begin, at, drift_limit, unused),
                     .after = sums.line(at, end, drift_limit, unused)};
      // The block that contains the jump may be on either side of the cut.
      jump.from_t = blocks[at - 1].from_t;
      jump.to_t = std::min(blocks[at].to_t, blocks[at].t + (blocks[at].t - blocks[at].from_t) * 2 + 1);
      const double t = blocks[at].from_t;
      jump.jump = jump.after.at(t) - jump.before.at(t);
      // A bend is a change of drift; a jump must be larger than bends and scatter can make.
      if (std::abs(jump.jump) < std::max(kMinJumpNs, kJumpToScatter * scatter)) continue;
      const auto moved = [&](const LineSums& of) {
        return of.line(at, end, drift_limit, unused).at(t) - of.line(begin, at, drift_limit, unused).at(t);
      };
      // Both directions move with a clock.
      if (std::min(moved(sums_a) / jump.jump, moved(sums_b) / jump.jump) >= kMinOfJump) jumps.push_back(jump);
    }
    if (jumps.size() == k) return jumps;
  }
  return {};
}

double refine_jump(const TiePoints& window, const ClockJump& jump) {
  std::vector<std::pair<double, double>> gains;  // time, how much better the line before fits than the line after
  const double max = std::abs(jump.jump);
  const auto take = [&](const Samples& samples) {
    for (const Sample& s : samples.kept()) {
      const double before = std::min(std::abs(s.y - jump.before.at(s.t)), max);
      const double after = std::min(std::abs(s.y - jump.after.at(s.t)), max);
      gains.emplace_back(s.t, after - before);
    }
  };
  take(window.from_a);
  take(window.from_b);
  std::ranges::sort(gains);
  double sum = 0, best = 0, at = jump.from_t;
  for (size_t i = 0; i < gains.size(); ++i) {
    sum += gains[i].second;
    if (sum > best) {
      best = sum;
      at = i + 1 < gains.size() ? (gains[i].first + gains[i + 1].first) / 2 : jump.to_t;
    }
  }
  return at;
}

}  // namespace stageline::align
