#include "server/area_sums.h"

#include <algorithm>

#include "base/number.h"
#include "base/parallel.h"
#include "server/duration_bins.h"
#include "server/lane_walk.h"

namespace stageline {
namespace {

constexpr size_t kStep = 2048;  // slices between two looks at how full a block is
constexpr uint32_t kNone = UINT32_MAX;

// The sums of one block while it grows.
class Growing {
 public:
  explicit Growing(size_t places) : bins(std::min(places, AreaSums::kMostBinned) * kDurationBins), at_(places, kNone) {}

  NameSum& of(uint32_t place) {
    if (at_[place] == kNone) {
      at_[place] = static_cast<uint32_t>(sums_.size());
      sums_.push_back({place, 0, UINT32_MAX, 0, 0, 0});
    }
    return sums_[at_[place]];
  }
  void add(const NameSum& from) {
    NameSum& to = of(from.place);
    to.count += from.count;
    to.min_ns = std::min(to.min_ns, from.min_ns);
    to.max_ns = std::max(to.max_ns, from.max_ns);
    to.sum_ns = sum_or_limit(to.sum_ns, from.sum_ns);
    to.self_ns = sum_or_limit(to.self_ns, from.self_ns);
  }
  bool is_worth(size_t slices) const { return !has_long && sums_.size() * AreaSums::kSlicesPerEntry <= slices; }
  const std::vector<NameSum>& sums() const { return sums_; }
  void clear() {
    for (const NameSum& sum : sums_) at_[sum.place] = kNone;
    sums_.clear();
    last_end_ns = 0;
    has_long = false;
  }

  int64_t last_end_ns = 0;
  std::vector<uint32_t> bins;  // [place][bin] of all lanes of the task, not cleared
  bool has_long = false;       // a duration that an entry cannot hold (4.29 s): such a stretch is looked at

 private:
  std::vector<uint32_t> at_;  // by place
  std::vector<NameSum> sums_;
};

class LaneSums {
 public:
  LaneSums(const ViewLane& lane, const NameKinds& kinds, Growing& growing, std::vector<SumBlock>& blocks,
           std::vector<NameSum>& sums)
      : lane_(lane), kinds_(kinds), growing_(growing), blocks_(blocks), sums_(sums) {}

  void build() {
    LaneWalk walk(lane_, 0, [](size_t) { return LaneWalk::kNoTag; });
    for (size_t to = std::min(kStep, lane_.count);; to = std::min(to + kStep, lane_.count)) {
      walk.until(to, [&](size_t i, int64_t start, int64_t dur, uint32_t holder) { return add(i, start, dur, holder); });
      if (growing_.has_long) {
        growing_.clear();
        from_ = to;
      } else if (to - from_ >= AreaSums::kLeastSlices && growing_.is_worth(to - from_)) {
        close(to);
      }
      if (to == lane_.count) break;
    }
    if (from_ < lane_.count && lane_.count >= AreaSums::kLeastSlices) take_rest();
    growing_.clear();
  }

 private:
  uint32_t add(size_t i, int64_t start, int64_t dur, uint32_t holder) {
    const uint32_t place = kinds_.place_of(lane_, i);
    growing_.last_end_ns = std::max(growing_.last_end_ns, start + dur);
    if (place < AreaSums::kMostBinned) ++growing_.bins[place * kDurationBins + duration_bin(dur)];
    if (dur >= int64_t{UINT32_MAX}) {
      growing_.has_long = true;
    } else {
      const auto narrow = static_cast<uint32_t>(dur);
      growing_.add({place, 1, narrow, narrow, dur, dur});
    }
    if (holder != LaneWalk::kNoTag) {
      NameSum& around = growing_.of(holder);
      around.self_ns = sum_or_limit(around.self_ns, -dur);
    }
    return place;
  }
  void close(size_t to) {
    blocks_.push_back({static_cast<uint32_t>(from_), static_cast<uint32_t>(to), static_cast<uint32_t>(sums_.size()),
                       static_cast<uint32_t>(growing_.sums().size()), growing_.last_end_ns});
    sums_.insert(sums_.end(), growing_.sums().begin(), growing_.sums().end());
    growing_.clear();
    from_ = to;
  }
  // What is left at the lane's end joins the block before it where it is too short for one of its own.
  void take_rest() {
    if (growing_.is_worth(lane_.count - from_)) return close(lane_.count);
    if (growing_.has_long || blocks_.empty() || blocks_.back().to != from_) return;
    const SumBlock last = blocks_.back();
    for (size_t k = 0; k < last.entries; ++k) growing_.add(sums_[last.first + k]);
    growing_.last_end_ns = std::max(growing_.last_end_ns, last.last_end_ns);
    if (!growing_.is_worth(lane_.count - last.from)) return;
    blocks_.pop_back();
    sums_.resize(last.first);
    from_ = last.from;
    close(lane_.count);
  }

  const ViewLane& lane_;
  const NameKinds& kinds_;
  Growing& growing_;
  std::vector<SumBlock>& blocks_;
  std::vector<NameSum>& sums_;
  size_t from_ = 0;  // of the block that grows
};

}  // namespace

AreaSums::AreaSums(const std::vector<ViewLane>& lanes, const NameKinds& kinds) : lanes_(lanes.size()) {
  const size_t tasks = std::max<size_t>(1, std::min(lanes.size(), static_cast<size_t>(thread_count())));
  std::vector<std::vector<uint32_t>> counted(tasks);
  parallel_for(tasks, [&](size_t task) {
    Growing growing(kinds.size());
    for (size_t l = task; l < lanes.size(); l += tasks) {
      if (!lanes[l].has_slices() || lanes[l].count == 0) continue;
      LaneSums(lanes[l], kinds, growing, lanes_[l].blocks, lanes_[l].sums).build();
      lanes_[l].blocks.shrink_to_fit();
      lanes_[l].sums.shrink_to_fit();
    }
    counted[task] = std::move(growing.bins);
  });
  for (const ViewLane& lane : lanes)
    if (lane.has_slices()) slice_count_ += lane.count - lane.hidden;
  keep_bins(counted);
}

void AreaSums::keep_bins(const std::vector<std::vector<uint32_t>>& counted) {
  const size_t places = counted[0].size() / kDurationBins;
  for (size_t place = 0; place < places; ++place) {
    first_bin_.push_back(static_cast<uint32_t>(bins_.size()));
    for (size_t bin = 0; bin < kDurationBins; ++bin) {
      uint32_t count = 0;
      for (const std::vector<uint32_t>& own : counted) count += own[place * kDurationBins + bin];
      if (count > 0) bins_.push_back({static_cast<uint16_t>(bin), count});
    }
  }
  first_bin_.push_back(static_cast<uint32_t>(bins_.size()));
  bins_.shrink_to_fit();
}

size_t AreaSums::bytes() const {
  size_t sum = lanes_.size() * sizeof(OfLane) + bins_.size() * sizeof(BinCount) + first_bin_.size() * 4;
  for (const OfLane& lane : lanes_) sum += lane.blocks.size() * sizeof(SumBlock) + lane.sums.size() * sizeof(NameSum);
  return sum;
}

}  // namespace stageline
