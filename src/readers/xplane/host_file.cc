#include "readers/xplane/host_file.h"

#include "base/json_writer.h"
#include "model/source_limits.h"
#include "model/torch_facts.h"
#include "readers/common/launched_work.h"
#include "readers/common/number_map.h"
#include "readers/common/row_kinds.h"
#include "readers/xplane/device_work.h"
#include "readers/xplane/problems.h"
#include "readers/xplane/step_events.h"

namespace stageline::xplane {
namespace {

using namespace gpu_rows;

// Times below this count from the profile's start; larger ones count from the epoch (in files of TensorFlow up to 2.4).
constexpr int64_t kEpochTimes = 1'000'000'000'000'000;
constexpr size_t kMaxCounters = 65'536;

// Converts ps, and the whole ns before them, to ns; halves are rounded to even.
int64_t ns_of(int64_t base_ns, int64_t ps) {
  int64_t ns = ps / 1000, rest = ps % 1000;
  if (rest < 0) rest += 1000, --ns;
  ns = sum_or_limit(base_ns, ns);
  return rest > 500 || (rest == 500 && (ns & 1) != 0) ? sum_or_limit(ns, 1) : ns;
}

class HostReader {
 public:
  HostReader(const std::string& path, HostFile& out) : path_(path), out_(out) {}

  Result<bool> read(Progress* progress) {
    TRY(facts, read_facts(path_));
    facts_ = std::move(*facts);
    out_.is_dated = facts_.start_ns > 0 && facts_.start_ns <= kMaxTimeNs;
    base_ns_ = out_.is_dated ? facts_.start_ns : 0;
    for (const std::string& plane : facts_.planes)
      if (const auto device = device_of(plane); device && device->kind != "CUSTOM") devices_[device->number];
    if (devices_.empty()) devices_[-1];
    for (auto& [number, device] : devices_) device = std::make_unique<Device>(path_);
    host_ = &devices_.begin()->second->out;
    pid_ = facts_.process_id >= 0 ? facts_.process_id : 0;
    if (Status s = for_each_plane(path_, out_.notes, progress, [&](Plane& plane) { read_plane(plane); }); !s)
      return std::move(s).error();
    finish();
    return true;
  }

 private:
  struct Device {
    explicit Device(const std::string& path) : out(path, kKinds, "xplane") {}
    PartBuilder out;
    LaunchedWork launched;
  };
  // A call that launches work. It is put with the device that does the work, which is only known at the end.
  struct LaunchCall {
    int64_t thread, start_ns, end_ns;
    uint32_t name, lane_name, correlation;
    Kind kind;  // what the call is where no device has work of its number
  };
  // A frame or span of the host, which stands with every device: their one host is the host of each.
  struct HostSpan {
    int64_t thread, start_ns, end_ns;
    uint32_t name, lane_name;
    Kind kind;
  };

  static uint32_t correlation_of(const Facts& facts) {
    return facts.correlation > 0 ? fold_number(facts.correlation) : kNoCorrelation;
  }

  std::string_view name_of(const Plane& plane, int64_t id) {
    const auto at = plane.events.find(id);
    if (at != plane.events.end() && !(at->second.name.empty() && at->second.display_name.empty()))
      return at->second.name.empty() ? at->second.display_name : at->second.name;
    ++unnamed_;
    unnamed_name_ = "event " + std::to_string(id);
    return unnamed_name_;
  }

  // Returns a line's own zero, in whole ns before its events' offsets, since the epoch or since the profile's start.
  int64_t base_of(const LineHead& line) {
    if (line.start_ns >= kEpochTimes) {
      out_.is_dated = true;
      return line.start_ns;
    }
    return sum_or_limit(base_ns_, line.start_ns);
  }
  // Returns the same in ps that fit: since the profile's start.
  int64_t base_ps(const LineHead& line) {
    if (line.start_ns >= kEpochTimes && epoch_zero_ < 0) epoch_zero_ = base_ns_ > 0 ? base_ns_ : line.start_ns;
    const int64_t ns = line.start_ns >= kEpochTimes ? between_ns(epoch_zero_, line.start_ns) : line.start_ns;
    return std::clamp<int64_t>(ns, -kMaxPs / 1000, kMaxPs / 1000) * 1000;
  }

  void read_plane(Plane& plane) {
    plane.name = valid_utf8(plane.name);
    keys_ = stat_keys(plane);
    if (plane.name == "/host:metadata") {
      out_.notes.add(problem::xplane_programs, {path_}, plane.programs);
      return;
    }
    if (plane.name == "Task Environment") return;
    say_drops(plane);
    if (const auto device = device_of(plane.name); device && devices_.count(device->number) > 0) {
      read_device(plane, *device, *devices_[device->number]);
      return;
    }
    const bool system = plane.name == "Host CPUs" || plane.name == "Syscalls" || plane.name.starts_with("#Chip");
    for (size_t i = 0; i < plane.line_count(); ++i) {
      const LineHead line = read_line(plane.line(i));
      if (line.name.find("_counters_") != std::string::npos || plane.name.starts_with("#Chip"))
        read_counters(plane, line);
      else read_host_line(plane, line, system);
    }
  }

  void say_drops(const Plane& plane) {
    for (const std::string& message : plane.own_stats) {
      const Stat stat = read_stat(message, plane.stats);
      const auto name = plane.stats.find(stat.id);
      if (name == plane.stats.end() || name->second != "dropped_traces") continue;
      const std::string what = stat.kind == Stat::kText ? valid_utf8(stat.text) : std::to_string(stat.integer);
      if (what.empty() || what == "0") continue;
      out_.notes.add(problem::xplane_lost_events, Args().set("text", what.substr(0, 200)), {path_});
    }
  }

  // Reads the times of an event. Returns false, and counts the event, when they are none.
  bool times(const LineHead& line, const Event& event, int64_t& start_ns, int64_t& end_ns) {
    if (event.is_aggregate) {
      ++aggregates_;
      return false;
    }
    const int64_t dur = event.facts.device_duration_ps > 0 ? event.facts.device_duration_ps : event.dur_ps;
    if (event.offset_ps > kMaxPs || event.offset_ps < -kMaxPs || dur > kMaxPs || dur < 0) {
      ++bad_times_;
      return false;
    }
    const int64_t base = base_of(line);
    start_ns = ns_of(base, event.offset_ps);
    end_ns = ns_of(base, event.offset_ps + dur);
    return true;
  }

  // Returns start → end, in ps.
  std::map<int64_t, int64_t> eager_operators(const Plane& plane, const LineHead& line) {
    std::map<int64_t, int64_t> eager;
    if (std::ranges::any_of(plane.events, [](const auto& of) { return is_eager_operator(of.second.name); }))
      for (const std::string_view bytes : line.events)
        if (const Event event = read_event(plane, keys_, bytes, false); is_eager_operator(name_of(plane, event.name)))
          eager[event.offset_ps] = event.offset_ps + event.dur_ps;
    return eager;
  }

  static std::string lane_name(const Plane& plane, const LineHead& line) {
    if (line.name.empty()) return "thread " + std::to_string(line.id);
    if (plane.name == "/host:CPU") return line.name;
    return plane.name.substr(plane.name[0] == '/' ? 6 : 0) + " " + line.name;
  }

  void read_host_line(const Plane& plane, const LineHead& line, bool system) {
    if (line.events.empty()) return;
    steps_.next_host_line();
    const int64_t tid = line.id;
    uint32_t lane = UINT32_MAX;
    const std::map<int64_t, int64_t> eager = eager_operators(plane, line);
    for (const std::string_view bytes : line.events) {
      const Event event = read_event(plane, keys_, bytes, true);
      std::string_view name = name_of(plane, event.name);
      const Facts& facts = event.facts;
      int64_t start = 0, end = 0;
      if (!times(line, event, start, end)) continue;
      if (!system) steps_.add_host(name, event, base_ps(line) + event.offset_ps);
      if (name.starts_with("ThreadpoolListener::")) {
        ++threadpool_marks_;
        continue;
      }
      if (lane == UINT32_MAX) {
        lane = host_->host_lane(pid_, tid);
        host_->part.lanes[lane].name = lane_name(plane, line);
      }
      Facts event_facts = facts;
      name = take_arguments(name, event_facts);
      std::string spelt;
      if (facts.has_hlo) name = spelt = operation_name(name, facts);
      // The executor's call within an eager operator is that operator's own work.
      const auto around = name.starts_with("KernelAndDevice") ? eager.upper_bound(event.offset_ps) : eager.begin();
      const bool works = around != eager.begin() && event.offset_ps < std::prev(around)->second;
      const Kind kind = system ? kSystem : works ? kOperator : host_kind(name, event_facts);
      std::string decoded;
      if (kind == kPython) name = decoded = frame_name(name);
      // TensorFlow names launches after the operator or "KernelLaunch": the number says what they are.
      if (const uint32_t number = correlation_of(facts); number != kNoCorrelation && !system) {
        launch_calls_.push_back({tid, start, end, launch_texts_.intern(name),
                                 launch_texts_.intern(host_->part.lanes[lane].name), number, kind});
        continue;
      }
      const uint32_t row = host_->add(lane, kind, start, end, host_->text(name));
      if (row == kNoRow) continue;
      if (devices_.size() > 1 && (kind == kPython || kind == kOperator))
        host_spans_.push_back(
            {tid, start, end, launch_texts_.intern(name), launch_texts_.intern(host_->part.lanes[lane].name), kind});
      if (facts.producer_type >= 0) producers_.emplace(std::pair(facts.producer_type, facts.producer), row);
      if (facts.consumer_type >= 0) consumers_.push_back({{facts.consumer_type, facts.consumer}, row});
      if (kind != kAnnotation) continue;
      add_range(row, name, event_facts);
      ranges_.emplace_back(LaunchedWork::Range{tid, start, end, row, 0}, name);
      if (event_facts.step_number < 0) continue;
      host_->add(lane, kAnnotation, start, end,
                 host_->text("ProfilerStep#" + std::to_string(small(event_facts.step_number))));
      host_steps_.push_back({event_facts.step_number, start, end, 0});
    }
  }

  // Names an operation of XLA on a host so that it shows whether it communicates: "xla:all-reduce psum_invariant.7".
  std::string operation_name(std::string_view name, const Facts& facts) const {
    const std::string_view opcode = opcode_of(name, facts);
    if (name.starts_with("end: ") || !is_xla_collective(opcode, name)) return std::string(name);
    const bool says_it = opcode.empty() || name.starts_with(opcode);
    return "xla:" + (says_it ? "" : std::string(opcode) + " ") + std::string(name);
  }

  // The category that XProf gave, or the opcode in the program; empty where neither says it.
  std::string_view opcode_of(std::string_view name, const Facts& facts) const {
    return facts.hlo_category.empty() ? facts_.opcode(facts.hlo_module, name) : facts.hlo_category;
  }

  // Returns what an event of a thread is; annotations are those that nothing else claims.
  static Kind host_kind(std::string_view name, const Facts& facts) {
    if (name.starts_with("$")) return kPython;
    if (facts.correlation >= 0 && is_api_call(name)) return kRuntime;
    const bool of_framework = facts.has_hlo || facts.has_source || facts.consumer_type >= 0 ||
                              facts.producer_type >= 0 || is_tf_operator(name) || is_eager_operator(name) ||
                              is_internal(name);
    return facts.step_number < 0 && of_framework && !waits_for_executor(name) ? kOperator : kAnnotation;
  }

  void add_range(uint32_t row, std::string_view name, const Facts& facts) {
    const std::string message = std::string(name) + (facts.arguments.empty() ? "" : "#" + facts.arguments + "#");
    host_->ranges.push_back({row, host_->text(message), host_->text("TraceMe"), facts.micro_batch, facts.chunk,
                             facts.stage, small(facts.step_number)});
  }

  void read_counters(const Plane& plane, const LineHead& line) {
    for (const std::string_view bytes : line.events) {
      const Event event = read_event(plane, keys_, bytes, false);
      if (!event.facts.has_counter) continue;
      int64_t start = 0, end = 0;
      if (!times(line, event, start, end)) continue;
      const std::string name = plane.name + " / " + std::string(name_of(plane, event.name));
      const auto [at, is_new] = counter_of_.try_emplace(name, host_->part.counters.size());
      if (is_new && host_->part.counters.size() >= kMaxCounters) continue;
      if (is_new) host_->part.counters.push_back({name, {}, {}});
      CounterSeries& series = host_->part.counters[at->second];
      series.time_ns.push_back(start);
      series.value.push_back(event.facts.counter);
    }
  }

  void read_device(const Plane& plane, const DeviceName& device, Device& to) {
    PartBuilder& out = to.out;
    describe(plane, device, out);
    for (size_t i = 0; i < plane.line_count(); ++i) {
      LineHead line = read_line(plane.line(i));
      if (line.name.find("_counters_") != std::string::npos) {
        read_counters(plane, line);
        continue;
      }
      const bool is_stream = line.name.starts_with("Stream #");
      const bool is_tpu = device.kind == "TPU" || device.kind != "GPU";
      const bool is_ops = is_tpu && (line.name == "XLA Ops" || line.name == "Async XLA Ops" || !is_derived(line.name));
      if (!device.rest.empty()) line.name = device.rest + " " + line.name;
      if (is_stream || is_ops) read_work(plane, device, line, is_stream, to);
      else read_derived(plane, device, line, out);
    }
  }

  void describe(const Plane& plane, const DeviceName& device, PartBuilder& out) {
    std::string type;
    for (const std::string& message : plane.own_stats) {
      const Stat stat = read_stat(message, plane.stats);
      const auto name = plane.stats.find(stat.id);
      if (name == plane.stats.end() || stat.kind != Stat::kText) continue;
      if (name->second == "device_type_string" || name->second == "gpu_device_name" || name->second == "device_type")
        type = valid_utf8(stat.text);
    }
    if (!type.empty() && meta_json(out.part, "deviceProperties").empty())
      out.part.metadata.push_back(
          {"deviceProperties", "[{\"id\":" + std::to_string(device.number) + ",\"name\":" + json_quoted(type) + "}]"});
  }

  void read_work(const Plane& plane, const DeviceName& device, const LineHead& line, bool is_stream, Device& to) {
    PartBuilder& out = to.out;
    if (line.events.empty()) return;
    uint32_t lane = UINT32_MAX;
    const std::vector<bool> encloses = is_stream ? std::vector<bool>() : enclosing_events(plane, line, keys_);
    for (size_t k = 0; k < line.events.size(); ++k) {
      const Event event = read_event(plane, keys_, line.events[k], false);
      const Facts& facts = event.facts;
      int64_t start = 0, end = 0;
      if (!times(line, event, start, end)) continue;
      if (lane == UINT32_MAX) {
        if (is_stream) {
          lane = out.stream_lane(device.number, stream_number(line.name));
          out.part.lanes[lane].name = line.name;
        } else {
          lane = out.named_stream_lane(device.number, line.name);
        }
      }
      const std::string_view name = name_of(plane, event.name);
      Kind kind = kKernel;
      // Kernels of streams have names of their own.
      const std::string_view operation = is_stream && !facts.hlo_op.empty() ? facts.hlo_op : name;
      const std::string_view opcode = opcode_of(operation, facts);
      const bool collective = is_xla_collective(opcode, operation);
      const bool transfer =
          !is_stream && !collective && (line.name.ends_with("Async XLA Ops") || is_xla_transfer(opcode, name));
      if (!facts.copy_details.empty() || name.starts_with("Memcpy") || transfer) kind = kMemcpy;
      if (!facts.memset_details.empty() || name.starts_with("Memset")) kind = kMemset;
      if (!is_stream && encloses[k]) kind = kDeviceRange;
      const uint32_t number = correlation_of(facts);
      const uint32_t row =
          out.add(lane, kind, start, end, out.text(kind == kMemcpy ? copy_name(name) : std::string(name)), number);
      if (row == kNoRow) continue;
      if (kind != kDeviceRange) to.launched.add_work({lane, row, start, std::max(start, end), number});
      if (number != kNoCorrelation) device_of_work_.try_emplace(number, &to);
      if (is_stream) steps_.add_device(name, event, base_ps(line) + event.offset_ps);
      if (kind == kMemcpy || kind == kMemset)
        if (const int64_t bytes = copied_bytes(facts, kind == kMemcpy); bytes >= 0)
          out.copies.push_back({row, bytes, end > start ? bytes / static_cast<double>(end - start) : 0});
      if (kind == kKernel && !facts.kernel_details.empty()) out.kernels.push_back(kernel_of(facts, row, out));
      if (kind == kKernel && collective)
        out.collectives.push_back(collective_of(facts, xla_opcode(opcode, operation), row, out));
    }
  }

  void read_derived(const Plane& plane, const DeviceName& device, const LineHead& line, PartBuilder& out) {
    const bool is_steps = line.name == "Steps" || line.name == "Step";
    uint32_t lane = UINT32_MAX;
    for (const std::string_view bytes : line.events) {
      const Event event = read_event(plane, keys_, bytes, false);
      int64_t start = 0, end = 0;
      if (!times(line, event, start, end)) continue;
      if (lane == UINT32_MAX) lane = out.named_stream_lane(device.number, line.name);
      const std::string_view name = name_of(plane, event.name);
      out.add(lane, kDeviceRange, start, end, out.text(name));
      if (!is_steps) continue;
      const std::string_view digits = name.substr(name.find_last_not_of("0123456789") + 1);
      const int64_t number = parse_int(digits).value_or(event.facts.group);
      if (number < 0 || number > INT32_MAX) continue;
      steps_.add_device_step({number, base_ps(line) + event.offset_ps, event.dur_ps});
      steps_of_[device.number].push_back({number, start, end, 0});
    }
  }

  void finish() {
    place_launches();
    for (const auto& [key, row] : consumers_)
      if (const auto from = producers_.find(key); from != producers_.end() && from->second != row)
        host_->link(from->second, row, SliceLinkKind::kFlow);
    if (auto steps = steps_.rows()) host_->part.xla_steps = std::move(*steps);
    else out_.notes.add(problem::xplane_no_step_split, {path_});
    out_.host = facts_.hostnames.empty() ? "" : facts_.hostnames.front();
    for (const auto& [key, value] : facts_.versions)
      if (key == "jax_version" || key == "tensorflow_version" || key == "torch_xla_version")
        append_item(out_.writer, key.substr(0, key.rfind('_')) + " " + value);
    for (const std::string& text : facts_.errors)
      out_.notes.add(problem::xplane_writer_error, Args().set("text", text.substr(0, 300)), {path_});
    for (const std::string& text : facts_.warnings)
      out_.notes.add(problem::xplane_writer_warning, Args().set("text", text.substr(0, 300)), {path_});
    out_.notes.add(problem::xplane_sums, {path_}, aggregates_);
    out_.notes.add(problem::xplane_bad_time, {path_}, bad_times_);
    out_.notes.add(problem::xplane_unnamed, {path_}, unnamed_);
    out_.notes.add(problem::xplane_threadpool_marks, {path_}, threadpool_marks_);
    if (!out_.is_dated) out_.notes.add(problem::xplane_undated, {path_});
    int64_t k = 0;
    for (auto& [number, device] : devices_) {
      const bool has_rows = device->out.row_count() > 0 || !device->out.part.counters.empty();
      if (!has_rows && devices_.size() > 1 && k > 0) continue;
      finish_part(number, *device, k++ == 0);
    }
    out_.shared_host = k - 1;
  }

  // One thread may launch the work of all devices, so a call is put with the device whose work it launched.
  void place_launches() {
    Device& first = *devices_.begin()->second;
    for (const LaunchCall& call : launch_calls_) {
      const auto at = device_of_work_.find(call.correlation);
      Device& device = at == device_of_work_.end() ? first : *at->second;
      const uint32_t lane = device.out.host_lane(pid_, call.thread);
      device.out.part.lanes[lane].name = launch_texts_.text(call.lane_name);
      const Kind kind = at == device_of_work_.end() ? call.kind : kRuntime;
      const uint32_t row = device.out.add(lane, kind, call.start_ns, call.end_ns,
                                          device.out.text(launch_texts_.text(call.name)), call.correlation);
      if (row != kNoRow && kind == kRuntime) device.launched.add_launch(call.thread, call.start_ns, call.correlation);
    }
    launch_calls_ = {};
    for (auto& [number, device] : devices_) {
      if (&device->out == host_ || device->out.row_count() == 0) continue;
      for (const HostSpan& span : host_spans_) {
        const uint32_t lane = device->out.host_lane(pid_, span.thread);
        device->out.part.lanes[lane].name = launch_texts_.text(span.lane_name);
        device->out.add(lane, span.kind, span.start_ns, span.end_ns, device->out.text(launch_texts_.text(span.name)));
      }
    }
    host_spans_ = {};
  }

  void finish_part(int64_t number, Device& device, bool is_first) {
    PartBuilder& builder = device.out;
    for (auto& [range, name] : ranges_) {
      LaunchedWork::Range own = range;
      if (!is_first) own.row = kNoRow, own.name = builder.text(name);
      device.launched.add_range(own);
    }
    device.launched.settle();
    device.launched.project(builder, kDeviceRange);
    if (device.launched.gave_up()) builder.notes.add(problem::xplane_not_projected, {path_});
    DevicePart done;
    done.device = number;
    const std::vector<ProfilerStep>& marked = steps_of_[number];
    const bool own_steps = !marked.empty() && !(is_first && !host_steps_.empty());
    if (own_steps || !is_first)
      for (const ProfilerStep& step : own_steps ? marked : host_steps_)
        builder.step(step.number, step.start_ns, step.end_ns);
    Part& part = builder.part;
    part.machine_name = out_.host;
    if (number >= 0) part.device = static_cast<int32_t>(number);
    for (const auto& [key, value] : facts_.versions) part.metadata.push_back({key, json_quoted(value)});
    part.event_count = builder.row_count();
    done.part = builder.finish(done.names);
    // Work that no call of the host launched belongs to the step that its device was in.
    Slices& s = done.part.slices;
    const std::vector<ProfilerStep>& steps = done.part.steps;
    for (const Lane& lane : done.part.lanes) {
      if (lane.kind != LaneKind::kDeviceStream || steps.empty() || !own_steps) continue;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (s.step[i] != 0 || s.partner[i] != kNoSliceIndex) continue;
        const auto after = std::ranges::upper_bound(steps, s.start_ns[i], {}, &ProfilerStep::start_ns);
        if (after != steps.begin() && s.start_ns[i] < (after - 1)->end_ns)
          s.step[i] = static_cast<uint16_t>(after - steps.begin());
      }
    }
    done.notes = std::move(builder.notes);
    out_.parts.push_back(std::move(done));
  }

  const std::string& path_;
  HostFile& out_;
  SpaceFacts facts_;
  int64_t base_ns_ = 0, epoch_zero_ = -1, pid_ = 0;
  std::map<int64_t, std::unique_ptr<Device>> devices_;  // by number; −1 is the host alone
  PartBuilder* host_ = nullptr;
  std::vector<LaunchCall> launch_calls_;
  std::vector<HostSpan> host_spans_;
  TextInterner launch_texts_;
  std::unordered_map<uint32_t, Device*> device_of_work_;  // key: correlation
  std::vector<ProfilerStep> host_steps_;
  std::vector<std::pair<LaunchedWork::Range, std::string>> ranges_;
  StatKeys keys_;  // of the plane that is being read
  std::string unnamed_name_;
  int64_t unnamed_ = 0, aggregates_ = 0, bad_times_ = 0, threadpool_marks_ = 0;
  std::map<std::pair<int64_t, int64_t>, uint32_t> producers_;
  std::vector<std::pair<std::pair<int64_t, int64_t>, uint32_t>> consumers_;
  std::map<std::string, size_t> counter_of_;
  std::map<int64_t, std::vector<ProfilerStep>> steps_of_;
  StepEvents steps_;
};

}  // namespace

Result<HostFile> read_host_file(const std::string& path, Progress* progress) {
  HostFile out;
  out.path = path;
  TRY(read, HostReader(path, out).read(progress));
  return out;
}

}  // namespace stageline::xplane
