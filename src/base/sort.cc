#include "base/sort.h"

namespace stageline {

std::vector<size_t> stable_order(size_t count, bool (*before)(const void* rows, size_t a, size_t b), const void* rows) {
  size_t ordered = 1;
  while (ordered < count && !before(rows, ordered, ordered - 1)) ++ordered;
  if (ordered >= count) return {};
  std::vector<size_t> order(count), merged(count);
  std::iota(order.begin(), order.end(), size_t{0});
  constexpr size_t kRun = 8;
  for (size_t begin = 0; begin < count; begin += kRun)
    for (size_t end = begin + 1; end < std::min(begin + kRun, count); ++end) {
      const size_t row = order[end];
      size_t at = end;
      for (; at > begin && before(rows, row, order[at - 1]); --at) order[at] = order[at - 1];
      order[at] = row;
    }
  for (size_t run = kRun; run < count; run *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * run) {
      const size_t middle = std::min(begin + run, count), end = std::min(begin + 2 * run, count);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool takes_right = left == middle || (right < end && before(rows, order[right], order[left]));
        merged[at] = order[takes_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace stageline
