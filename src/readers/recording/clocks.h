// Turns ticks and timestamps of device clocks into nanoseconds since the epoch.
//
// The recorder stores raw readings: snapshots of the host's clocks every few seconds, and anchors of each device every
// second. Times between two readings are interpolated linearly; beyond the last one the slope continues. The epoch
// comes from CLOCK_REALTIME at the first snapshot. The progress of time comes from CLOCK_MONOTONIC, which is never set,
// so a wall clock that jumps during the run moves nothing.
#pragma once

#include "readers/recording/rows.h"

namespace stageline::recording {

// A monotone map made of straight lines through points.
class Line {
 public:
  // `x` must rise strictly and `y` must not fall; points that violate this are left out and counted. `slope` is used
  // where there is only one point.
  struct Point {
    int64_t x, y;
  };
  Line(std::vector<Point> points, double slope);
  int64_t at(int64_t x) const;
  size_t left_out() const { return left_out_; }
  bool empty() const { return points_.empty(); }

 private:
  std::vector<Point> points_;
  double slope_;
  size_t left_out_ = 0;
};

class Clocks {
 public:
  Clocks(const std::vector<HostSnapshot>& snapshots, const std::vector<DeviceAnchor>& anchors,
         uint64_t ticks_per_second, uint64_t start_realtime_ns);

  int64_t host_ns(int64_t ticks) const { return host_.at(ticks); }
  bool knows_device(uint8_t clock) const { return devices_.contains(clock); }
  int64_t device_ns(uint8_t clock, int64_t device_ns) const { return host_.at(devices_.at(clock).at(device_ns)); }

  int64_t clock_steps = 0;       // how often the wall clock was set by more than a millisecond
  int64_t bad_readings = 0;      // snapshots and anchors that go backwards
  int64_t worst_bracket_ns = 0;  // half of the longest round trip of an anchor

 private:
  Line host_{{}, 1};
  std::map<uint8_t, Line> devices_;
};

}  // namespace stageline::recording
