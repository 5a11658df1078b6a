#include "readers/common/op_names.h"
#include "readers/common/rows/file_rows.h"

namespace stageline::rows {
namespace {

// The categories that Paddle writes (paddle/fluid/platform/profiler/chrometracing_logger.cc); all others (ProfileStep,
// Forward, Dataloader, UserDefined, …) are ranges.
constexpr WordRow<std::string_view> kPaddleCategories[] = {
    {"cpu_op", "Operator OperatorInner PythonOp DygraphKernelLaunch StaticKernelLaunch DeviceKernelLaunch"},
    {"cuda_runtime", "CudaRuntime MluRuntime"},
    {"kernel", "Kernel"},
    {"gpu_memcpy", "Memcpy"},
    {"gpu_memset", "Memset"},
};

// "matmul dygraph[88.141 us]" → "matmul dygraph": Paddle writes the length into the name.
std::string paddle_name(std::string_view name) {
  const size_t open = name.rfind('[');
  if (open != std::string_view::npos && (name.ends_with("ms]") || name.ends_with("us]") || name.ends_with("ns]")))
    name = name.substr(0, open);
  return name.starts_with("ProfileStep#") ? "ProfilerStep#" + std::string(name.substr(12)) : std::string(name);
}

// Replaces every text of a dictionary; returns the new id of each.
template <class Renamed> std::vector<uint32_t> rename(TextInterner& texts, Renamed renamed) {
  TextInterner next;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < texts.size(); ++id) ids.push_back(next.intern(renamed(texts.text(id))));
  texts = std::move(next);
  return ids;
}

void translate_paddle(FileRows& rows) {
  const std::vector<uint32_t> names = rename(rows.dictionaries.names, paddle_name);
  const std::vector<uint32_t> categories = rename(rows.dictionaries.categories, [](std::string_view text) {
    return std::string(key_of_word(kPaddleCategories, text).value_or(text.empty() ? "" : "user_annotation"));
  });
  const std::vector<uint32_t> threads = rename(rows.dictionaries.threads, [](std::string_view text) {
    const bool lane = text.ends_with("(Python)") || text.ends_with("(C++)");
    return std::string(lane ? text.substr(0, text.rfind('(')) : text);
  });
  each_row(rows, [&](Row& row) {
    row.name = names[row.name];
    row.category = static_cast<uint16_t>(categories[row.category]) & 0x7fff;
    row.thread = threads[row.thread];
  });
  ChunkRows& rest = rows.rest;
  map_texts(rest, names);
  for (Mark& mark : rest.marks) mark.name = names[mark.name], mark.lane = threads[mark.lane];
  for (MemoryRecord& record : rest.memory) record.lane = threads[record.lane];
  for (auto flows : {&ChunkRows::flows, &ChunkRows::launch_flows})
    for (Flow& flow : rest.*flows) flow.thread = threads[flow.thread];
  for (ThreadName& entry : rest.thread_names) entry = {threads[entry.thread], names[entry.name]};
  for (ProcessName& entry : rest.process_names) entry = {names[entry.pid], names[entry.name]};
  // "ts" is cut to microseconds; "start_time" counts from the first event, to the nanosecond.
  std::vector<Row*> at;
  each_row(rows, [&](Row& row) { at.push_back(&row); });
  const auto first = std::ranges::min_element(rest.exact_starts, {}, &ExactStart::ns);
  if (first == rest.exact_starts.end()) return;
  const int64_t zero = at[first->slice]->start_ns - first->ns;
  for (const ExactStart& entry : rest.exact_starts)
    if (std::abs(zero + entry.ns - at[entry.slice]->start_ns) < 2'000) at[entry.slice]->start_ns = zero + entry.ns;
}

// Returns true for a process that a profiler made for a device.
bool is_device_process(std::string_view process) {
  if (process.starts_with("/gpu:")) return true;  // TensorFlow 1
  if (process.starts_with("/device:")) return !process.starts_with("/device:CPU");
  if (!process.starts_with("GPU")) return process == "COPY";
  return process.size() > 3 && process.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

void translate_devices(FileRows& rows) {
  Dictionaries& known = rows.dictionaries;
  enum class Place : uint8_t { kHost, kDevice, kDerived };  // derived: modules, steps and scopes drawn for a device
  std::vector<Place> places(known.threads.size(), Place::kHost);
  std::vector<bool> copies(known.threads.size());
  bool any = false, of_xla = false, translated = false;
  for (const ProcessName& entry : rows.rest.process_names) {
    const std::string_view process = known.names.text(entry.name);
    if (!is_device_process(process)) continue;
    const std::string key = std::string(known.names.text(entry.pid)) + '\n';
    of_xla |= process.starts_with('/');
    for (uint32_t t = 1; t < known.threads.size(); ++t)
      if (known.threads.text(t).starts_with(key)) {
        // TensorFlow 1 draws the work of each stream again on "stream:all".
        places[t] = process.find("/stream:all") == process.npos ? Place::kDevice : Place::kDerived;
        copies[t] = process == "COPY" || process.ends_with("/memcpy Compute");
        any = true;
      }
  }
  bool is_legacy = false;  // of torch's profiler before 1.8
  for (uint32_t t = 1; t < known.threads.size(); ++t)
    if (known.threads.text(t).starts_with("CUDA functions\n")) places[t] = Place::kDevice, any = is_legacy = true;
  if (!any) return;
  for (const ThreadName& entry : rows.rest.thread_names) {
    const std::string_view line = known.names.text(entry.name);
    const bool xla = line.starts_with("XLA ") || line.starts_with("Framework ") || line.starts_with("TensorFlow ") ||
                     line.starts_with("Source") || line.starts_with("Step") || line == "Launch Stats";
    if (places[entry.thread] == Place::kDevice && xla && !line.ends_with("XLA Ops"))
      places[entry.thread] = Place::kDerived;
  }
  // A slice that encloses others of a device's line (a loop, a marked range) is drawn and not executed.
  std::vector<std::vector<Row*>> lines(known.threads.size());
  each_row(rows, [&](Row& row) {
    if (places[row.thread] == Place::kDevice) lines[row.thread].push_back(&row);
  });
  const auto category = [&](std::string_view text) {
    return static_cast<uint16_t>(known.categories.intern(text)) & 0x7fff;
  };
  const std::array<int, 7> ours = {category("kernel"),       category("gpu_memcpy"),      category("gpu_memset"),
                                   category("cuda_runtime"), category("python_function"), category("user_annotation"),
                                   category("cpu_op")};
  const int drawn = category("gpu_user_annotation");
  const auto give = [](Row& row, int id) { row.category = static_cast<uint16_t>(id) & 0x7fff; };
  uint32_t index = 0;
  each_row(rows, [&](Row& row) {
    const uint32_t at = index++;
    const std::string_view own = known.categories.text(row.category);
    const bool is_op = own == "Op" || (is_legacy && own.empty());  // "Op": of a timeline by TensorFlow 1
    if (!own.empty() && !is_op) return;
    const std::string_view name = known.names.text(row.name);
    translated |= places[row.thread] == Place::kDevice;
    if (places[row.thread] == Place::kDerived) return give(row, drawn);
    const bool call = row.correlation != kNoCorrelation || name.starts_with("hip") || name.starts_with("cuda");
    if (places[row.thread] == Place::kHost)
      return give(row, is_op ? ours[6] : call ? ours[3] : name.starts_with('$') ? ours[4] : ours[5]);
    const bool copy = copies[row.thread] || name.starts_with("Memcpy") || name.find("Copy") != std::string_view::npos ||
                      is_xla_transfer("", name);
    give(row, name.starts_with("Memset") ? ours[2] : copy ? ours[1] : ours[0]);
    if (!is_xla_collective("", name)) return;
    rows.rest.collectives.push_back({.slice = at, .name = known.names.intern(xla_opcode("", name))});
  });
  if (translated && !is_legacy) rows.metadata.push_back({"recorded_by", of_xla ? "\"xplane\"" : "\"rocpd\""});
  for (std::vector<Row*>& line : lines) {
    sort_stably(line, [](const Row* a, const Row* b) {
      return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->dur_ns > b->dur_ns;
    });
    for (size_t k = 0; k + 1 < line.size(); ++k)
      if (line[k + 1]->dur_ns > 0 && line[k + 1]->start_ns + line[k + 1]->dur_ns <= line[k]->start_ns + line[k]->dur_ns)
        give(*line[k], drawn);
  }
}

}  // namespace

bool is_paddle(const std::vector<MetaField>& metadata) {
  return std::ranges::any_of(
      metadata, [](const MetaField& field) { return field.key == "span_index" || field.key == "span_indx"; });
}

void translate(FileRows& rows) {
  if (is_paddle(rows.metadata)) translate_paddle(rows);
  else translate_devices(rows);
}

}  // namespace stageline::rows
