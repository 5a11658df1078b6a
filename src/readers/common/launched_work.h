// Projects ranges of host threads onto devices, as vendors' tools do: from the first start to the last end of the work
// that was launched inside a range. For profiles with launches and device work but without a device side of ranges.
//
//   thread   |── forward ───────────|          stream 7      |── forward ──────────|
//               launch 1  launch 2       ─▶                   |kernel 1|  |kernel 2|
#pragma once

#include "readers/common/part_builder.h"

namespace stageline {

class LaunchedWork {
 public:
  struct Range {  // `row` is the host's; kNoRow where that is in another part, and then `name` is the range's name
    int64_t thread = 0, start_ns = 0, end_ns = 0;
    uint32_t row = kNoRow, name = 0;
  };
  struct Work {
    uint32_t lane = 0, row = 0;
    int64_t start_ns = 0, end_ns = 0;
    uint32_t correlation = kNoCorrelation;
  };

  void add_range(Range range) { ranges_.push_back(range); }
  void add_launch(int64_t thread, int64_t start_ns, uint32_t correlation) {
    launches_.push_back({thread, start_ns, correlation, 0});
  }
  void add_work(Work work) { work_.push_back(work); }
  // Makes room for as many. Unused room is never touched, and costs no memory.
  void reserve(size_t ranges, size_t launches, size_t work) {
    ranges_.reserve(ranges);
    launches_.reserve(launches);
    work_.reserve(work);
  }

  // To be called when everything has been added, before project() and for_launched().
  void settle();
  // Adds the device side of every range to `out` as rows of category `kind`. The range's partner is its row on the lane
  // that works longest.
  void project(PartBuilder& out, size_t kind);
  // Calls use(const Work&) for the work that was launched on a thread within a time.
  template <class Use> void for_launched(int64_t thread, int64_t start_ns, int64_t end_ns, Use&& use) {
    for (auto at = first_launch(thread, start_ns);
         at != launches_.end() && at->thread == thread && at->start_ns < end_ns && looked_ < kMaxLooked;
         ++at, ++looked_)
      for (size_t w = at->first; w < work_.size() && work_[w].correlation == at->correlation; ++w) use(work_[w]);
  }
  // Returns true when ranges were nested around more launches than kMaxLooked, so that the last were not checked.
  bool gave_up() const { return looked_ >= kMaxLooked; }

 private:
  static constexpr size_t kMaxLooked = 50'000'000;
  struct Launch {
    int64_t thread, start_ns;
    uint32_t correlation;
    uint32_t first;  // index into work_ of the first it launched
  };
  // Returns the first launch of a thread from a time on. Queries come mostly in order of time, so the search starts at
  // the last result, in steps that double. Only if the launch is before that are all searched.
  std::vector<Launch>::const_iterator first_launch(int64_t thread, int64_t start_ns) {
    const std::pair key(thread, start_ns);
    const auto before = [&](const Launch& launch) { return std::pair(launch.thread, launch.start_ns) < key; };
    size_t low = 0, high = launches_.size();
    if (last_found_ < launches_.size() && (last_found_ == 0 || before(launches_[last_found_ - 1]))) {
      low = last_found_;
      size_t step = 1;
      while (step < high - low && before(launches_[low + step - 1])) {
        low += step;
        step *= 2;
      }
      high = std::min(high, low + step);
    }
    const auto begin = launches_.begin();
    const auto found = std::partition_point(begin + low, begin + high, before);
    last_found_ = found - begin;
    return found;
  }
  std::vector<Range> ranges_;
  std::vector<Launch> launches_;
  std::vector<Work> work_;  // in order of correlation once settled
  size_t last_found_ = 0, looked_ = 0;
};

}  // namespace stageline
