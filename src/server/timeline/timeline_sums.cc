#include "server/timeline/timeline_sums.h"

#include "base/parallel.h"
#include "server/timeline/lane_walk.h"

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

namespace {

constexpr size_t kSample = 256;  // one of this many slices' starts is sampled
constexpr size_t kStep = 8;      // samples between two checks of how full a block is
constexpr uint32_t kNone = UINT32_MAX;

// The sums of one block while it grows.
class Growing {
 public:
  explicit Growing(size_t places) : at_(places, kNone) {}

  NameSum& of(uint32_t place) {
    if (at_[place] == kNone) {
      at_[place] = static_cast<uint32_t>(sums_.size());
      sums_.push_back({place, 0, INT64_MAX, 0, 0, 0});
    }
    return sums_[at_[place]];
  }
  void add_slice(uint32_t place, int64_t dur) {
    NameSum& to = of(place);
    ++to.count;
    ++slices;
    to.min_ns = std::min(to.min_ns, dur);
    to.max_ns = std::max(to.max_ns, dur);
    to.sum_ns = sum_or_limit(to.sum_ns, dur);
    to.self_ns = sum_or_limit(to.self_ns, dur);
  }
  void add(const NameSum& from) {
    NameSum& to = of(from.place);
    to.count += from.count;
    slices += from.count;
    to.min_ns = std::min(to.min_ns, from.min_ns);
    to.max_ns = std::max(to.max_ns, from.max_ns);
    to.sum_ns = sum_or_limit(to.sum_ns, from.sum_ns);
    to.self_ns = sum_or_limit(to.self_ns, from.self_ns);
  }
  bool is_worth() const { return sums_.size() * AreaSums::kSlicesPerEntry <= slices; }
  const std::vector<NameSum>& sums() const { return sums_; }
  void clear() {
    for (const NameSum& sum : sums_) at_[sum.place] = kNone;
    sums_.clear();
    slices = 0;
  }

  size_t slices = 0;

 private:
  std::vector<uint32_t> at_;  // for each place
  std::vector<NameSum> sums_;
};

class GroupSums {
 public:
  GroupSums(const std::vector<ViewLane>& lanes, const NameKinds& kinds, Growing& growing, LaneGroup& group)
      : lanes_(lanes), kinds_(kinds), growing_(growing), group_(group) {}

  void build() {
    std::vector<LaneWalk> walks;
    for (const uint32_t l : group_.lanes) walks.emplace_back(lanes_[l], 0, [](size_t) { return LaneWalk::kNoTag; });
    for (const int64_t to_ns : ends()) {
      for (size_t k = 0; k < walks.size(); ++k) {
        const ViewLane& lane = lanes_[group_.lanes[k]];
        walks[k].until(first_starting_from(lane, to_ns),
                       [&](size_t i, int64_t, int64_t dur, uint32_t holder) { return add(lane, i, dur, holder); });
      }
      seen_to_ns_ = to_ns;
      if (growing_.slices >= AreaSums::kMinSlices && growing_.is_worth()) close();
    }
    if (growing_.slices > 0) take_rest();
    growing_.clear();
    group_.blocks.shrink_to_fit();
    group_.sums.shrink_to_fit();
  }

 private:
  // Times at which a block may end, ascending; the last one is after all slices.
  std::vector<int64_t> ends() const {
    std::vector<int64_t> samples, out;
    size_t skip = kSample - 1;
    int64_t last_ns = 0;
    for (const uint32_t l : group_.lanes) {
      const ViewLane& lane = lanes_[l];
      size_t i = skip;
      for (; i < lane.count; i += kSample) samples.push_back(lane.start(i));
      skip = i - lane.count;
      last_ns = std::max(last_ns, lane.start(lane.count - 1));
    }
    std::ranges::sort(samples);
    for (size_t k = kStep - 1; k < samples.size(); k += kStep)
      if (samples[k] > (out.empty() ? 0 : out.back())) out.push_back(samples[k]);
    out.push_back(last_ns + 1);
    return out;
  }
  uint32_t add(const ViewLane& lane, size_t i, int64_t dur, uint32_t holder) {
    const uint32_t place = kinds_.place_of(lane, i);
    growing_.add_slice(place, dur);
    if (holder != LaneWalk::kNoTag && lane.takes_time(i)) {
      NameSum& around = growing_.of(holder);
      around.self_ns = sum_or_limit(around.self_ns, -dur);
    }
    return place;
  }
  void close() {
    group_.blocks.push_back({from_ns_, seen_to_ns_, static_cast<uint32_t>(group_.sums.size()),
                             static_cast<uint32_t>(growing_.sums().size())});
    group_.sums.insert(group_.sums.end(), growing_.sums().begin(), growing_.sums().end());
    growing_.clear();
    from_ns_ = seen_to_ns_;
  }
  // The rest at the end joins the block before it where it is too small for a block of its own.
  void take_rest() {
    if (growing_.is_worth() && growing_.slices >= AreaSums::kMinSlices) return close();
    if (group_.blocks.empty()) return;
    const SumBlock last = group_.blocks.back();
    for (const NameSum& sum : group_.sums_of(last)) growing_.add(sum);
    if (!growing_.is_worth()) return;
    group_.blocks.pop_back();
    group_.sums.resize(last.first);
    from_ns_ = last.from_ns;
    close();
  }

  const std::vector<ViewLane>& lanes_;
  const NameKinds& kinds_;
  Growing& growing_;
  LaneGroup& group_;
  int64_t from_ns_ = 0, seen_to_ns_ = 0;  // of the block that is growing
};

}  // namespace

AreaSums::AreaSums(const std::vector<ViewLane>& lanes, const NameKinds& kinds) {
  size_t slices = 0;
  for (uint32_t l = 0; l < lanes.size(); ++l) {
    if (!lanes[l].has_slices() || lanes[l].count == 0) continue;
    if (groups_.empty() || slices >= kGroupSlices || groups_.back().lanes.size() == kGroupLanes) {
      groups_.emplace_back();
      slices = 0;
    }
    groups_.back().lanes.push_back(l);
    slices += lanes[l].count;
  }
  const size_t tasks = std::clamp<size_t>(groups_.size(), 1, static_cast<size_t>(thread_count()));
  parallel_for(tasks, [&](size_t task) {
    Growing growing(kinds.size());
    for (size_t g = task; g < groups_.size(); g += tasks) GroupSums(lanes, kinds, growing, groups_[g]).build();
  });
}

size_t AreaSums::bytes() const {
  size_t sum = groups_.size() * sizeof(LaneGroup);
  for (const LaneGroup& group : groups_)
    sum += group.lanes.size() * 4 + group.blocks.size() * sizeof(SumBlock) + group.sums.size() * sizeof(NameSum);
  return sum;
}

}  // namespace stageline
