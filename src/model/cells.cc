#include "model/cells.h"

#include "base/parallel.h"

namespace stageline {
namespace {

// Rows of one step and part that lie side by side.
struct Stretch {
  uint32_t begin, end, bucket;
};

template <class T> std::vector<T> side_by_side(const std::vector<T>& column, const std::vector<Stretch>& stretches) {
  std::vector<T> out;
  out.reserve(column.size());
  for (const Stretch& one : stretches) out.insert(out.end(), column.begin() + one.begin, column.begin() + one.end);
  return out;
}

}  // namespace

Cells::Cells(const Cells& from) {
  const auto copy = [&](auto Cells::* column) { return [this, &from, column] { this->*column = from.*column; }; };
  const std::function<void()> columns[] = {copy(&Cells::start_ns), copy(&Cells::end_ns),     copy(&Cells::step),
                                           copy(&Cells::part),     copy(&Cells::chunk),      copy(&Cells::slice),
                                           copy(&Cells::kind),     copy(&Cells::micro_batch)};
  parallel_for(std::size(columns), [&](size_t i) { columns[i](); });
}

void Cells::add(const Cell& cell) {
  step.push_back(cell.step);
  part.push_back(cell.part);
  kind.push_back(cell.kind);
  chunk.push_back(cell.chunk);
  micro_batch.push_back(cell.micro_batch);
  start_ns.push_back(cell.start_ns);
  end_ns.push_back(cell.end_ns);
  slice.push_back(cell.slice);
}

Cell Cells::at(size_t i) const {
  return {step[i], part[i], kind[i], chunk[i], micro_batch[i], start_ns[i], end_ns[i], slice[i]};
}

// The rows of one step and part, a bucket, already lie in a few stretches, mostly in one that is in order. So stretches
// are put side by side by counting, and then the buckets that are not in order are sorted.
void Cells::sort() {
  std::vector<Stretch> stretches;
  std::map<std::pair<int32_t, int32_t>, uint32_t> numbers;  // of the buckets
  std::vector<size_t> rows, places;                         // of a bucket: its rows, its stretches
  for (uint32_t i = 0; i < size(); ++i) {
    if (i == 0 || step[i] != step[i - 1] || part[i] != part[i - 1]) {
      const auto number = numbers.try_emplace({step[i], part[i]}, static_cast<uint32_t>(rows.size())).first->second;
      if (number == rows.size()) rows.push_back(0), places.push_back(0);
      stretches.push_back({i, i, number});
      ++places[number];
    }
    stretches.back().end = i + 1;
    ++rows[stretches.back().bucket];
  }
  std::vector<size_t> begins = {0};  // of each bucket, and the end of the last
  size_t next = 0;
  for (const auto& [key, number] : numbers) {
    begins.push_back(begins.back() + rows[number]);
    next += std::exchange(places[number], next);  // from here on the place of the bucket's next stretch
  }
  std::vector<Stretch> sorted(stretches.size());
  for (const Stretch& one : stretches) sorted[places[one.bucket]++] = one;
  std::vector<Stretch>().swap(stretches);
  if (!std::ranges::is_sorted(sorted, {}, &Stretch::begin)) {
    std::vector<std::function<void()>> columns;
    each_column([&](auto& column) { columns.emplace_back([&] { column = side_by_side(column, sorted); }); });
    parallel_for(columns.size(), [&](size_t i) { columns[i](); });
  }
  parallel_for(begins.size() - 1, [&](size_t b) { sort_rows(begins[b], begins[b + 1]); });
}

// Orders rows of one bucket.
void Cells::sort_rows(size_t begin, size_t end) {
  const auto before = [&](size_t a, size_t b) {
    return std::tuple(start_ns[a], slice[a], -end_ns[a], a) < std::tuple(start_ns[b], slice[b], -end_ns[b], b);
  };
  size_t i = begin + 1;
  while (i < end && before(i - 1, i)) ++i;
  if (i >= end) return;
  auto order = indexes(end - begin, begin);
  std::ranges::sort(order, before);
  each_column([&](auto& column) {
    const std::vector unsorted(column.begin() + begin, column.begin() + end);
    for (size_t k = 0; k < order.size(); ++k) column[begin + k] = unsorted[order[k] - begin];
  });
}

std::vector<StepRange> step_ranges(const Cells& cells) {
  std::vector<StepRange> ranges;
  for (auto at = cells.step.begin(); at != cells.step.end();) {
    const auto end = std::upper_bound(at, cells.step.end(), *at);
    ranges.push_back(
        {*at, static_cast<size_t>(at - cells.step.begin()), static_cast<size_t>(end - cells.step.begin())});
    at = end;
  }
  return ranges;
}

int assign_rows(const std::vector<int64_t>& start_ns, const std::vector<int64_t>& end_ns, std::vector<int>& row,
                int max_rows) {
  row.assign(start_ns.size(), 0);
  std::vector<int64_t> free_at;  // for each row, when its last interval ends
  for (size_t i = 0; i < start_ns.size(); ++i) {
    size_t r = 0;
    while (r < free_at.size() && free_at[r] > start_ns[i]) ++r;
    if (r == free_at.size()) {
      if (free_at.size() < static_cast<size_t>(max_rows)) free_at.push_back(end_ns[i]);
      else r = free_at.size() - 1;
    }
    free_at[r] = std::max(free_at[r], end_ns[i]);
    row[i] = static_cast<int>(r);
  }
  return static_cast<int>(free_at.size());
}

std::vector<RankRange> rank_ranges(const Cells& cells) {
  std::vector<RankRange> ranges;
  for (const StepRange& step : step_ranges(cells))
    for (size_t i = step.begin; i < step.end;) {
      size_t end = i + 1;
      while (end < step.end && cells.part[end] == cells.part[i]) ++end;
      ranges.push_back({step.step, cells.part[i], i, end});
      i = end;
    }
  return ranges;
}

}  // namespace stageline
