#include "readers/xplane/events.h"

#include <cctype>

#include "base/proto_scan.h"

namespace stageline::xplane {
namespace {

constexpr std::pair<std::string_view, StatKey> kKeys[] = {
#define STAT(key, name) {name, StatKey::key},
#include "readers/xplane/stats.def"
};

void add_argument(std::string_view key, std::string_view value, Facts& facts) {
  append_item(facts.arguments, std::string(key) + "=" + std::string(value), ",");
  const auto number = parse_int(value);
  if (!number) return;
  if (key == "micro_batch" || key == "microbatch" || key == "mb" || key == "microbatch_id")
    facts.micro_batch = small(*number);
  if (key == "stage" || key == "stage_id") facts.stage = small(*number);
  if (key == "chunk" || key == "virtual_stage") facts.chunk = small(*number);
}

void take_stat(const Plane& plane, const StatKeys& keys, std::string_view message, bool with_arguments, Facts& facts) {
  const Stat stat = read_stat(message, plane.stats);
  const auto key = keys.find(stat.id);
  switch (key == keys.end() ? StatKey::kOther : key->second) {
    case StatKey::kStepNumber: facts.step_number = stat.integer; return;
    case StatKey::kRoot: facts.root = stat.integer; return;
    case StatKey::kProducerType: facts.producer_type = small(stat.integer); return;
    case StatKey::kProducer: facts.producer = stat.integer; return;
    case StatKey::kConsumerType: facts.consumer_type = small(stat.integer); return;
    case StatKey::kConsumer: facts.consumer = stat.integer; return;
    case StatKey::kCorrelation: facts.correlation = stat.integer; return;
    case StatKey::kHloOp:
      facts.has_hlo = true;
      facts.hlo_op = stat.text;
      return;
    case StatKey::kHloModule:
      facts.has_hlo = true;
      facts.hlo_module = stat.text;
      return;
    case StatKey::kHloCategory: facts.hlo_category = stat.text; return;
    case StatKey::kBytes: facts.bytes = stat.integer; return;
    case StatKey::kKernelDetails: facts.kernel_details = stat.text; return;
    case StatKey::kCopyDetails: facts.copy_details = stat.text; return;
    case StatKey::kMemsetDetails: facts.memset_details = stat.text; return;
    case StatKey::kDeviceOffset: return;
    case StatKey::kDeviceDuration: facts.device_duration_ps = stat.integer; return;
    case StatKey::kCounter:
      facts.counter = stat.kind == Stat::kReal ? stat.real : stat.integer;
      facts.has_counter = true;
      return;
    case StatKey::kGroup: facts.group = stat.integer; return;
    case StatKey::kSource: facts.has_source = true; return;
    case StatKey::kOther: break;
  }
  if (!with_arguments || facts.arguments.size() > 1024) return;
  const auto name = plane.stats.find(stat.id);
  if (name == plane.stats.end() || name->second.starts_with("_") || stat.kind == Stat::kBytes) return;
  const std::string text = stat.kind == Stat::kText   ? valid_utf8(stat.text)
                           : stat.kind == Stat::kReal ? repr_double(stat.real)
                                                      : std::to_string(stat.integer);
  add_argument(name->second, text, facts);
}

}  // namespace

LineHead read_line(std::string_view bytes) {
  LineHead line;
  std::string display;
  for (ProtoScan scan(bytes); scan.next();) {
    switch (scan.id) {
      case 1: line.id = scan.as_signed(); break;
      case 2:
        if (scan.is_bytes()) line.name = valid_utf8(scan.bytes);
        break;
      case 3: line.start_ns = scan.as_signed(); break;
      case 4:
        if (scan.is_bytes()) line.events.push_back(scan.bytes);
        break;
      case 11:
        if (scan.is_bytes()) display = valid_utf8(scan.bytes);
        break;
      default: break;
    }
  }
  if (line.name.empty()) line.name = display;
  return line;
}

StatKeys stat_keys(const Plane& plane) {
  StatKeys keys;
  for (const auto& [id, name] : plane.stats) {
    const auto* at = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const auto& k) { return k.first == name; });
    keys[id] = at == std::end(kKeys) ? StatKey::kOther : at->second;
  }
  return keys;
}

Event read_event(const Plane& plane, const StatKeys& keys, std::string_view bytes, bool with_arguments) {
  Event event;
  for (ProtoScan scan(bytes); scan.next();)
    if (scan.id == 1 && scan.wire == ProtoScan::kVarint) event.name = scan.as_signed();
  if (const auto meta = plane.events.find(event.name); meta != plane.events.end())
    for (const char *at = meta->second.stats.data(), *end = at + meta->second.stats.size(); at < end;) {
      uint64_t length = 0;
      if (!ProtoScan::read_varint(at, end, length) || length > static_cast<uint64_t>(end - at)) break;
      take_stat(plane, keys, {at, static_cast<size_t>(length)}, false, event.facts);
      at += length;
    }
  for (ProtoScan scan(bytes); scan.next();) {
    switch (scan.id) {
      case 2: event.offset_ps = scan.as_signed(); break;
      case 3: event.dur_ps = scan.as_signed(); break;
      case 4:
        if (scan.is_bytes()) take_stat(plane, keys, scan.bytes, with_arguments, event.facts);
        break;
      case 5: event.is_aggregate = true; break;
      default: break;
    }
  }
  return event;
}

std::string_view take_arguments(std::string_view name, Facts& facts) {
  const size_t hash = name.find('#');
  if (!name.ends_with('#') || hash + 1 >= name.size()) return name;
  for (const std::string_view pair : split(name.substr(hash + 1, name.size() - hash - 2), ',')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    if (pair.substr(0, equals) == "step_num") facts.step_number = parse_int(pair.substr(equals + 1)).value_or(-1);
    else if (!pair.starts_with("_")) add_argument(pair.substr(0, equals), pair.substr(equals + 1), facts);
  }
  return name.substr(0, hash);
}

int32_t small(int64_t value) { return value >= 0 && value < 1'000'000'000 ? static_cast<int32_t>(value) : -1; }

std::string frame_name(std::string_view name) {
  name.remove_prefix(1);
  const size_t blank = name.rfind(' ');  // "$<frozen os>:756 encode"
  if (blank == std::string_view::npos) return std::string(name);
  const std::string_view where = name.substr(0, blank), function = name.substr(blank + 1);
  const size_t colon = where.rfind(':');
  if (colon == std::string_view::npos || !parse_int(where.substr(colon + 1)))
    return std::string(where) + "(0): " + std::string(function);
  return std::string(where.substr(0, colon)) + "(" + std::string(where.substr(colon + 1)) +
         "): " + std::string(function);
}

std::string_view detail(std::string_view details, std::string_view key) {
  for (size_t at = details.find(key); at != std::string_view::npos; at = details.find(key, at + 1)) {
    const size_t colon = at + key.size();
    if ((at > 0 && details[at - 1] != ' ') || colon >= details.size() || details[colon] != ':') continue;
    const std::string_view rest = details.substr(colon + 1);
    return rest.substr(0, rest.find(' '));
  }
  return {};
}

bool is_api_call(std::string_view name) {
  return name.starts_with("cu") || name.starts_with("hip") || name.starts_with("cuda");
}

bool is_eager_operator(std::string_view name) {
  constexpr std::string_view kEager = "EagerLocalExecute: ";
  return name.starts_with(kEager) && !name.substr(kEager.size()).starts_with("__");
}

bool is_tf_operator(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || name[colon - 1] == ':' || colon + 1 == name.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(colon) + 1, name.end(),
                     [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
}

bool waits_for_executor(std::string_view name) {
  return name == "FunctionRun" || name.starts_with("KernelAndDevice") || name.starts_with("Wait for ") ||
         name.ends_with("(wait for completion)");
}

bool is_internal(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      "ParseArguments", "Handle inputs",    "AllocateOutputBuffersWithInputReuse", "D2D Dispatch",
      "BufferAlloc",    "ConvertArguments", "Handle input event recording"};
  return name.find("::") != std::string_view::npos || name.starts_with("PjitFunction(") || name.starts_with("end: ") ||
         name.starts_with("ExecutorState") || std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
}

std::optional<DeviceName> device_of(std::string_view plane) {
  if (!plane.starts_with("/device:")) return std::nullopt;
  plane.remove_prefix(8);
  const size_t colon = plane.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const size_t end = plane.find_first_not_of("0123456789", colon + 1);
  const auto number = parse_int(plane.substr(colon + 1, end == std::string_view::npos ? end : end - colon - 1));
  if (!number || *number > 65'535) return std::nullopt;
  return DeviceName{std::string(plane.substr(0, colon)),
                    end == std::string_view::npos ? "" : std::string(trim(plane.substr(end))), *number};
}

bool is_derived(std::string_view line) {
  constexpr std::string_view kDerived[] = {"Steps",         "XLA Modules",          "XLA TraceMe",
                                           "Framework Ops", "Framework Name Scope", "TensorFlow Ops",
                                           "Source code",   "Launch Stats",         "Step"};
  return std::find(std::begin(kDerived), std::end(kDerived), line) != std::end(kDerived) ||
         line.starts_with("TensorFlow Name Scope") || line.starts_with("Source");
}

int64_t stream_number(const std::string& line) {
  const size_t at = line.find('#');
  const size_t end = line.find_first_not_of("0123456789", at + 1);
  return parse_int(std::string_view(line).substr(at + 1, end == std::string::npos ? end : end - at - 1)).value_or(-1);
}

std::string copy_name(std::string_view name) {
  if (name.size() == 9 && name.starts_with("Memcpy") && name[7] == '2')
    return std::string("Memcpy ") + name[6] + "to" + name[8];
  return std::string(name);
}

}  // namespace stageline::xplane
