#include "base/parallel.h"
#include "server/timeline/lane_walk.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {
namespace {

constexpr size_t kSample = 1024;  // one of this many slices' starts is sampled to say where stretches end
constexpr size_t kMaxTasks = 16;  // each task has counters of its own

std::vector<int64_t> sampled_starts(const std::vector<ViewLane>& lanes) {
  std::vector<int64_t> samples;
  size_t skip = kSample - 1;
  for (const ViewLane& lane : lanes) {
    if (!lane.has_slices()) continue;
    size_t i = skip;
    for (; i < lane.count; i += kSample) samples.push_back(lane.start(i));
    skip = i - lane.count;
  }
  std::ranges::sort(samples);
  return samples;
}

constexpr size_t kBinWords = (kDurationBins + 63) / 64;

size_t max_tasks() { return std::min<size_t>(kMaxTasks, thread_count()); }

// Finds which bins occur: for each task, kBinWords words of bits for each place.
std::vector<std::vector<uint64_t>> seen_bins(const std::vector<ViewLane>& lanes,
                                             const std::vector<uint32_t>& with_slices, const NameKinds& kinds,
                                             size_t places) {
  const size_t tasks = std::clamp<size_t>(with_slices.size(), 1, max_tasks());
  std::vector<std::vector<uint64_t>> seen(tasks);
  parallel_for(tasks, [&](size_t task) {
    seen[task].resize(places * kBinWords);
    for (size_t k = task; k < with_slices.size(); k += tasks) {
      const ViewLane& lane = lanes[with_slices[k]];
      for_durations(lane, 0, lane.count, [&](size_t i, int64_t dur) {
        const uint32_t place = kinds.place_of(lane, i);
        const size_t bin = duration_bin(dur);
        if (place < places) seen[task][place * kBinWords + bin / 64] |= uint64_t{1} << bin % 64;
      });
    }
  });
  return seen;
}

}  // namespace

DurationCounts::DurationCounts(const std::vector<ViewLane>& lanes, const NameKinds& kinds)
    : places_(std::min(kinds.size(), kMaxPlaces)) {
  std::vector<uint32_t> with_slices;
  size_t slices = 0;
  int64_t last_ns = 0;
  for (uint32_t l = 0; l < lanes.size(); ++l) {
    if (!lanes[l].has_slices() || lanes[l].count == 0) continue;
    with_slices.push_back(l);
    slices += lanes[l].count;
    last_ns = std::max(last_ns, lanes[l].start(lanes[l].count - 1));
  }
  const std::vector<std::vector<uint64_t>> seen = seen_bins(lanes, with_slices, kinds, places_);
  size_t cells = 0;
  // First counter of each place, which has one for every bin from its first to its last.
  std::vector<uint32_t> base(places_ + 1);
  ranges_.resize(places_);
  for (size_t place = 0; place < places_; ++place) {
    for (size_t w = 0; w < kBinWords; ++w) {
      uint64_t bits = 0;
      for (const std::vector<uint64_t>& own : seen) bits |= own[place * kBinWords + w];
      cells += std::popcount(bits);
      if (bits == 0) continue;
      const size_t low = w * 64 + std::countr_zero(bits);
      ranges_[place].first = std::min(ranges_[place].first, static_cast<uint16_t>(low));
      ranges_[place].last = static_cast<uint16_t>(w * 64 + 63 - std::countl_zero(bits));
    }
    const Range& range = ranges_[place];
    base[place + 1] = base[place] + (range.first <= range.last ? range.last - range.first + 1u : 0u);
  }

  const size_t wanted = std::clamp<size_t>(slices / (kSlicesPerCount * std::max<size_t>(cells, 1)), 1, kMaxStretches);
  const std::vector<int64_t> samples = sampled_starts(lanes);
  borders_ns_.push_back(0);
  for (size_t k = 1; k < wanted && !samples.empty(); ++k)
    if (const int64_t at = samples[k * samples.size() / wanted]; at > borders_ns_.back()) borders_ns_.push_back(at);
  borders_ns_.push_back(last_ns + 1);

  std::vector<std::vector<Count>> counts(stretch_count());
  std::vector<std::vector<uint32_t>> sizes(stretch_count());  // for each place
  const size_t counters = std::min(stretch_count(), max_tasks());
  parallel_for(counters, [&](size_t task) {
    std::vector<uint32_t> own;
    for (size_t s = task; s < stretch_count(); s += counters) {
      own.assign(base.back(), 0);
      for (const uint32_t l : with_slices) {
        const ViewLane& lane = lanes[l];
        for_durations(lane, first_starting_from(lane, borders_ns_[s]), first_starting_from(lane, borders_ns_[s + 1]),
                      [&](size_t i, int64_t dur) {
                        const uint32_t place = kinds.place_of(lane, i);
                        if (place < places_) ++own[base[place] + duration_bin(dur) - ranges_[place].first];
                      });
      }
      for (size_t place = 0; place < places_; ++place) {
        const size_t before = counts[s].size();
        for (size_t c = base[place]; c < base[place + 1]; ++c)
          for (uint32_t left = own[c]; left > 0;) {
            const uint32_t held = std::min<uint32_t>(left, UINT16_MAX);
            counts[s].push_back(
                {static_cast<uint16_t>(ranges_[place].first + (c - base[place])), static_cast<uint16_t>(held)});
            left -= held;
          }
        sizes[s].push_back(static_cast<uint32_t>(counts[s].size() - before));
      }
    }
  });
  size_t all = sum_over<size_t>(counts, [&](const std::vector<Count>& own) { return own.size(); });
  counts_.reserve(all);
  first_.reserve(stretch_count() * places_ + 1);
  first_.push_back(0);
  for (size_t s = 0; s < stretch_count(); ++s) {
    counts_.insert(counts_.end(), counts[s].begin(), counts[s].end());
    for (const uint32_t size : sizes[s]) first_.push_back(first_.back() + size);
  }
}

size_t DurationCounts::bytes() const {
  return ranges_.size() * sizeof(Range) + borders_ns_.size() * 8 + first_.size() * 4 + counts_.size() * sizeof(Count);
}

}  // namespace stageline
