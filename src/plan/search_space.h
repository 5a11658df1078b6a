// The layouts and schedules that a wish allows, with what is known of them before a split is searched.
#pragma once

#include "plan/search.h"
#include "schedules/registry.h"

namespace stageline::plan {

inline bool divides(int32_t part, double whole) { return std::fmod(whole, part) == 0; }

std::vector<const ScheduleDef*> schedules_of(const Wish& wish);
// Calls `visit` for each layout that the model, the devices and the wish allow.
void for_each_layout(const Wish& wish, const std::function<void(const Layout&)>& visit);
// The numbers of micro-batches, and of chunks, that a layout may have.
std::vector<int32_t> micro_batch_counts(const Wish& wish, const Layout& layout);
std::vector<int32_t> chunk_counts(const Wish& wish, const ScheduleDef& def, int32_t pp);

// Times and states of a layout whatever its schedule.
struct LayoutSums {
  double latency = 0, work = 0, comm = 0, way = 0, states = 0, back_share = 1;
};
LayoutSums sums_of(const Wish& wish, const Layout& layout);
// No plan of the layout is faster: the mean work of a rank, one micro-batch's way, and for 1F1B both together.
double key_of(const LayoutSums& sums, const ScheduleDef& def, int32_t pp, int32_t micro_batches, double overlap);

}  // namespace stageline::plan
