// Clocks of a Perfetto trace. A snapshot says what several clocks showed at one moment; between snapshots the latest
// one before a timestamp counts, before the first one the first. Nothing is interpolated.
//
//   snapshot  BOOTTIME 100  REALTIME 5000      convert(BOOTTIME 130 → REALTIME) = 5030
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace stageline::pftrace {

class ClockBook {
 public:
  struct Stamp {
    uint64_t clock;
    int64_t ns;
  };
  void add_snapshot(std::vector<Stamp> stamps);
  // An answer that was given: it holds for timestamps of that clock in [lo, hi), until there is another snapshot.
  struct Leg {
    uint64_t from = 0, to = 0;
    int64_t lo = 0, hi = 0, delta = 0;
    size_t snapshots = 0;
  };
  // Moves `ns` to the other clock. Returns false, and leaves it, where no chain of snapshots leads there. This is fast
  // while timestamps stay between the same two snapshots; `leg` is the asker's own last answer.
  bool convert(uint64_t from, int64_t& ns, uint64_t to, Leg& leg) const {
    if (from == leg.from && to == leg.to && ns >= leg.lo && ns < leg.hi && leg.snapshots == snapshots_.size()) {
      int64_t moved = 0;
      if (__builtin_add_overflow(ns, leg.delta, &moved)) return false;
      ns = moved;
      return true;
    }
    const std::optional<int64_t> found = find_way(from, ns, to, leg);
    if (found) ns = *found;
    return found.has_value();
  }
  // to − from in the first snapshot that holds both.
  std::optional<int64_t> offset(uint64_t from, uint64_t to) const;
  bool empty() const { return snapshots_.empty(); }

 private:
  std::optional<int64_t> find_way(uint64_t from, int64_t ns, uint64_t to, Leg& leg) const;

  std::vector<std::vector<Stamp>> snapshots_;
  std::map<uint64_t, std::map<int64_t, uint32_t>> points_;  // clock → what it showed → snapshot
};

}  // namespace stageline::pftrace
