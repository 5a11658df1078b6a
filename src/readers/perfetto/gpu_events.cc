// Device work and device counters: GpuRenderStageEvent, GpuCounterEvent.
#include "base/json_members.h"
#include "base/proto_scan.h"
#include "readers/perfetto/file_reader.h"
#include "readers/perfetto/problems.h"

namespace stageline::pftrace {

using namespace perfetto;

namespace {

// Turns "[07] stream 7" into "stream 7".
std::string_view queue_label(std::string_view name) {
  if (!name.starts_with("[")) return name;
  const size_t close = name.find("] ");
  if (close == std::string_view::npos ||
      name.substr(1, close - 1).find_first_not_of("0123456789") != std::string_view::npos)
    return name;
  return name.substr(close + 2);
}
// The stream that a queue's name says; −1 without.
int64_t stream_in(std::string_view name) {
  const std::string_view label = queue_label(name);
  if (label.starts_with("stream ")) return parse_int(label.substr(7)).value_or(-1);
  if (label.size() == name.size()) return -1;
  return parse_int(name.substr(1, name.find(']') - 1)).value_or(-1);
}

std::string_view stage_category(std::string_view stage) {
  constexpr std::pair<std::string_view, std::string_view> kStages[] = {{"Kernel", "kernel"},
                                                                       {"Memcpy", "gpu_memcpy"},
                                                                       {"Memset", "gpu_memset"},
                                                                       {"Annotation", "gpu_user_annotation"},
                                                                       {"EventRecord", "cuda_event"}};
  for (const auto& [theirs, ours] : kStages)
    if (stage == theirs) return ours;
  return category_of(stage) == Category::kOther ? "kernel" : stage;  // whatever its writer calls it, a device did it
}

// "[128, 1, 1]", as Kineto writes launches.
void append_sizes(std::string& out, std::string_view message) {
  uint64_t size[3] = {1, 1, 1};
  for (ProtoScan scan(message); scan.next();)
    if (scan.id >= 1 && scan.id <= 3 && !scan.is_bytes()) size[scan.id - 1] = scan.value;
  out += "[" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]) + "]";
}

}  // namespace

uint32_t FileReader::gpu_track(int64_t gpu, uint64_t queue, std::string_view queue_name, int64_t stream) {
  std::string key = "gpu " + std::to_string(gpu);
  const std::string_view label = queue_label(queue_name);
  key +=
      stream >= 0 ? " stream " + std::to_string(stream) : " queue " + std::to_string(queue) + " " + std::string(label);
  std::string name(label);
  if (name.empty()) name = stream >= 0 ? "stream " + std::to_string(stream) : "queue " + std::to_string(queue);
  const uint32_t track = tracks_.of_key(key, name);
  TrackInfo& info = tracks_[track];
  info.is_device = true;
  info.pid = gpu;
  info.stream = stream;
  return track;
}

void FileReader::gpu_launch(std::string_view bytes, const Sequence& sequence) {
  for (ProtoScan scan(bytes); scan.next();) {
    if (!scan.is_bytes()) continue;
    if (scan.id == gpu_launch::kGrid || scan.id == gpu_launch::kWorkgroup) {
      std::string& text = annotations_.scratch();
      append_sizes(text, scan.bytes);
      (scan.id == gpu_launch::kGrid ? facts_.grid : facts_.block) = text;
      facts_.has_launch_shape = true;
    } else if (scan.id == gpu_launch::kArg) {
      AnnotationName name;
      std::string& text = annotations_.scratch();
      for (ProtoScan arg(scan.bytes); arg.next();) {
        if (arg.id == gpu_launch::kArgNameIid && !arg.is_bytes()) {
          if (const AnnotationName* known = sequence.kernel_args.get(arg.value)) name = *known;
        } else if (arg.id == gpu_launch::kArgName && arg.is_bytes()) {
          name = annotation_name(arg.bytes);
        } else if (arg.id == gpu_launch::kArgInt || arg.id == gpu_launch::kArgUint) {
          text = std::to_string(arg.as_signed());
        } else if (arg.is_bytes()) {
          text = valid_utf8(arg.bytes);
        }
      }
      annotations_.set(name, text, facts_);
    }
  }
}

// The fields of one packet about work on a device.
struct FileReader::GpuStage {
  uint64_t event_id = 0, duration = 0, queue = 0, stage = 0, context = 0, old_queue = 0, old_stage = 0;
  int64_t gpu = 0;
  bool has_old_queue = false, has_old_stage = false, has_kernel = false;
  uint32_t name = 0;
  std::vector<uint64_t> waits;

  void add_waits(const ProtoScan& scan) {
    if (!scan.is_bytes()) return waits.push_back(scan.value);
    const char *at = scan.bytes.data(), *end = at + scan.bytes.size();
    for (uint64_t value = 0; at != end && ProtoScan::read_varint(at, end, value);) waits.push_back(value);
  }
};

void FileReader::gpu_extra_data(std::string_view bytes) {
  std::string_view key;
  std::string& text = annotations_.scratch();
  for (ProtoScan extra(bytes); extra.next();) {
    if (extra.id == 1 && extra.is_bytes()) key = extra.bytes;
    if (extra.id == 2 && extra.is_bytes()) text = valid_utf8(extra.bytes);
  }
  if (key == "annotation") {  // Cuspy's mark of a graph's node: {"name": "PP:1F0"}
    key = "name";
    text = json_text(json_member(text, "name"));
  }
  annotations_.set(annotation_name(key), text, facts_);
}

void FileReader::gpu_specifications(std::string_view bytes) {
  old_specs_ = {};
  for (ProtoScan list(bytes); list.next();) {
    if ((list.id != gpu_specs::kQueue && list.id != gpu_specs::kStage) || !list.is_bytes()) continue;
    std::string& text = (list.id == gpu_specs::kQueue ? old_specs_.queues : old_specs_.stages).emplace_back();
    for (ProtoScan one(list.bytes); one.next();)
      if (one.id == gpu_specs::kName && one.is_bytes()) text = valid_utf8(one.bytes);
  }
}

// Returns false where the packet is damaged.
bool FileReader::read_gpu_stage(const Packet& packet, Sequence& sequence, GpuStage& out) {
  facts_ = {};
  annotations_.clear();
  ProtoScan scan(packet.body);
  while (scan.next()) {
    switch (scan.id) {
      case gpu_stage::kEventId: out.event_id = scan.value; break;
      case gpu_stage::kDuration: out.duration = scan.value; break;
      case gpu_stage::kQueueIid: out.queue = scan.value; break;
      case gpu_stage::kStageIid: out.stage = scan.value; break;
      case gpu_stage::kOldQueue:
        out.old_queue = scan.value;
        out.has_old_queue = true;
        break;
      case gpu_stage::kOldStage:
        out.old_stage = scan.value;
        out.has_old_stage = true;
        break;
      case gpu_stage::kContext: out.context = scan.value; break;
      case gpu_stage::kGpuId: out.gpu = scan.as_signed(); break;
      case gpu_stage::kKernelIid:
        if (const uint32_t* known = sequence.kernels.get(scan.value)) {
          out.name = *known;
          out.has_kernel = true;
        }
        break;
      case gpu_stage::kNameIid:
        if (const uint32_t* known = sequence.event_names.get(scan.value); known && !out.has_kernel) out.name = *known;
        break;
      case gpu_stage::kName:
        if (scan.is_bytes() && !out.has_kernel && !scan.bytes.empty()) out.name = text_id(scan.bytes);
        break;
      case gpu_stage::kWaitIds: out.add_waits(scan); break;
      case gpu_stage::kLaunch:
        if (scan.is_bytes()) gpu_launch(scan.bytes, sequence);
        break;
      case gpu_stage::kExtraData:
        if (scan.is_bytes()) gpu_extra_data(scan.bytes);
        break;
      case gpu_stage::kSpecifications:
        if (scan.is_bytes()) gpu_specifications(scan.bytes);
        break;
      default: break;
    }
  }
  return !scan.is_damaged();
}

void FileReader::gpu_stage(const Packet& packet, Sequence& sequence) {
  int64_t time = 0;
  if (!time_of(packet, sequence, time)) return;
  GpuStage work;
  if (!read_gpu_stage(packet, sequence, work)) return lose(problem::pftrace_damaged_packet, packet.offset);
  const auto texts = [&](uint32_t id) { return builder_.dictionaries().names.text(id); };
  const uint32_t* queue_text = work.queue != 0 ? sequence.gpu_specs.get(work.queue) : nullptr;
  const uint32_t* stage_text = work.stage != 0 ? sequence.gpu_specs.get(work.stage) : nullptr;
  if ((work.queue != 0 && !queue_text) || (work.stage != 0 && !stage_text))
    return lose(problem::pftrace_unknown_queue, packet.offset);
  const auto listed = [](const std::vector<std::string>& list, uint64_t at) {
    return at < list.size() ? std::string_view(list[at]) : std::string_view();
  };
  const std::string stage_name(stage_text           ? texts(*stage_text)
                               : work.has_old_stage ? listed(old_specs_.stages, work.old_stage)
                                                    : std::string_view());
  const std::string queue_name(queue_text           ? texts(*queue_text)
                               : work.has_old_queue ? listed(old_specs_.queues, work.old_queue)
                                                    : std::string_view());
  if (work.name == 0) work.name = text_id(stage_name);
  if (facts_.stream < 0) facts_.stream = stream_in(queue_name);
  if (work.duration > static_cast<uint64_t>(kMaxTimeNs - time)) {
    lose(problem::pftrace_bad_time, packet.offset);
    return;
  }
  rows::Row row;
  row.start_ns = time;
  row.dur_ns = work.duration;
  row.offset = packet.offset;
  row.name = work.name;
  row.thread = gpu_track(work.gpu, queue_text ? work.queue : work.old_queue, queue_name, facts_.stream);
  row.category = category_id(stage_category(stage_name)) & 0x7fff;
  facts_.cat = builder_.dictionaries().categories.text(row.category);
  facts_.name = texts(work.name);
  mark_used(row.thread);
  const uint32_t number = builder_.add_row(row, facts_);
  if (number == kNoRow) return;
  last_ns_ = std::max(last_ns_, row.start_ns + row.dur_ns);
  if (work.event_id != 0) gpu_events_.emplace_back(work.event_id, number);
  for (const uint64_t id : work.waits) waits_.emplace_back(id, number);
  if (const int64_t* pid = work.context != 0 ? sequence.context_pids.get(work.context) : nullptr)
    row_pid_.insert_or_assign(row.thread, *pid);
}

void FileReader::gpu_counter(const Packet& packet, Sequence& sequence) {
  CounterSet inline_set;
  bool has_inline = false, has_gpu = false;
  const CounterSet* set = nullptr;
  int64_t gpu = 0;
  for (ProtoScan scan(packet.body); scan.next();) {
    if (scan.id == gpu_counter::kGpuId && !scan.is_bytes()) gpu = scan.as_signed(), has_gpu = true;
    if (scan.id == gpu_counter::kDescriptorIid && !scan.is_bytes()) set = sequence.counter_sets.get(scan.value);
    if (scan.id != gpu_counter::kDescriptor || !scan.is_bytes()) continue;
    // Fields that a session-wide descriptor omits keep their earlier values.
    std::ranges::move(counter_specs(scan.bytes, true), std::back_inserter(inline_set.specs));
    has_inline = true;
  }
  if (has_inline) old_counters_ = std::move(inline_set);
  if (!set) set = &old_counters_;
  else if (!has_gpu) gpu = set->gpu;
  int64_t time = 0;
  bool has_time = false;
  for (ProtoScan scan(packet.body); scan.next();) {
    if (scan.id != gpu_counter::kCounter || !scan.is_bytes()) continue;
    if (!has_time && !time_of(packet, sequence, time)) return;
    has_time = true;
    uint64_t id = 0;
    double value = 0;
    for (ProtoScan field(scan.bytes); field.next();) {
      if (field.id == gpu_counter::kCounterId) id = field.value;
      if (field.id == gpu_counter::kCounterInt) value = field.as_signed();
      if (field.id == gpu_counter::kCounterDouble && field.wire == ProtoScan::kFixed64) value = field.as_double();
    }
    const auto spec = std::ranges::find_if(set->specs, [&](const CounterSpec& c) { return c.id == id; });
    if (spec == set->specs.end()) {
      lose(problem::pftrace_unknown_counter, packet.offset);
      continue;
    }
    const std::string name =
        "GPU " + std::to_string(gpu) + " / " + (spec->name.empty() ? "counter " + std::to_string(id) : spec->name);
    const uint32_t track = tracks_.of_key("counter " + std::to_string(id) + " " + name, name);
    builder_.skip_entry();
    if (!spec->looks_back) {
      samples_.push_back({track, time, value});
      continue;
    }
    // The value belongs to the time since the sample before it; of what follows the last one nothing is known.
    const auto [last, is_new] = looks_back_.try_emplace(track, 0);
    if (!is_new) samples_[last->second].value = value;
    last->second = samples_.size();
    samples_.push_back({track, time, 0});
  }
}

}  // namespace stageline::pftrace
