#include "base/sort.h"

#include "base/ranges.h"

namespace stageline {

std::vector<size_t> stable_order(size_t count, bool (*before)(const void* rows, size_t a, size_t b), const void* rows) {
  size_t ordered = 1;
  while (ordered < count && !before(rows, ordered, ordered - 1)) ++ordered;
  if (ordered >= count) return {};
  auto order = indexes(count);
  merge_sort(order.data(), count, [&](size_t a, size_t b) { return before(rows, a, b); });
  return order;
}

}  // namespace stageline
