#include "diagnosis/causes/cause.h"

#include <algorithm>

namespace stageline {

void sort_causes(std::vector<Cause>& causes) {
  std::ranges::stable_sort(causes, [](const Cause& a, const Cause& b) {
    const double of_a = a.price.best_ns(), of_b = b.price.best_ns();
    return of_a != of_b ? of_a > of_b : a.price.lost_ns > b.price.lost_ns;
  });
}

}  // namespace stageline
