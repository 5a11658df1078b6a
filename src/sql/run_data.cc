#include "sql/run_data.h"

#include "model/lanes.h"
#include "profile/slice_select.h"

namespace stageline::sql {

RunData::RunData(std::shared_ptr<const Run> run, std::shared_ptr<const void> owner, std::vector<std::string> paths)
    : run_(std::move(run)), owner_(std::move(owner)), paths_(std::move(paths)), chosen_(trace().parts.size()),
      device_(trace().parts.size()), bounds_(trace().parts.size()) {
  const Trace& t = trace();
  for (const CategoryInfo& category : t.categories) is_device_.push_back(is_device_work(category.kind));
  std::vector<int64_t> first(t.parts.size(), INT64_MAX);
  for (uint32_t p = 0; p < t.parts.size(); ++p) {
    const std::vector<int32_t>& wanted = t.slice_filter.ranks;
    in_filter_.push_back(wanted.empty() || std::ranges::binary_search(wanted, t.parts[p].rank));
    for (const Lane& lane : t.parts[p].lanes)
      if (lane.begin < lane.end) first[p] = std::min(first[p], t.common_ns(p, t.parts[p].slices.start_ns[lane.begin]));
  }
  // In a run of cells only, and for ranks without slices, the first cell counts.
  for (size_t i = 0; i < t.cells.size(); ++i) {
    const size_t p = t.cells.part[i];
    if (t.parts[p].slices.size() == 0) first[p] = std::min(first[p], t.common_ns(t.cells.part[i], t.cells.start_ns[i]));
  }
  int64_t min = min_over<int64_t>(first);
  epoch_ns_ = min == INT64_MAX ? 0 : min;
  for (const int64_t ns : first) zero_ns_.push_back(t.comparable() || ns == INT64_MAX ? epoch_ns_ : ns);
}

int64_t RunData::time_ns(size_t part, int64_t stamp_ns) const {
  return between_ns(zero_ns_[part], trace().common_ns(static_cast<int32_t>(part), stamp_ns));
}

const std::vector<uint32_t>* RunData::chosen_rows(size_t part) const {
  if (!trace().slice_filter.any()) return nullptr;
  PerPart<std::vector<uint32_t>>& slot = chosen_[part];
  std::call_once(slot.once, [&] { slot.value = select_slices(trace(), part, SliceCondition()); });
  return &slot.value;
}

bool RunData::is_device(size_t part, size_t slice) const {
  const Slices& s = trace().parts[part].slices;
  return !s.category_id.empty() && is_device_[s.category_id[slice]];
}

const std::vector<uint32_t>& RunData::device_rows(size_t part) const {
  const std::vector<uint32_t>* const chosen = chosen_rows(part);
  PerPart<std::vector<uint32_t>>& slot = device_[part];
  std::call_once(slot.once, [&] {
    const Slices& s = trace().parts[part].slices;
    if (s.category_id.empty()) return;
    const size_t count = chosen ? chosen->size() : s.size();
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t slice = chosen ? (*chosen)[i] : i;
      if (is_device_[s.category_id[slice]]) slot.value.push_back(slice);
    }
    slot.value.shrink_to_fit();
  });
  return slot.value;
}

const RunData::Bounds& RunData::bounds(size_t part) const {
  PerPart<Bounds>& slot = bounds_[part];
  std::call_once(slot.once, [&] {
    const Part& p = trace().parts[part];
    Bounds& b = slot.value;
    b.latest_end_ns.assign(p.slices.size() / kBlock + 1, INT64_MIN);
    for (size_t i = 0; i < p.slices.size(); ++i) {
      int64_t& latest = b.latest_end_ns[i / kBlock];
      latest = std::max(latest, sum_or_limit(p.slices.start_ns[i], p.slices.dur_ns[i]));
    }
    for (const Lane& lane : p.lanes) {
      int64_t longest = 0;
      for (size_t i = lane.begin; i < lane.end; ++i) longest = std::max(longest, p.slices.dur_ns[i]);
      b.longest_ns.push_back(longest);
    }
  });
  return slot.value;
}

size_t RunData::lane_of(size_t part, size_t slice) const {
  const Part& p = trace().parts[part];
  return std::min(stageline::lane_of(p, slice), std::max<size_t>(1, p.lanes.size()) - 1);
}

uint32_t RunData::enclosing(size_t part, size_t slice) const {
  const Part& p = trace().parts[part];
  if (p.slices.parent.empty()) return kNoSliceIndex;
  const uint32_t parent = p.slices.parent[slice];
  // The parent of device work is its operator.
  if (parent == kNoSliceIndex || is_device(part, slice)) return kNoSliceIndex;
  const Lane& lane = p.lanes[lane_of(part, slice)];
  return parent >= lane.begin && parent < lane.end ? parent : kNoSliceIndex;
}

int64_t RunData::self_ns(size_t part, size_t lane, size_t slice) const {
  const Part& p = trace().parts[part];
  const Slices& s = p.slices;
  int64_t self = s.dur_ns[slice];
  if (s.parent.empty() || is_device(part, slice)) return self;
  const int64_t end = sum_or_limit(s.start_ns[slice], s.dur_ns[slice]);
  for (size_t i = slice + 1; i < p.lanes[lane].end && s.start_ns[i] < end; ++i)
    if (s.parent[i] == slice && !is_device(part, i)) self -= s.dur_ns[i];
  return std::max<int64_t>(0, self);
}

RunData::Made RunData::made(const std::string& key, const std::function<Made()>& make) const {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    // Answers to ever new options would pile up; an unused one is dropped and made again on request.
    if (slots_.size() >= kMaxMade) std::erase_if(slots_, [](const auto& one) { return one.second.use_count() == 1; });
    std::shared_ptr<Slot>& known = slots_[key];
    if (!known) known = std::make_shared<Slot>();
    slot = known;
  }
  const std::lock_guard lock(slot->mutex);
  if (!slot->value) slot->value = std::make_unique<Made>(make());
  return *slot->value;
}

}  // namespace stageline::sql
