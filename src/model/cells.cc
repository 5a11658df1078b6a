#include "model/cells.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace stageline {
namespace {

template <class T>
void permute(std::vector<T>& column, const std::vector<uint32_t>& order) {
  std::vector<T> sorted(column.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column.swap(sorted);
}

}  // namespace

void Cells::reserve(size_t count) {
  step.reserve(count);
  part.reserve(count);
  kind.reserve(count);
  chunk.reserve(count);
  micro_batch.reserve(count);
  start_ns.reserve(count);
  end_ns.reserve(count);
  slice.reserve(count);
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

void Cells::sort() {
  const auto key = [&](uint32_t i) { return std::tuple(step[i], part[i], start_ns[i], -end_ns[i], slice[i], i); };
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0u);
  const auto less = [&](uint32_t a, uint32_t b) { return key(a) < key(b); };
  if (std::is_sorted(order.begin(), order.end(), less)) return;
  std::sort(order.begin(), order.end(), less);
  permute(step, order);
  permute(part, order);
  permute(kind, order);
  permute(chunk, order);
  permute(micro_batch, order);
  permute(start_ns, order);
  permute(end_ns, order);
  permute(slice, order);
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
  std::vector<int64_t> free_at;  // per row: when its last interval ends
  for (size_t i = 0; i < start_ns.size(); ++i) {
    size_t r = 0;
    while (r < free_at.size() && free_at[r] > start_ns[i]) ++r;
    if (r == free_at.size()) {
      if (free_at.size() < static_cast<size_t>(max_rows)) {
        free_at.push_back(end_ns[i]);
      } else {
        r = free_at.size() - 1;
      }
    }
    free_at[r] = std::max(free_at[r], end_ns[i]);
    row[i] = static_cast<int>(r);
  }
  return static_cast<int>(free_at.size());
}

}  // namespace stageline
