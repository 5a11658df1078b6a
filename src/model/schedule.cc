#include "model/schedule.h"

namespace stageline {

const char* layout_name(ChunkLayout layout) {
  switch (layout) {
    case ChunkLayout::kLoop: return "loop";
    case ChunkLayout::kV: return "v";
    default: return "bidirectional";
  }
}

int32_t virtual_stage(const Schedule& schedule, int32_t rank, int32_t chunk) {
  const int32_t p = schedule.sizes.stages;
  if (schedule.layout == ChunkLayout::kBidirectional) return chunk == 0 ? rank : p - 1 - rank;
  if (schedule.layout == ChunkLayout::kLoop || chunk % 2 == 0) return chunk * p + rank;
  return chunk * p + (p - 1 - rank);
}

int32_t virtual_stage_count(const Schedule& schedule) {
  return schedule.sizes.stages * (schedule.layout == ChunkLayout::kBidirectional ? 1 : schedule.sizes.chunks);
}

std::string cell_text(const ScheduleCell& cell, bool with_chunk) {
  std::string text;
  for (const Action& a : cell.actions())
    append_item(text,
                std::string(kind_code(a.kind)) + std::to_string(a.micro_batch) +
                    (with_chunk ? ".c" + std::to_string(a.chunk) : ""),
                "&");
  return text;
}

int64_t UnitCosts::of(const ScheduleCell& cell) const {
  if (cell.overlapped()) return overlapped_ns;
  switch (cell.actions()[0].kind) {
    case CellKind::kForward: return forward_ns;
    case CellKind::kInputGrad: return input_ns;
    case CellKind::kWeightGrad: return weight_ns;
    default: return backward_ns;
  }
}

}  // namespace stageline
