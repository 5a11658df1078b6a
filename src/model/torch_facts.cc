#include "model/torch_facts.h"

#include <atomic>

#include "base/json_members.h"
#include "base/parallel.h"
#include "model/message_names.h"

namespace stageline {
namespace {

bool has_meta(const Part& part, std::string_view key) { return !meta_json(part, key).empty(); }

// Returns true for category spellings that torch stopped using with 1.12.
bool is_old_category(std::string_view text) {
  for (const std::string_view old : {"Operator", "Kernel", "Runtime", "Memcpy", "Memset", "Python"})
    if (text == old) return true;
  return false;
}

// Kineto makes annotations of the device of those of the host; only marks of a graph's nodes have none there. Nodes
// that are named by a recorded capture have the names of its ranges and operators.
bool has_node_names(const Trace& trace, const Part& part) {
  constexpr uint8_t kHost = 1, kDevice = 2;
  std::vector<uint8_t> where(trace.names.size());
  for (size_t i = 0; i < part.slices.size(); ++i) {
    const Category category = trace.categories[part.slices.category_id[i]].kind;
    if (category == Category::kUserAnnotation || category == Category::kCpuOp) where[part.slices.name_id[i]] |= kHost;
    if (category == Category::kGpuAnnotation) where[part.slices.name_id[i]] |= kDevice;
  }
  return std::ranges::any_of(where, [](uint8_t of) { return (of & kHost) != 0; }) &&
         std::ranges::find(where, kDevice) != where.end();
}

bool is_wanted(const SliceFilter& filter, int64_t step) {
  return step >= filter.first_step && step <= filter.last_step;
}

// The slices of a part that the filter leaves. `is_message` says it of a kernel's name.
template <class IsMessage>
SliceCounts count_part(const Trace& trace, const Part& part, int64_t zero_ns, const IsMessage& is_message) {
  const SliceFilter& filter = trace.slice_filter;
  const bool by_step = filter.first_step != INT64_MIN || filter.last_step != INT64_MAX;
  const Slices& s = part.slices;
  SliceCounts sum{.start_ns = INT64_MAX, .end_ns = INT64_MIN};
  for (const Lane& lane : part.lanes) {
    int64_t here = 0;
    bool works = false;  // a lane of waits or projected ranges alone is no stream with work
    for (size_t i = lane.begin; i < lane.end; ++i) {
      if (by_step && (s.step.empty() || s.step[i] == 0 || !is_wanted(filter, part.steps[s.step[i] - 1u].number)))
        continue;
      if (filter.any() && (s.end_ns(i) - zero_ns < filter.from_ns || s.start_ns[i] - zero_ns > filter.to_ns)) continue;
      ++here;
      sum.start_ns = std::min(sum.start_ns, s.start_ns[i]);
      sum.end_ns = std::max(sum.end_ns, s.end_ns(i));
      if (!s.kernel_class.empty() && s.class_of(i) == KernelClass::kCommunication)
        ++(is_message(s.name_id[i]) ? sum.message_kernels : sum.collective_kernels);
      const Category kind = s.category_id.empty() ? Category::kOther : trace.categories[s.category_id[i]].kind;
      if (!s.category_id.empty()) ++sum.by_category[kind];
      works |= is_device_work(kind) || kind == Category::kDeviceTask;
    }
    sum.slices += here;
    sum.device_streams += works && lane.kind == LaneKind::kDeviceStream;
  }
  return sum;
}

}  // namespace

std::string_view meta_json(const Part& part, std::string_view key) {
  std::string_view found;
  for (const MetaField& field : part.metadata)
    if (field.key == key) found = field.json;
  return found;
}

std::string device_json(const Part& part) {
  std::string_view only;
  bool alike = true;
  const auto name_of = [](std::string_view device) { return json_text(json_member(device, "name")); };
  const auto in_one_line = [](std::string_view json) {
    std::string line(json);
    std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return line;
  };
  for (const JsonMember& device : json_members(meta_json(part, "deviceProperties"), 4096)) {
    const auto id = json_integer(json_member(device.value, "id"));
    if (part.device != kUnknown && id == int64_t{part.device}) return in_one_line(device.value);
    alike &= only.empty() || name_of(only) == name_of(device.value);
    only = device.value;
  }
  return part.device != kUnknown && alike ? in_one_line(only) : "";
}

std::string device_name(const Part& part) { return json_text(json_member(device_json(part), "name")); }

std::string torch_era(const Trace& trace, const Part& part) {
  // Other writers use Kineto's categories too (torch_npu, recordings, Perfetto, Nsight); their files say nothing of
  // torch.
  if (trace.device_family == DeviceFamily::kNpu || trace.format != "kineto" || !trace.writer.empty()) return {};
  std::vector<bool> used(trace.categories.size());
  for (const uint8_t id : part.slices.category_id)
    if (id < used.size()) used[id] = true;
  bool known = has_meta(part, "schemaVersion") || has_meta(part, "distributedInfo") ||
               has_meta(part, "deviceProperties") || has_meta(part, "baseTimeNanoseconds");
  bool old = false, overhead = false, syncs = false, annotated = has_meta(part, "cudaGraphInlineAnnotated");
  for (size_t c = 0; c < used.size(); ++c) {
    if (!used[c]) continue;
    old |= is_old_category(trace.categories[c].text);
    overhead |= trace.categories[c].kind == Category::kOverhead;
    annotated |= trace.categories[c].text == "graph_event_node" || trace.categories[c].text == "graph_host_node";
    syncs |= trace.categories[c].text == "xpu_sync" || trace.categories[c].text == "hardware_counters";
  }
  if (old) return "1.8–1.11";
  if (!known) return {};  // any tool can write a Chrome trace with Kineto's categories, so nothing is known
  const bool numbered = std::ranges::any_of(
      part.collectives, [](const CollectiveFact& fact) { return fact.seq >= 0 || fact.comms_id != 0; });
  // Forks wrote some of these fields earlier; no release of torch did before 2026.
  constexpr int64_t kYear2026 = 1'767'225'600'000'000'000;
  const bool recent = part.slices.start_ns.empty() || part.slices.start_ns[0] >= kYear2026;
  if (annotated) return "2.15+";
  if (recent && has_node_names(trace, part)) return "2.14+";
  if (recent && (numbered || syncs || has_meta(part, "host_name"))) return "2.11+";
  // Newer versions leave out what they do not know, so in a new recording nothing says that the version is an old one.
  // With 2.7 the base time moved to before the events, and the versions of the drivers were added.
  const bool versions = has_meta(part, "cuda_driver_version") || has_meta(part, "cupti_version") ||
                        has_meta(part, "hip_driver_version") || has_meta(part, "roctracer_version");
  if (has_meta(part, "baseTimeNanoseconds")) return versions || overhead ? "2.7–2.10" : recent ? "2.4+" : "2.4–2.6";
  if (!part.fractional_time) return "1.12–2.2";
  // Decimal times that count from the epoch were written for two months only; in other files with such times, a tool
  // removed the base time.
  constexpr int64_t kThisCentury = 1'000'000'000'000'000'000;
  return !part.slices.start_ns.empty() && part.slices.start_ns[0] > kThisCentury ? "2.3" : "2.4–2.6";
}

bool is_module_range(const Trace& trace, const RangeFact& range) { return trace.names.text(range.domain) == "Module"; }

std::string_view category_label(Category category) {
  static constexpr auto kTexts = texts_by<Category::kSpan>(
      {"other", "CPU operators", "annotations", "Python frames", "runtime calls", "driver calls", "profiler overhead",
       "kernels", "copies", "memsets", "MTIA work", "device waits", "device events", "device annotations",
       "counter ranges", "collectives", "communication tasks", "profile spans"});
  return kTexts[category];
}

int64_t first_start_ns(const Trace& trace) {
  int64_t first = INT64_MAX;
  for (const Part& part : trace.parts)
    for (const Lane& lane : part.lanes)
      if (lane.begin < lane.end) first = std::min(first, part.slices.start_ns[lane.begin]);
  return first == INT64_MAX ? 0 : first;
}

SliceCounts count_slices(const Trace& trace) {
  const SliceFilter& filter = trace.slice_filter;
  const int64_t zero = first_start_ns(trace);
  SliceCounts out;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    if (filter.ranks.empty() || std::ranges::binary_search(filter.ranks, trace.parts[p].rank)) out.parts.push_back(p);
  std::vector<SliceCounts> ranks(out.parts.size());
  // For each name of a communication kernel, 1 for a message and 2 for a collective. Threads may compute an entry
  // twice, but they get the same answer.
  std::vector<int8_t> communication(trace.names.size(), 0);
  const auto is_message = [&](StringId name) {
    const std::atomic_ref<int8_t> known(communication[name]);
    int8_t kind = known.load(std::memory_order_relaxed);
    if (kind == 0) known.store(kind = is_message_name(trace.names.text(name)) ? 1 : 2, std::memory_order_relaxed);
    return kind == 1;
  };
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = count_part(trace, trace.parts[out.parts[k]], zero, is_message); });
  std::set<int64_t> steps;
  out.start_ns = INT64_MAX;
  out.end_ns = INT64_MIN;
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = trace.parts[out.parts[k]];
    out.slices += ranks[k].slices;
    out.device_streams += ranks[k].device_streams;
    out.message_kernels += ranks[k].message_kernels;
    out.collective_kernels += ranks[k].collective_kernels;
    out.start_ns = std::min(out.start_ns, ranks[k].start_ns);
    out.end_ns = std::max(out.end_ns, ranks[k].end_ns);
    for (size_t c = 0; c < kCategoryCount; ++c) out.by_category[c] += ranks[k].by_category[c];
    out.events += part.event_count;
    out.marks += static_cast<int64_t>(part.marks.size());
    out.memory += static_cast<int64_t>(part.memory.size());
    out.links += static_cast<int64_t>(part.slice_links.size());
    for (const CounterSeries& series : part.counters) out.counter_values += static_cast<int64_t>(series.value.size());
    for (const ProfilerStep& step : part.steps)
      if (is_wanted(filter, step.number)) steps.insert(step.number);
  }
  if (out.slices == 0) out.start_ns = out.end_ns = 0;
  out.steps.assign(steps.begin(), steps.end());
  return out;
}

int64_t profiler_step_number(std::string_view name) {
  if (!name.starts_with("ProfilerStep")) return -1;
  size_t at = 12;
  const auto blanks = [&] {
    while (at < name.size() && (name[at] == ' ' || name[at] == '\t')) ++at;
  };
  blanks();
  if (at >= name.size() || name[at] != '#') return -1;
  ++at;
  blanks();
  int64_t number = -1;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && number < 1'000'000'000; ++at)
    number = std::max<int64_t>(number, 0) * 10 + (name[at] - '0');
  return number;
}

AscendSizes ascend_sizes(const Part& part) {
  const std::string_view args = meta_json(part, "distributed_args");
  const auto size = [&](std::string_view key) {
    const int64_t value = json_integer(json_member(args, key)).value_or(0);
    return value > 0 && value <= INT32_MAX ? value : 0;
  };
  return {.tp = size("tensor_model_parallel_size"),
          .cp = size("context_parallel_size"),
          .dp = size("data_parallel_size"),
          .pp = size("pipeline_model_parallel_size"),
          .ep = size("expert_model_parallel_size"),
          .world = size("world_size")};
}

std::string ascend_level(const Part& part) {
  const std::string_view config = json_member(meta_json(part, "profiler_info"), "config");
  const std::string level = json_text(json_member(json_member(config, "experimental_config"), "_profiler_level"));
  return level.substr(level.rfind('.') == std::string::npos ? 0 : level.rfind('.') + 1);
}

std::string ascend_schema(const Part& part) { return json_text(meta_json(part, "SCHEMA_VERSION")); }

}  // namespace stageline
