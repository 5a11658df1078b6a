#include "exporters/stack_export.h"

#include "base/json_writer.h"
#include "exporters/export_sink.h"
#include "profile/function_events.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

// Limits of frames in one line. A rebuilt stack of a hundred thousand nested frames would be written a hundred thousand
// times; recorded stacks are already in the file in full.
constexpr size_t kMaxFrames = 512, kMaxRecordedFrames = 100'000;
constexpr size_t kPieceBytes = size_t{1} << 16;  // how much text is gathered before it is written
constexpr StringId kNoLeaf = 0;

struct Sample {
  uint32_t node = PythonStacks::kEmpty;
  StringId leaf = kNoLeaf;
  int64_t value = 0;  // ns, bytes or a count
};

bool is_time(StackMetric metric) { return metric == StackMetric::kHostTime || metric == StackMetric::kDeviceTime; }

// Torch holds times as doubles in µs from the start of its profile and truncates what it writes. Which whole number
// results may depend on the last bit of the double, so its arithmetic is repeated here.
class TorchTimes {
 public:
  TorchTimes(const Trace& trace, const Part& part, const FunctionEvents& events, const std::vector<uint32_t>& order)
      : children_us_(events.events.size(), 0.0) {
    for (size_t i = 0; i < part.slices.size(); ++i)
      if (trace.categories[part.slices.category_id[i]].kind == Category::kSpan) {
        zero_ns_ = part.slices.start_ns[i];
        break;
      }
    for (const uint32_t i : order)
      if (const int32_t up = events.events[i].parent; up >= 0) children_us_[up] += dur_us(events.events[i]);
  }
  double self_us(const FunctionEvent& event, size_t i) const {
    return event.is_async || event.on_device ? 0.0 : dur_us(event) - children_us_[i];
  }

 private:
  double dur_us(const FunctionEvent& event) const {
    const auto us = [&](int64_t ns) { return (ns - zero_ns_) / 1000.0; };
    return us(event.end_ns) - us(event.start_ns);
  }
  int64_t zero_ns_ = 0;
  std::vector<double> children_us_;
};

class Collector {
 public:
  Collector(const Trace& trace, const Part& part, const StackExportOptions& options)
      : trace_(trace), part_(part), options_(options), names_(trace) {}

  PythonStacks stacks;
  std::vector<Sample> samples;
  int64_t without_stack = 0;

  void collect() {
    PythonStackOptions how{.drop_torch_entries = options_.as_torch};
    if (options_.as_torch) {
      stacks = recorded_stacks(trace_, part_, how);
    } else {
      how.operators = options_.leaf != StackLeaf::kNone;
      how.cut_addresses = options_.aggregate;
      stacks = python_stacks(trace_, part_, how);
    }
    const FunctionEvents events =
        function_events(trace_, part_, names_, {.python_frames = true, .as_torch = options_.as_torch});
    const std::vector<uint32_t> order = events.in_torch_order(part_);
    if (options_.as_torch) {
      const TorchTimes times(trace_, part_, events, order);
      for (const uint32_t i : order) add_torch(events, times, i);
    } else {
      for (const uint32_t i : order) add(events, i);
    }
  }

 private:
  void put(uint32_t node, StringId leaf, int64_t value) {
    if (value <= 0) return;
    if (node == PythonStacks::kEmpty && (options_.as_torch || leaf == kNoLeaf) && !options_.aggregate) {
      ++without_stack;
      return;
    }
    samples.push_back({node, leaf, value});
  }

  static int64_t memory_of(const FunctionEvents& events, size_t i, StackMetric metric) {
    if (events.memory.empty()) return 0;
    return metric == StackMetric::kHostMemory ? events.memory[i].self_host : events.memory[i].self_device;
  }

  void add_torch(const FunctionEvents& events, const TorchTimes& times, uint32_t i) {
    const FunctionEvent& event = events.events[i];
    if (event.slice == kNoSliceIndex) return;
    int64_t value = 0;
    switch (options_.metric) {
      case StackMetric::kHostTime: value = static_cast<int64_t>(times.self_us(event, i)) * 1000; break;
      case StackMetric::kDeviceTime: value = event.self_device_ns / 1000 * 1000; break;
      case StackMetric::kSamples: value = event.category == Category::kCpuOp; break;
      default: value = memory_of(events, i, options_.metric);
    }
    put(stacks.stack_of(event.slice), kNoLeaf, value);
  }

  // Counts every piece of time once: device work counts in the stack of its own launch, and not again with its
  // operator.
  void add(const FunctionEvents& events, uint32_t i) {
    const FunctionEvent& event = events.events[i];
    if (event.slice == kNoSliceIndex) return;
    const bool leaf = options_.leaf == StackLeaf::kKernel && (event.on_device || is_launch_call(event.category));
    int64_t value = 0;
    switch (options_.metric) {
      case StackMetric::kHostTime: value = event.on_device ? 0 : event.self_host_ns; break;
      case StackMetric::kDeviceTime: value = is_device_work(event.category) ? event.end_ns - event.start_ns : 0; break;
      case StackMetric::kSamples: value = event.category == Category::kCpuOp; break;
      default: value = memory_of(events, i, options_.metric);
    }
    // A frame's self time counts in its own stack. When operators are frames, the same holds for operators.
    put(stacks.inside(event.slice), leaf ? part_.slices.name_id[event.slice] : kNoLeaf, value);
  }

  const Trace& trace_;
  const Part& part_;
  const StackExportOptions& options_;
  FunctionNames names_;
};

// Adds up equal stacks, in the order of the tree.
std::vector<Sample> aggregated(std::vector<Sample> samples) {
  sort_stably(samples,
              [](const Sample& a, const Sample& b) { return a.node != b.node ? a.node < b.node : a.leaf < b.leaf; });
  std::vector<Sample> sums;
  for (const Sample& sample : samples) {
    if (!sums.empty() && sums.back().node == sample.node && sums.back().leaf == sample.leaf) {
      if (__builtin_add_overflow(sums.back().value, sample.value, &sums.back().value)) sums.back().value = INT64_MAX;
    } else {
      sums.push_back(sample);
    }
  }
  return sums;
}

// Returns the frames, outermost first.
std::vector<std::string> frames_of(const Trace& trace, const PythonStacks& stacks, const Sample& sample, size_t max) {
  std::vector<std::string> frames;
  const std::vector<std::string_view> entries = stacks.entries(sample.node, max);
  const uint32_t depth = stacks.nodes()[sample.node].depth;
  if (depth > max) frames.push_back("(" + std::to_string(depth - max) + " frames more)");
  if (entries.empty() && sample.leaf == kNoLeaf) frames.emplace_back("(no frames)");
  for (size_t k = entries.size(); k-- > 0;) frames.emplace_back(entries[k]);
  if (sample.leaf != kNoLeaf) frames.emplace_back(trace.names.text(sample.leaf));
  return frames;
}

void append_collapsed(std::string& out, std::string_view frame) {
  for (const char c : frame) out += c == ' ' || c == ';' || c == '\t' || c == '\n' ? '_' : c;
}

// The content of both forms: the samples of one rank, with the frames of each.
struct RankStacks {
  const Trace& trace;
  const Collector& found;
  std::string rank;  // "rank 3"
  size_t max_frames;
};

// Writes a line for each sample, "frame;frame;frame value".
void write_collapsed(const RankStacks& stacks, const StackExportOptions& options, bool names_rank, ExportSink& sink,
                     StackExportCounts& counts) {
  std::string out;
  int64_t carried_ns = 0;  // for aggregated stacks: the rest after whole µs, which is added to the next line
  for (const Sample& sample : stacks.found.samples) {
    int64_t value = sample.value;
    if (is_time(options.metric) && !options.nanoseconds) {
      if (__builtin_add_overflow(value, carried_ns, &value)) value = INT64_MAX;
      carried_ns = options.aggregate ? value % 1000 : 0;
      value /= 1000;
    }
    if (value <= 0) {
      ++counts.below_unit;
      if (!options.aggregate) counts.below_unit_ns += sample.value;
      continue;
    }
    ++counts.lines;
    std::string line;
    if (names_rank) append_collapsed(line, stacks.rank);
    for (const std::string& frame : frames_of(stacks.trace, stacks.found.stacks, sample, stacks.max_frames)) {
      if (!line.empty()) line += ';';
      append_collapsed(line, frame);
    }
    out += line + ' ' + std::to_string(value) + '\n';
    if (out.size() <= kPieceBytes) continue;
    sink.write(out);
    out.clear();
  }
  sink.write(out);
}

// A speedscope file: the profiles as they come, one a rank, and the frames of all at the end.
class SpeedscopeFile {
 public:
  explicit SpeedscopeFile(ExportSink& sink) : sink_(sink) {
    json_.begin_object().field("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.field("exporter", "stageline").key("profiles").begin_array();
  }

  void add(const RankStacks& stacks, const char* unit) {
    json_.begin_object().field("type", "sampled").field("name", stacks.rank).field("unit", unit);
    json_.key("samples").begin_array();
    for (const Sample& sample : stacks.found.samples) {
      json_.begin_array();
      for (std::string& frame : frames_of(stacks.trace, stacks.found.stacks, sample, stacks.max_frames)) {
        const auto [it, added] = number_of_.try_emplace(frame, number_of_.size());
        if (added) frames_.push_back(std::move(frame));
        json_.value(it->second);
      }
      json_.end_array();
      flush();
    }
    json_.end_array().key("weights").begin_array();
    int64_t total = 0;
    for (const Sample& sample : stacks.found.samples) {
      json_.value(sample.value);
      if (__builtin_add_overflow(total, sample.value, &total)) total = INT64_MAX;
      flush();
    }
    json_.end_array().field("startValue", 0).field("endValue", total).end_object();
  }

  void finish() {
    json_.end_array().key("shared").begin_object().key("frames").begin_array();
    for (const std::string& frame : frames_) {
      json_.begin_object().field("name", frame).end_object();
      flush();
    }
    json_.end_array().end_object().end_object();
    sink_.write(json_.take());
    sink_.write("\n");
  }

 private:
  void flush() {
    if (json_.text().size() > kPieceBytes) sink_.write(json_.take());
  }

  ExportSink& sink_;
  JsonWriter json_;
  std::unordered_map<std::string, int64_t> number_of_;
  std::vector<std::string> frames_;
};

}  // namespace

Result<StackMetric> stack_metric(std::string_view name) {
  static const std::map<std::string_view, StackMetric> kMetrics = {
#define METRIC(name, metric) {name, StackMetric::metric},
#include "exporters/stack_metrics.def"
  };
  std::string wanted(name), list;
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  if (const auto it = kMetrics.find(wanted); it != kMetrics.end()) return it->second;
  for (const auto& [known, metric] : kMetrics) append_item(list, known);
  return make_error(ErrorCode::kUsage, "no metric \"" + std::string(name) + "\"", "the metrics are " + list);
}

Result<StackExportCounts> export_stacks(const Trace& trace, const std::vector<size_t>& parts,
                                        const StackExportOptions& options, const std::string& path) {
  TRY(sink, ExportSink::create(path));
  StackExportCounts counts;
  std::optional<SpeedscopeFile> speedscope;
  if (options.speedscope) speedscope.emplace(*sink);
  const char* unit = is_time(options.metric)                   ? "nanoseconds"
                     : options.metric == StackMetric::kSamples ? "none"
                                                               : "bytes";
  for (const size_t p : parts) {
    Collector found(trace, trace.parts[p], options);
    found.collect();
    counts.without_stack += found.without_stack;
    if (options.aggregate) found.samples = aggregated(std::move(found.samples));
    const RankStacks stacks{trace, found, "rank " + std::to_string(trace.parts[p].rank),
                            options.as_torch ? kMaxRecordedFrames : kMaxFrames};
    if (speedscope) {
      counts.lines += std::ssize(found.samples);
      speedscope->add(stacks, unit);
    } else {
      write_collapsed(stacks, options, parts.size() > 1, *sink, counts);
    }
  }
  if (speedscope) speedscope->finish();
  if (counts.lines == 0 && !options.as_torch) return counts;
  TRY_OK(sink->commit());
  return counts;
}

}  // namespace stageline
