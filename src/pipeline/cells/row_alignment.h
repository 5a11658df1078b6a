// Aligns the rows that were recorded with the rows of a schedule, when some are missing or too many.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

inline constexpr int32_t kNoRow = -1;
inline constexpr int32_t kMaxRowEdits = 96;  // insertions and deletions; lists that need more are taken as unrelated

// For each recorded row, the expected row that it is, or kNoRow. Several shortest sequences of edits may lead from one
// list to the other: `early` puts the edits as late as possible, `late` as early as possible. So a row on which both
// agree is outside every edit, and its label is sure.
struct RowAlignment {
  bool close = false;  // at most kMaxRowEdits edits apart; otherwise everything below is empty
  int32_t edits = 0;
  std::vector<int32_t> early, late;
};

namespace detail {

// Myers' greedy algorithm: for every number of edits, how far into `found` each diagonal reaches. At most O((n + m) +
// edits · (n + m)) comparisons and O(edits²) memory. Returns an empty list when the two are too far apart.
template <class Same> std::vector<int32_t> walk_rows(int32_t found, int32_t expected, Same same, int32_t& edits) {
  std::vector<std::vector<int32_t>> reached;  // for d edits: the x reached on diagonal k, at position k + d
  const auto at = [&](int32_t d, int32_t k) { return reached[d][k + d]; };
  const auto from_above = [&](int32_t d, int32_t k) {  // the step that skips an expected row, which was not found
    return k == -d || (k != d && at(d - 1, k - 1) < at(d - 1, k + 1));
  };
  const int32_t max = std::min(kMaxRowEdits, found + expected);
  int32_t end = kNoRow;
  for (int32_t d = 0; d <= max && end == kNoRow; ++d) {
    reached.emplace_back(static_cast<size_t>(2 * d + 1), -1);
    for (int32_t k = -d; k <= d; k += 2) {
      int32_t x = d == 0 ? 0 : from_above(d, k) ? at(d - 1, k + 1) : at(d - 1, k - 1) + 1;
      int32_t y = x - k;
      while (x < found && y >= 0 && y < expected && same(x, y)) ++x, ++y;
      reached.back()[k + d] = x;
      if (x >= found && y >= expected) end = d;
    }
  }
  if (end == kNoRow) return {};
  edits = end;
  std::vector<int32_t> row(found, kNoRow);
  int32_t x = found, y = expected;
  for (int32_t d = end; d >= 0; --d) {
    const int32_t k = x - y;
    const bool above = d > 0 && from_above(d, k);
    const int32_t before = d == 0 ? 0 : above ? at(d - 1, k + 1) : at(d - 1, k - 1);
    const int32_t first = d == 0 ? 0 : above ? before : before + 1;  // where the diagonal run of equal rows begins
    while (x > first) --x, --y, row[x] = y;
    if (d == 0) break;
    x = before;
    y = before - (above ? k + 1 : k - 1);
  }
  return row;
}

}  // namespace detail

// `same(i, j)` says whether recorded row i can be expected row j.
template <class Same> RowAlignment align_rows(size_t found, size_t expected, Same same) {
  RowAlignment out;
  const auto n = static_cast<int32_t>(found), m = static_cast<int32_t>(expected);
  if (n - m > kMaxRowEdits || m - n > kMaxRowEdits) return out;
  out.early = detail::walk_rows(
      n, m, [&](int32_t i, int32_t j) { return same(static_cast<size_t>(i), static_cast<size_t>(j)); }, out.edits);
  if (out.early.empty() && n > 0) return out;
  out.close = true;
  if (out.edits == 0) {
    out.late = out.early;
    return out;
  }
  int32_t edits = 0;
  const std::vector<int32_t> mirrored = detail::walk_rows(
      n, m, [&](int32_t i, int32_t j) { return same(static_cast<size_t>(n - 1 - i), static_cast<size_t>(m - 1 - j)); },
      edits);
  out.late.assign(found, kNoRow);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t j = mirrored[n - 1 - i];
    if (j != kNoRow) out.late[i] = m - 1 - j;
  }
  return out;
}

}  // namespace stageline
