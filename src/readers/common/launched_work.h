// Projects ranges of host threads onto devices, as vendors' tools do: from the first start to the last end of the work
// that was launched inside a range. For profiles with launches and device work but without a device side of ranges.
//
//   thread   |── forward ───────────|          stream 7      |── forward ──────────|
//               launch 1  launch 2       ─▶                   |kernel 1|  |kernel 2|
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "readers/common/number_map.h"
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
    launches_.push_back({thread, start_ns, correlation});
  }
  void add_work(Work work) { work_.push_back(work); }

  // To be called when everything has been added, before project() and for_launched().
  void settle();
  // Adds the device side of every range to `out` as rows of category `kind`. The range's partner is its row on the lane
  // that works longest.
  void project(PartBuilder& out, size_t kind);
  // Calls use(const Work&) for the work that was launched on a thread within a time.
  template <class Use>
  void for_launched(int64_t thread, int64_t start_ns, int64_t end_ns, Use&& use) {
    auto at = std::lower_bound(
        launches_.begin(), launches_.end(), std::pair(thread, start_ns),
        [](const Launch& launch, const auto& key) { return std::pair(launch.thread, launch.start_ns) < key; });
    for (; at != launches_.end() && at->thread == thread && at->start_ns < end_ns && looked_ < kMostLooked;
         ++at, ++looked_)
      for (size_t w = first_of_.get(at->correlation); w < work_.size() && work_[w].correlation == at->correlation; ++w)
        use(work_[w]);
  }
  // True when ranges were nested around so many launches that the last were not looked at.
  bool gave_up() const { return looked_ >= kMostLooked; }

 private:
  static constexpr size_t kMostLooked = 50'000'000;
  struct Launch {
    int64_t thread, start_ns;
    uint32_t correlation;
  };
  std::vector<Range> ranges_;
  std::vector<Launch> launches_;
  std::vector<Work> work_;
  NumberMap first_of_;  // correlation → index into work_; sorted by correlation
  size_t looked_ = 0;
};

}  // namespace stageline
