#include "schedules/build.h"

#include "base/error_words.h"

namespace stageline {

RankOrder warm_alternate(int32_t warm, int32_t micro_batches) {
  RankOrder order;
  order.reserve(static_cast<size_t>(micro_batches) * 2);
  warm = std::min(warm, micro_batches);
  for (int32_t i = 0; i < warm; ++i) push(order, CellKind::kForward, i);
  for (int32_t i = 0; i < micro_batches - warm; ++i) {
    push(order, CellKind::kBackward, i);
    push(order, CellKind::kForward, warm + i);
  }
  for (int32_t i = micro_batches - warm; i < micro_batches; ++i) push(order, CellKind::kBackward, i);
  return order;
}

RankOrder warm_alternate_split(int32_t warm, int32_t micro_batches, int32_t owed) {
  RankOrder order;
  order.reserve(static_cast<size_t>(micro_batches) * 3);
  int32_t forward = std::min(warm, micro_batches), weight = 0;
  for (int32_t i = 0; i < forward; ++i) push(order, CellKind::kForward, i);
  for (int32_t i = 0; i < micro_batches; ++i) {
    push(order, CellKind::kInputGrad, i);
    if (i + 1 - weight > owed) push(order, CellKind::kWeightGrad, weight++);
    if (forward < micro_batches) push(order, CellKind::kForward, forward++);
  }
  while (weight < micro_batches) push(order, CellKind::kWeightGrad, weight++);
  return order;
}

std::vector<std::pair<int32_t, int32_t>> interleaving_table(const ScheduleSizes& sizes, int32_t group) {
  std::vector<std::pair<int32_t, int32_t>> table;
  table.reserve(sizes.micro_batches * static_cast<size_t>(sizes.chunks));
  for (int32_t low = 0; low < sizes.micro_batches; low += group) {
    const int32_t high = std::min(sizes.micro_batches, low + group);
    for (int32_t chunk = 0; chunk < sizes.chunks; ++chunk)
      for (int32_t i = low; i < high; ++i) table.emplace_back(i, chunk);
  }
  return table;
}

int32_t even_group(const ScheduleSizes& sizes) {
  return sizes.micro_batches / std::max(1, sizes.micro_batches / sizes.stages);
}

double classic_bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs) {
  return (sizes.stages - 1) * static_cast<double>(costs.forward_ns + costs.backward_ns);
}

Error sizes_error(const char* name, const Text& needs, int32_t found) {
  return worded_error(ErrorCode::kUsage, "order.needs",
                      Args().set("schedule", std::string(name)).set("needs", needs).set("found", int64_t{found}));
}

}  // namespace stageline
