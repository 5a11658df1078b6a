#include "readers/xplane/step_events.h"

namespace stageline::xplane {
namespace {

struct Boundary {
  int64_t at_ps = 0;
  EventType type = EventType::kUnknown;
  bool is_start = false;
};

bool begins(std::string_view text, std::string_view with) {  // ignores case
  if (text.size() < with.size()) return false;
  for (size_t i = 0; i < with.size(); ++i)
    if ((text[i] | 32) != (with[i] | 32)) return false;
  return true;
}
bool holds(std::string_view text, std::string_view what) {
  for (size_t i = 0; i + what.size() <= text.size(); ++i)
    if (begins(text.substr(i), what)) return true;
  return false;
}

// Returns true for "train 0", "test" and "TraceContext", which XProf takes for the user's own marks of steps.
bool is_marker(std::string_view name) {
  return (name.starts_with("train") || name.starts_with("test") || name.starts_with("TraceContext")) &&
         name.find('/') == std::string_view::npos;
}
// False for calls of TensorFlow that enclose other calls, which compute.
bool is_compute(std::string_view name) {
  return !name.starts_with("EagerExecute") && !name.starts_with("EagerLocalExecute") &&
         !name.starts_with("EagerKernelExecute") && !name.starts_with("FunctionRun");
}

EventType host_event_type(std::string_view name, bool has_device, bool has_correlation) {
  if (name.starts_with("InfeedEnqueue") || begins(name, "MemcpyHToD")) return EventType::kHostToDevice;
  if (begins(name, "MemcpyHToH")) return EventType::kHostToHost;
  if (has_device && (has_correlation || begins(name, "ExecutorState::Process"))) return EventType::kHostPrepare;
  if (begins(name, "IteratorGetNext")) return EventType::kWaitInput;
  return EventType::kHostCompute;
}

// Finds the events of a root: those below it on its thread, the consumers of what these produce, and what is below
// those.
class Grouper {
 public:
  explicit Grouper(std::vector<HostEvent>& events) : events_(events), group_(events.size(), -1) {
    std::ranges::sort(events_, [](const HostEvent& a, const HostEvent& b) {
      if (a.line != b.line) return a.line < b.line;
      if (a.start_ps != b.start_ps) return a.start_ps < b.start_ps;
      return a.dur_ps > b.dur_ps;
    });
    // Finds the last event inside each one: events nested below another follow it without a gap.
    last_.resize(events_.size());
    std::vector<size_t> open;
    const auto close = [&](size_t end) {
      last_[open.back()] = end;
      open.pop_back();
    };
    for (size_t i = 0; i < events_.size(); ++i) {
      while (!open.empty() && (events_[open.back()].line != events_[i].line ||
                               events_[i].start_ps + events_[i].dur_ps > end_of(open.back())))
        close(i);
      open.push_back(i);
    }
    while (!open.empty()) close(events_.size());
    for (size_t i = 0; i < events_.size(); ++i)
      if (events_[i].consumed_type >= 0)
        consumers_[{events_[i].consumed_type, events_[i].consumes}].push_back(static_cast<uint32_t>(i));
  }

  // Functions that tf.data calls are no steps, as in XProf.
  std::vector<size_t> roots(const std::vector<std::string>& names) const {
    std::vector<size_t> out;
    size_t data_end = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      if (names[events_[i].name].starts_with("InstantiatedCapturedFunction::")) data_end = std::max(data_end, last_[i]);
      if (events_[i].is_root && i >= data_end) out.push_back(i);
    }
    sort_stably(out, {}, [&](size_t a) { return events_[a].start_ps; });
    return out;
  }

  // An event belongs to the first root that reaches it.
  void spread(size_t root, int32_t group) {
    std::vector<size_t> todo = {root};
    while (!todo.empty()) {
      const size_t at = todo.back();
      todo.pop_back();
      for (size_t i = at; i < last_[at]; ++i) {
        if (group_[i] >= 0) {
          i = last_[i] - 1;  // the events below it were reached together with it
          continue;
        }
        group_[i] = group;
        if (events_[i].produced_type < 0) continue;
        const auto found = consumers_.find({events_[i].produced_type, events_[i].produces});
        if (found == consumers_.end()) continue;
        for (const uint32_t consumer : found->second)
          if (group_[consumer] < 0) todo.push_back(consumer);
      }
    }
  }
  int32_t group(size_t i) const { return group_[i]; }

 private:
  int64_t end_of(size_t i) const { return events_[i].start_ps + events_[i].dur_ps; }
  std::vector<HostEvent>& events_;
  std::vector<int32_t> group_;
  std::vector<size_t> last_;
  std::map<std::pair<int32_t, int64_t>, std::vector<uint32_t>> consumers_;
};

struct Group {
  std::vector<Boundary> boundaries;
  std::string name;
  int64_t number = -1;
  // Holds the longest marker on the host, and on devices.
  int64_t host_start = 0, host_end = -1, device_start = 0, device_end = -1;
  int64_t work_start = 0, work_end = -1;  // its work on devices
};

// Returns what every instant between `from` and `to` was spent on. As in XProf, an end comes before a begin with the
// same time, so an event without length lasts until the next end of its type.
ByEnum<EventType, int64_t, kEventTypes> spent(std::vector<Boundary>& all, int64_t from, int64_t to) {
  std::ranges::sort(all, [](const Boundary& a, const Boundary& b) {
    if (a.at_ps != b.at_ps) return a.at_ps < b.at_ps;
    if (a.is_start != b.is_start) return !a.is_start;
    return a.type > b.type;
  });
  ByEnum<EventType, int64_t, kEventTypes> sum{}, open{};
  EventType now = EventType::kUnknown;
  for (size_t i = 0; i < all.size(); ++i) {
    const Boundary& b = all[i];
    int64_t& count = open[b.type];
    if (b.is_start) {
      ++count;
      now = std::max(now, b.type);
    } else {
      --count;
      if (b.type == now && count == 0) {
        size_t t = static_cast<size_t>(now);
        while (t > 0 && open[t] <= 0) --t;
        now = static_cast<EventType>(t);
      }
    }
    if (i + 1 == all.size()) break;
    const int64_t begin = std::max(b.at_ps, from), end = std::min(all[i + 1].at_ps, to);
    if (end > begin) sum[now] += end - begin;
  }
  return sum;
}

// Adds the work of devices to the groups that launched it. Returns for each group whether a device has work of it.
std::vector<bool> add_device_work(const std::vector<HostEvent>& hosts, const Grouper& grouper,
                                  const std::vector<DeviceEvent>& devices, std::vector<Group>& groups) {
  std::unordered_map<int64_t, int32_t> group_of_launch;
  for (size_t i = 0; i < hosts.size(); ++i)
    if (hosts[i].correlation >= 0 && grouper.group(i) >= 0)
      group_of_launch.emplace(hosts[i].correlation, grouper.group(i));
  std::vector<bool> on_device(groups.size(), false);
  for (const DeviceEvent& event : devices) {
    const auto at = group_of_launch.find(event.correlation);
    if (event.correlation < 0 || at == group_of_launch.end()) continue;
    Group& group = groups[at->second];
    on_device[at->second] = true;
    const int64_t end = event.start_ps + event.dur_ps;
    group.boundaries.push_back({event.start_ps, event.type, true});
    group.boundaries.push_back({end, event.type, false});
    // Without a line "Steps", a device's step is its work of the group, from the first start to the last end.
    const bool first = group.work_end < group.work_start;
    group.work_start = first ? event.start_ps : std::min(group.work_start, event.start_ps);
    group.work_end = first ? end : std::max(group.work_end, end);
  }
  return on_device;
}

// Adds an event of a host to its group: as the extent of the step, or as work. In a run with devices, host events of
// steps that no device saw do not count.
void add_host_event(const HostEvent& event, const std::string& name, bool any_device, bool on_device, Group& group) {
  const int64_t end = event.start_ps + event.dur_ps;
  const bool first_root = event.is_root && group.host_end < group.host_start;
  if (is_marker(name) || first_root) {
    if (end - event.start_ps > group.host_end - group.host_start || first_root)
      group.host_start = event.start_ps, group.host_end = end;
    return;
  }
  if ((any_device && !on_device) || !is_compute(name)) return;
  const EventType type = host_event_type(name, any_device, event.correlation >= 0);
  // The wait of the device at that time is not recorded.
  if (any_device && type == EventType::kHostCompute) return;
  group.boundaries.push_back({event.start_ps, type, true});
  group.boundaries.push_back({end, type, false});
}

// Returns nothing where the step has no extent.
std::optional<XlaStep> row_of(Group& group) {
  int64_t from = group.host_start, to = group.host_end;
  if (group.device_end > group.device_start) from = group.device_start, to = group.device_end;
  else if (group.work_end > group.work_start) from = group.work_start, to = group.work_end;
  if (to < from) return {};
  const auto of = spent(group.boundaries, from, to);
  XlaStep row;
  row.number = group.number;
  row.name = group.name;
  row.step_ps = to - from;
  row.device_compute_ps = of[EventType::kDeviceCompute32] + of[EventType::kDeviceCompute16];
  row.device_to_device_ps = of[EventType::kDeviceToDevice];
  row.collectives_ps = of[EventType::kCollectives];
  row.host_compute_ps = of[EventType::kHostCompute];
  row.host_prepare_ps = of[EventType::kHostPrepare];
  row.input_ps = of[EventType::kHostToDevice] + of[EventType::kWaitInput];
  row.output_ps = of[EventType::kDeviceToHost];
  row.compile_ps = of[EventType::kHostCompile];
  row.other_ps = row.step_ps - row.device_compute_ps - row.device_to_device_ps - row.collectives_ps -
                 row.host_compute_ps - row.host_prepare_ps - row.input_ps - row.output_ps - row.compile_ps;
  return row;
}

EventType device_event_type(std::string_view name) {
  if (begins(name, "MemcpyH2D") || begins(name, "MemcpyHToD") || begins(name, "Memcpy HtoD"))
    return EventType::kHostToDevice;
  if (begins(name, "MemcpyD2H") || begins(name, "MemcpyDToH") || begins(name, "Memcpy DtoH"))
    return EventType::kDeviceToHost;
  if (begins(name, "MemcpyD2D") || begins(name, "MemcpyDToD") || begins(name, "Memcpy DtoD") ||
      begins(name, "MemcpyP2P"))
    return EventType::kDeviceToDevice;
  if (begins(name, "nccl")) return EventType::kCollectives;
  return holds(name, "half") || holds(name, "fp16") ? EventType::kDeviceCompute16 : EventType::kDeviceCompute32;
}

}  // namespace

void StepEvents::add_host(std::string_view name, const Event& event, int64_t start_ps) {
  if (hosts_.size() >= kMaxEvents) {
    too_many_ = true;
    return;
  }
  const Facts& facts = event.facts;
  const auto [at, is_new] = name_ids_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  hosts_.push_back({line_, at->second, start_ps, event.dur_ps, facts.producer, facts.consumer,
                    static_cast<int32_t>(facts.producer_type), static_cast<int32_t>(facts.consumer_type),
                    facts.correlation, facts.step_number, facts.step_number >= 0 || facts.root != 0});
}

void StepEvents::add_device(std::string_view name, const Event& event, int64_t start_ps) {
  if (devices_.size() < kMaxEvents)
    devices_.push_back({start_ps, event.dur_ps, event.facts.correlation, device_event_type(name)});
}

std::optional<std::vector<XlaStep>> StepEvents::rows() {
  if (too_many_) return std::nullopt;
  Grouper grouper(hosts_);
  std::vector<Group> groups;
  for (const size_t root : grouper.roots(names_)) {
    if (grouper.group(root) >= 0) continue;  // lies within the step of another root
    Group group;
    group.number = hosts_[root].step_number >= 0 ? hosts_[root].step_number : std::ssize(groups);
    group.name = names_[hosts_[root].name] + " " + std::to_string(group.number);
    grouper.spread(root, static_cast<int32_t>(groups.size()));
    groups.push_back(std::move(group));
  }
  const bool any_device = !devices_.empty();
  const std::vector<bool> on_device = add_device_work(hosts_, grouper, devices_, groups);
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (const int32_t g = grouper.group(i); g >= 0)
      add_host_event(hosts_[i], names_[hosts_[i].name], any_device, on_device[g], groups[g]);
  for (const DeviceStep& step : device_steps_)
    for (Group& group : groups) {
      if (group.number != step.number || step.dur_ps <= group.device_end - group.device_start) continue;
      group.device_start = step.start_ps;
      group.device_end = step.start_ps + step.dur_ps;
    }
  std::vector<XlaStep> out;
  for (size_t g = 0; g < groups.size(); ++g)
    if (!any_device || on_device[g])
      if (std::optional<XlaStep> row = row_of(groups[g])) out.push_back(std::move(*row));
  return out;
}

}  // namespace stageline::xplane
