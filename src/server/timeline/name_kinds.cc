#include "server/timeline/name_kinds.h"

#include <algorithm>

#include "base/parallel.h"

namespace stageline {

NameKinds::NameKinds(const std::vector<ViewLane>& lanes, size_t name_count) : kinds_(name_count), first_(name_count) {
  const size_t tasks = std::max<size_t>(1, std::min<size_t>(lanes.size(), thread_count()));
  std::vector<std::vector<uint32_t>> seen(tasks);
  parallel_for(tasks, [&](size_t task) {
    seen[task].resize(name_count);
    for (size_t l = task; l < lanes.size(); l += tasks)
      for (size_t i = 0; lanes[l].has_slices() && i < lanes[l].count; ++i)
        seen[task][lanes[l].names[i]] |= uint32_t{1} << lanes[l].kind(i);
  });
  for (StringId name = 0; name < name_count; ++name) {
    for (const std::vector<uint32_t>& own : seen) kinds_[name] |= own[name];
    first_[name] = static_cast<uint32_t>(kind_.size());
    for (uint32_t left = kinds_[name]; left != 0; left &= left - 1) {
      name_.push_back(name);
      kind_.push_back(static_cast<uint8_t>(std::countr_zero(left)));
    }
  }
  uint32_t present = 0;
  for (const uint32_t kinds : kinds_) present |= kinds;
  const size_t rows = std::popcount(present);
  if (rows * name_count > kMaxTable) return;
  for (uint8_t kind = 0, row = 0; kind < kViewKindCount; ++kind)
    if (present & uint32_t{1} << kind) table_row_[kind] = row++;
  std::vector<uint32_t> table(rows * name_count);
  for (uint32_t at = 0; at < kind_.size(); ++at) table[size_t{table_row_[kind_[at]]} * name_count + name_[at]] = at;
  table_ = std::move(table);
}

}  // namespace stageline
