#include "cli/info_text.h"

#include "diagnosis/explain_json.h"
#include "model/pipeline_words.h"
#include "model/torch_facts.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// Returns numbers such as "0-3, 8".
std::string ranges(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size(); ++i) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    append_item(out, std::to_string(numbers[i]));
    if (last > i) out += (last == i + 1 ? ", " : "-") + std::to_string(numbers[last]);
    i = last;
  }
  return out;
}

// Returns "1 copy", "2 copies".
std::string counted_label(Category category, int64_t count) {
  std::string label(category_label(category));
  if (count != 1 || !label.ends_with("s")) return label;
  label.pop_back();
  if (label.ends_with("ie")) label.replace(label.size() - 2, 2, "y");
  return label;
}

// `beside_slices` is true when the lines about the profile already give steps and time.
void cell_lines(const Trace& trace, bool beside_slices, Lines& lines) {
  const Extent extent = extent_of(trace);
  lines.emplace_back("stages", std::to_string(extent.stage_count) +
                                   (extent.dp_count > 1 ? " × " + pipelines_text(trace, extent.dp_count).en : ""));
  if (extent.chunk_count > 1) lines.emplace_back("chunks", std::to_string(extent.chunk_count) + " a rank");
  const Recognition recognition = recognise(trace);
  const std::string labels = labels_text(recognition);
  if (const auto count = micro_batches_per_step(trace); count > 0)
    lines.emplace_back(
        "micro-batches",
        std::to_string(count) + (labels.empty() ? ""
                                                : "  (labelled " + std::to_string(recognition.lowest_label) + " to " +
                                                      std::to_string(recognition.highest_label) + ")"));
  if (!beside_slices) lines.emplace_back("steps", std::to_string(extent.step_count));
  if (const std::string schedule = recognition_text(recognition).en; !schedule.empty())
    lines.emplace_back("schedule", schedule);
  lines.emplace_back("cells", grouped(trace.cells.size()) + " of " + grouped(trace.slice_count()) + " slices");
  lines.emplace_back(beside_slices ? "pipeline" : "time",
                     human_duration(extent.end_ns - extent.start_ns) + " from first start to last end" +
                         (trace.steps_laid_end_to_end ? ", steps laid end to end" : ""));
}

// For Ascend: level and schema of the recording, and how the job was divided. The values are those of the first rank;
// when other ranks differ, that is noted.
void ascend_lines(const Trace& trace, const std::vector<size_t>& parts, Lines& lines) {
  const auto reported = [&](std::string (*fact)(const Part&)) {
    const std::string first = fact(trace.parts[parts[0]]);
    for (const size_t p : parts)
      if (fact(trace.parts[p]) != first) return std::string("differs between ranks");
    return first.empty() ? std::string("not said") : first;
  };
  lines.emplace_back("recorded", "level " + reported(ascend_level) + ", schema " + reported(ascend_schema));
  const AscendSizes sizes = ascend_sizes(trace.parts[parts[0]]);
  std::string text;
  const std::pair<const char*, int64_t> kSizes[] = {
      {"tp", sizes.tp}, {"cp", sizes.cp}, {"dp", sizes.dp}, {"pp", sizes.pp}, {"ep", sizes.ep}};
  for (const auto& [name, size] : kSizes)
    if (size > 0) append_item(text, std::string(name) + " " + std::to_string(size));
  if (sizes.world > 1) append_item(text, std::to_string(sizes.world) + " ranks in all", "; ");
  if (!text.empty()) lines.emplace_back("parallel", text);
}

bool works_on_device(const Part& part) {
  return std::ranges::any_of(
      part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream && lane.end > lane.begin; });
}

// For profiler traces: what kinds of slices are left by --ranks, --steps and --range.
void slice_lines(const Trace& trace, Lines& lines) {
  const SliceCounts counts = count_slices(trace);
  std::vector<int64_t> ranks;
  std::map<std::string, std::vector<int64_t>> devices, eras;
  for (const size_t p : counts.parts) {
    const Part& part = trace.parts[p];
    ranks.push_back(part.rank);
    std::string device = device_name(part);
    if (device.empty() && part.device != kUnknown && trace.format != "recording" && trace.writer.empty())
      device = "unnamed (deviceProperties is empty)";
    if (device.empty() && works_on_device(part)) device = "not named in the profile";
    devices[device.empty() ? "none: no device work was recorded" : device].push_back(part.rank);
    if (const std::string era = torch_era(trace, part); !era.empty()) eras[era].push_back(part.rank);
  }
  if (ranks.size() > 1 || ranks[0] != 0 || trace.parts.size() > 1) lines.back().second += "  (" + ranges(ranks) + ")";
  const auto with_ranks = [&](const std::string& name, const std::vector<int64_t>& of, size_t kinds) {
    const std::string times = of.size() > 1 ? " ×" + std::to_string(of.size()) : "";
    return kinds > 1 ? name + times + " (ranks " + ranges(of) + ")" : name + times;
  };
  for (const auto& [name, of] : devices) lines.emplace_back("device", with_ranks(name, of, devices.size()));
  if (!trace.writer.empty()) lines.emplace_back("written by", trace.writer);
  for (const auto& [name, of] : eras)
    lines.emplace_back("written by", "torch " + (eras.size() > 1 ? with_ranks(name, of, eras.size()) : name));
  if (trace.device_family == DeviceFamily::kNpu && !counts.parts.empty()) ascend_lines(trace, counts.parts, lines);
  lines.emplace_back("events", grouped(counts.events));
  lines.emplace_back("slices", grouped(counts.slices));
  std::vector<size_t> order;
  for (size_t c = 0; c < kCategoryCount; ++c)
    if (counts.by_category[c] > 0) order.push_back(c);
  sort_stably(order, [&](size_t a, size_t b) { return counts.by_category[a] > counts.by_category[b]; });
  for (const size_t c : order)
    lines.emplace_back(
        "", grouped(counts.by_category[c]) + " " + counted_label(static_cast<Category>(c), counts.by_category[c]));
  if (counts.message_kernels + counts.collective_kernels > 0) {
    std::string text;
    if (counts.message_kernels > 0)
      text =
          grouped(counts.message_kernels) + (counts.message_kernels == 1 ? " send or receive" : " sends and receives");
    if (counts.collective_kernels > 0)
      append_item(
          text, grouped(counts.collective_kernels) + (counts.collective_kernels == 1 ? " collective" : " collectives"));
    lines.emplace_back("communicate", text + ", of the kernels");
  }
  if (counts.memory > 0) lines.emplace_back("memory", grouped(counts.memory) + " allocations and frees");
  if (counts.counter_values > 0) lines.emplace_back("counters", grouped(counts.counter_values) + " values");
  if (counts.device_streams > 0) lines.emplace_back("streams", grouped(counts.device_streams) + " with device work");
  lines.emplace_back("steps", counts.steps.empty()
                                  ? "none (no ProfilerStep#N)"
                                  : std::to_string(counts.steps.size()) + "  (" + ranges(counts.steps) + ")");
  const bool apart = trace.diagnostics.count("kineto.far_apart") > 0;
  lines.emplace_back("time", human_duration(counts.end_ns - counts.start_ns) + " from first start to last end" +
                                 (apart ? "; files are more than a day apart and may be several runs" : ""));
}

constexpr int kBar = 50;  // width of a whole step

std::string padded(const std::string& text, int width) {
  return std::string(std::max(0, width - display_width(text)), ' ') + text;
}

}  // namespace

std::string info_text(const Trace& trace) {
  Lines lines;
  lines.emplace_back("format", trace.format + (trace.description.empty() ? "" : "  (" + trace.description + ")"));
  if (trace.machine_count() > 1) lines.emplace_back("machines", std::to_string(trace.machine_count()));
  lines.emplace_back("ranks", std::to_string(trace.parts.size()));
  const bool profiled = std::ranges::any_of(trace.parts, [](const Part& part) { return part.event_count > 0; });
  const bool of_slices = profiled || (trace.cells.size() == 0 && trace.slice_count() > 0);
  if (of_slices) slice_lines(trace, lines);
  if (trace.cells.size() > 0 || !of_slices) cell_lines(trace, of_slices, lines);
  lines.emplace_back("clocks", trace.clock == ClockState::kShared ? "one clock"
                               : trace.clock == ClockState::kUnaligned
                                   ? "as recorded; stageline align measures their offsets"
                                   : "each rank counts from its own zero");
  if (trace.parts.size() > 1)
    lines.emplace_back("", "explain, sql and report compare the clocks and may add notes on them");
  std::string out;
  for (const auto& [name, value] : lines) out += name + std::string(14 - name.size(), ' ') + value + "\n";
  if (trace.diagnostics.empty()) {
    out += "\nnothing was wrong with it\n";
    return out;
  }
  out += "\n";
  for (const Diagnostic& d : trace.diagnostics.items()) {
    out += std::string(severity_name(d.severity)) + std::string(9 - severity_name(d.severity).size(), ' ') + d.name +
           (d.count > 1 ? " × " + grouped(d.count) : "") + "\n";
    const std::string where = d.first.text();
    out += wrapped((where.empty() ? "" : where + ": ") + d.message.en, 100, 9);
  }
  return out;
}

std::string figures_text(const Terminal& terminal, const std::vector<NamedFigure>& figures) {
  const bool zh = terminal.lang == "zh";
  const auto shown = [](const NamedFigure& f) -> std::string {
    if (!f.figure.known()) return "–";
    return f.spec->unit == "ns"      ? human_duration(f.figure.value)
           : f.spec->unit == "share" ? percent(f.figure.value)
                                     : grouped(std::llround(f.figure.value));
  };
  int widest = 0, longest = 0;
  for (const NamedFigure& f : figures) {
    widest = std::max(widest, display_width(f.figure.name));
    longest = std::max(longest, display_width(shown(f)));
  }
  const auto blanks = [](int count) { return std::string(std::max(0, count), ' '); };
  std::string out;
  for (const NamedFigure& f : figures) {
    const std::string value = shown(f);
    out += f.figure.name + blanks(widest - display_width(f.figure.name) + 2) + blanks(longest - display_width(value)) +
           value + "  " + (f.figure.known() ? base_of(*f.spec) : f.figure.why_unknown).in(zh) + "\n";
  }
  return out;
}

std::string explain_text(const Terminal& terminal, const Explanation& e, const std::vector<std::string>& paths) {
  const bool zh = terminal.lang == "zh";
  const auto pick = [&](const Text& text) { return text.in(zh); };
  std::string out = e.run.empty() ? wrapped(pick(e.headline.title), terminal.width, 0) : pick(e.run) + "\n";
  if (const Text& lead = e.run.empty() ? e.headline.lead : e.opening; !lead.empty())
    out += wrapped(pick(lead), terminal.width, 0);
  const auto bars = [&](const std::vector<SpanPart>& parts) {
    int widest = max_over<int>(parts, [&](const SpanPart& part) { return display_width(pick(part.label)); });
    if (!parts.empty()) out += "\n";
    auto shares = mapped<double>(parts, &SpanPart::share);
    const std::vector<std::string> printed = percents(shares);
    const std::string zero = percent(0);
    for (size_t p = 0; p < parts.size(); ++p) {
      const SpanPart& part = parts[p];
      if (part.share >= 0 && printed[p] == zero) continue;
      const std::string label = pick(part.label);
      const size_t length = std::clamp<long>(std::lround(part.share * kBar), 0L, kBar);
      std::string bar;
      for (size_t i = 0; i < length; ++i) bar += "█";
      std::string line =
          padded(printed[p], 9) + "  " + label + std::string(widest - display_width(label) + 2, ' ') + bar;
      while (line.ends_with(' ')) line.pop_back();
      out += line + "\n";
    }
  };
  bars(e.parts);
  const auto of_recording = [&](const char* sentence, const std::vector<SpanPart>& parts) {
    if (!parts.empty()) out += "\n" + terminal.say(sentence) + "\n";
    bars(parts);
  };
  of_recording("explain.device_parts", e.headline.device_parts);
  of_recording("explain.host_parts", e.headline.host_parts);
  out += "\n";
  if (!e.note.empty()) out += wrapped(pick(e.note), terminal.width, 0) + "\n";
  int number = 0;
  for (const Finding& f : e.findings) {
    const std::string title = std::to_string(++number) + ". " + pick(f.title);
    out += priced_title(terminal, title, price_of(f, zh));
    out += wrapped(pick(f.detail), terminal.width, 3);
    if (const std::string command = finding_command(f, paths); !command.empty()) out += "   " + command + "\n";
  }
  std::string offers;
  for (const Finding& f : e.offers) offers += priced_title(terminal, "   " + pick(f.title), price_of(f, zh));
  const std::string more = paths.empty() ? "" : "stageline report" + shell_words(paths) + " -o report.html";
  if (!e.findings.empty()) out += "\n";
  const Text closing = closing_words(e);
  out += wrapped(pick(closing), terminal.width, 0);
  if (!offers.empty()) {
    out += "\n" + terminal.say("offers.head") + "\n" + offers;
    out += "   stageline what-if" + shell_words(paths) + "\n";
  }
  return out + terminal.say("explain.report", Args().set("command", more)) + "\n";
}

}  // namespace stageline
