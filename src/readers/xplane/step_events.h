// Computes the steps of a host as XProf's step graph has them: what every instant of a step was spent on, in
// picoseconds.
//
//   root events (a step_num, or _r) ──▶ group: what is nested below them on their thread,
//                                       what consumes what these produce, what their calls launched on devices
//   at every instant of the step the type of the highest priority wins (EventType below)
//
// Source: group_events.cc, event_span.cc, xplane_to_step_events.cc and step_events_to_steps_db.cc of xprof. Results are
// compared with XProf 2.24.2: docs/formats/xplane.md.
#pragma once

#include "readers/xplane/events.h"

namespace stageline::xplane {

// In order of rising priority.
enum class EventType : uint8_t {
  kUnknown,
  kHostCompute,
  kHostCompile,
  kHostToHost,
  kHostToDevice,
  kHostPrepare,
  kCollectives,
  kWaitInput,
  kDeviceToDevice,
  kDeviceToHost,
  kDeviceCompute32,
  kDeviceCompute16,
};
inline constexpr size_t kEventTypes = 12;

struct HostEvent {
  uint32_t line = 0;
  uint32_t name = 0;  // index into StepEvents::names_
  int64_t start_ps = 0, dur_ps = 0;
  int64_t produces = 0, consumes = 0;              // ids, which count within their types
  int32_t produced_type = -1, consumed_type = -1;  // −1 for none
  int64_t correlation = -1;
  int64_t step_number = -1;
  bool is_root = false;
};
struct DeviceEvent {
  int64_t start_ps = 0, dur_ps = 0;
  int64_t correlation = -1;
  EventType type = EventType::kUnknown;
};
// A step as marked on the device's own line "Steps".
struct DeviceStep {
  int64_t number = -1;
  int64_t start_ps = 0, dur_ps = 0;
};

// Collects what a file says of steps, and computes them. `start_ps` counts from the profile's start.
class StepEvents {
 public:
  // Several planes may give their lines the same numbers, so lines are counted.
  void next_host_line() { ++line_; }
  void add_host(std::string_view name, const Event& event, int64_t start_ps);
  void add_device(std::string_view name, const Event& event, int64_t start_ps);
  void add_device_step(DeviceStep step) { device_steps_.push_back(step); }
  // Nothing where there are too many events. Sorts what was added. O(n log n).
  std::optional<std::vector<XlaStep>> rows();

 private:
  static constexpr size_t kMaxEvents = 20'000'000;
  std::vector<HostEvent> hosts_;
  std::vector<DeviceEvent> devices_;
  std::vector<DeviceStep> device_steps_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> name_ids_;
  uint32_t line_ = 0;
  bool too_many_ = false;
};

}  // namespace stageline::xplane
