// From ticks and device clocks to nanoseconds of the epoch.
//
// The recorder keeps raw readings: snapshots of the host's clocks every few seconds, anchors of each device every
// second. Between two of them a straight line is drawn, beyond the last its slope goes on. The epoch comes from
// CLOCK_REALTIME at the first snapshot, the course of time from CLOCK_MONOTONIC, which is never set: a wall clock
// that jumps in mid-run moves nothing.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "readers/recording/rows.h"

namespace stageline::recording {

// A monotone map by straight lines through points.
class Line {
 public:
  // `x` strictly rising, `y` rising; `slope` where one point must do. Points that are neither are left out and counted.
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

  int64_t clock_steps = 0;       // times the wall clock was set by more than a millisecond
  int64_t bad_readings = 0;      // snapshots and anchors that go backwards
  int64_t worst_bracket_ns = 0;  // half the longest round trip of an anchor

 private:
  Line host_{{}, 1};
  std::map<uint8_t, Line> devices_;
};

}  // namespace stageline::recording
