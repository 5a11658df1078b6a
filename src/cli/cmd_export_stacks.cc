#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "exporters/stack_export.h"

namespace stageline {
namespace {

Result<StackExportOptions> options_of(const Arguments& arguments) {
  StackExportOptions options;
  TRY(metric, stack_metric(arguments.get("metric", "self_cpu_time_total")));
  options.metric = *metric;
  options.as_torch = arguments.get("stacks", "rebuilt") == "torch";
  options.aggregate = arguments.has("aggregate");
  // Files of speedscope end in .json. Collapsed text under such a name could not be opened by any viewer.
  const std::string extension = file_extension(arguments.get("output"));
  if (extension == "svg" || extension == "html" || extension == "png")
    return make_error(
        ErrorCode::kUsage, "export-stacks writes stacks, not a drawing",
        "write stacks.txt and draw it: flamegraph.pl stacks.txt > flame.svg; or .speedscope.json for speedscope",
        {arguments.get("output")});
  options.speedscope = arguments.get("format", extension == "json" ? "speedscope" : "collapsed") == "speedscope";
  options.nanoseconds = arguments.get("unit", "us") == "ns";
  if (arguments.has("unit") && (options.speedscope || options.as_torch))
    return make_error(ErrorCode::kUsage, "--unit is of collapsed stacks",
                      options.speedscope ? "speedscope's form has nanoseconds" : "torch writes whole microseconds");
  const std::string leaf = arguments.get("leaf", options.aggregate ? "op" : "none");
  options.leaf = leaf == "kernel" ? StackLeaf::kKernel : leaf == "op" ? StackLeaf::kOperator : StackLeaf::kNone;
  if (options.as_torch && arguments.has("leaf") && options.leaf != StackLeaf::kNone)
    return make_error(ErrorCode::kUsage, "--leaf is for rebuilt stacks", "leave --stacks torch out");
  if (options.as_torch) options.leaf = StackLeaf::kNone;
  return options;
}

Result<std::vector<size_t>> chosen_parts(const Trace& trace) {
  std::vector<size_t> parts;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    if (trace.parts[p].slices.size() > 0 && trace.parts[p].slices.has_facts() &&
        (wanted.empty() || std::ranges::binary_search(wanted, trace.parts[p].rank)))
      parts.push_back(p);
  if (!parts.empty()) return parts;
  return make_error(ErrorCode::kBadInput, "no rank with profiler slices is left",
                    "only PyTorch profiler traces have stacks; stageline info lists the contents of the input");
}

bool any_slice(const Trace& trace, const std::vector<size_t>& parts, bool (*is)(Category)) {
  return std::ranges::any_of(parts, [&](size_t p) {
    const auto& ids = trace.parts[p].slices.category_id;
    return std::ranges::any_of(ids, [&](uint8_t id) { return is(trace.categories[id].kind); });
  });
}

// Returns why there is no stack to write.
Error nothing_written(const Trace& trace, const std::vector<size_t>& parts, StackMetric metric,
                      const StackExportCounts& counts) {
  const bool frames = any_slice(trace, parts, [](Category c) { return c == Category::kPythonFunction; });
  const bool work = any_slice(trace, parts, [](Category c) { return is_device_work(c); });
  if (metric == StackMetric::kDeviceTime && !work)
    return make_error(ErrorCode::kBadInput, "the trace has no device work, so no stack has device time",
                      "self_cpu_time_total weighs stacks by the host's time");
  if (metric == StackMetric::kHostMemory || metric == StackMetric::kDeviceMemory)
    return make_error(ErrorCode::kBadInput, "no call allocates more than it frees, by the records of the trace",
                      "torch.profiler records memory with profile_memory=True");
  if (counts.below_unit > 0)
    return make_error(ErrorCode::kBadInput, "all stacks have less than 1 µs", "--unit ns writes them");
  if (!frames)
    return make_error(ErrorCode::kBadInput, "the trace has no Python frames",
                      "record with with_stack=True; --aggregate --leaf op writes operators without frames");
  return make_error(ErrorCode::kBadInput, "no time was spent in the frames of the trace",
                    "stageline info lists its contents");
}

}  // namespace

Result<int> run_export_stacks(const Arguments& given) {
  TRY(terminal, terminal_for(given));
  Arguments arguments = given;
  if (arguments.has("rank") && !arguments.has("ranks")) arguments.set("ranks", arguments.get("rank"));
  TRY(options, options_of(arguments));
  const std::string output = arguments.get("output");
  if (output.empty())
    return make_error(ErrorCode::kUsage, "export-stacks needs to know where to write",
                      "stageline export-stacks TRACE -o stacks.txt; -o - is stdout");
  TRY_OK(check_writable(output, arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands));
  TRY(parts, chosen_parts(*trace));
  const bool file_each = parts->size() > 1 && !options->aggregate && !options->speedscope;
  if (file_each && output == "-")
    return make_error(ErrorCode::kUsage, "a line per event is written to one file per rank, and stdout takes one",
                      "choose a rank with --rank, or add --aggregate, which puts ranks under a frame each");
  StackExportCounts counts;
  OutputSet together;
  std::vector<std::string> wrote;
  for (size_t k = 0; k < (file_each ? parts->size() : 1); ++k) {
    const std::vector<size_t> of = file_each ? std::vector<size_t>{(*parts)[k]} : *parts;
    const std::string path = file_each ? rank_path(output, trace->parts[of[0]].rank) : output;
    TRY(one, export_stacks(*trace, of, *options, path));
    counts.lines += one->lines;
    counts.without_stack += one->without_stack;
    counts.below_unit += one->below_unit;
    counts.below_unit_ns += one->below_unit_ns;
    if (output != "-" && (one->lines > 0 || options->as_torch))
      wrote.push_back(path + "  " + std::to_string(one->lines) + (one->lines == 1 ? " stack" : " stacks"));
  }
  TRY_OK(together.commit());
  for (const std::string& line : wrote) note(*terminal, line);
  print_notes(*terminal, trace->diagnostics, arguments.operands[0]);
  if (counts.lines == 0 && !options->as_torch) return nothing_written(*trace, *parts, options->metric, counts);
  if (counts.lines == 0)
    note(
        *terminal,
        "torch recorded no stacks: it does so only with _ExperimentalConfig(verbose=True); without --stacks torch they "
        "are rebuilt from the frames of with_stack=True");
  if (counts.without_stack > 0)
    note(*terminal, std::to_string(counts.without_stack) + " calls have no Python frame around them and are left out");
  if (counts.below_unit > 0 && !options->as_torch)
    note(*terminal, std::to_string(counts.below_unit) + " stacks of less than 1 µs have no line; " +
                        (options->aggregate ? "their time is in the next one: the lines add up to whole µs"
                                            : ns_as_decimal(counts.below_unit_ns, 3) + " µs in all") +
                        "; --unit ns writes them");
  return kExitGood;
}

}  // namespace stageline
