#include "base/sort.h"

namespace stageline {

std::vector<size_t> stable_order(size_t count, bool (*before)(const void* rows, size_t a, size_t b), const void* rows) {
  size_t ordered = 1;
  while (ordered < count && !before(rows, ordered, ordered - 1)) ++ordered;
  if (ordered >= count) return {};
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  merge_sort(order.data(), count, [&](size_t a, size_t b) { return before(rows, a, b); });
  return order;
}

}  // namespace stageline
