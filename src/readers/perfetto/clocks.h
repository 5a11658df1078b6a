// Clocks of a Perfetto trace. A snapshot says what several clocks showed at one moment; between snapshots the latest
// one before a stamp counts, before the first one the first. Nothing is interpolated.
//
//   snapshot  BOOTTIME 100  REALTIME 5000      convert(BOOTTIME 130 → REALTIME) = 5030
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace stageline::pftrace {

class ClockBook {
 public:
  struct Stamp {
    uint64_t clock;
    int64_t ns;
  };
  void add_snapshot(std::vector<Stamp> stamps);
  // nullopt: no chain of snapshots leads there. Quick while stamps stay between the same two snapshots.
  std::optional<int64_t> convert(uint64_t from, int64_t ns, uint64_t to);
  // to − from in the first snapshot that holds both.
  std::optional<int64_t> offset(uint64_t from, uint64_t to) const;
  bool empty() const { return snapshots_.empty(); }

 private:
  std::vector<std::vector<Stamp>> snapshots_;
  std::map<uint64_t, std::map<int64_t, uint32_t>> points_;  // clock → what it showed → snapshot
  // The last answer: it holds for stamps of this clock in [lo_, hi_).
  uint64_t from_ = 0, to_ = 0;
  int64_t lo_ = 0, hi_ = 0, delta_ = 0;
};

}  // namespace stageline::pftrace
