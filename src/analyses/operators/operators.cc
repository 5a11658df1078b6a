// Time, memory and FLOPs by operator, as torch.profiler's key_averages() groups them.
// Definitions, and where torch's own table differs: docs/analyses/operators.md.
#include "analyses/analysis.h"
#include "analyses/operators/problems.h"
#include "compat/torch_tables/torch_table.h"
#include "model/message_names.h"
#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/operator_groups.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using operators::Group;
using operators::GroupOptions;
using operators::OperatorGroups;
using operators::SortKey;
using operators::TorchTableOptions;

struct Options {
  GroupOptions grouping;
  TorchTableOptions torch;
  SortKey sort = SortKey::kNone;
  int64_t row_limit = -1;
  bool top_level_events_only = false;
};

// Limit for a row, so that the table's size stays linear in the number of events.
constexpr int64_t kMaxStackEntries = 100;

// These options affect torch's table alone and are ignored otherwise.
constexpr std::array<std::string_view, 6> kTorchOnly = {
    "time-unit",        "header", "max-src-column-width", "max-name-column-width", "max-shapes-column-width",
    "memory-unit-style"};

Status read_torch_options(const AnalysisInput& input, TorchTableOptions& torch) {
  const AnalysisOptions& given = input.options;
  for (const std::string_view name : kTorchOnly)
    if (!input.foreign && given.has(name))
      return make_error(ErrorCode::kUsage, "--" + std::string(name) + " shapes torch's own table",
                        "add --format torch; ours has raw values in csv and json");
  constexpr int64_t kWidest = 100'000;
  for (const auto& [name, width] : {std::pair{"max-src-column-width", &torch.max_src_column_width},
                                    {"max-name-column-width", &torch.max_name_column_width},
                                    {"max-shapes-column-width", &torch.max_shapes_column_width}}) {
    if (given.text(name) == "none") {
      *width = INT64_MAX;
      continue;
    }
    TRY_OK(take(given.integer(name, *width, 0, kWidest), *width));
  }
  if (given.has("header")) torch.header = given.text("header");
  torch.time_unit = given.text("time-unit");
  torch.old_memory_units = given.text("memory-unit-style", "GB") == "Gb";
  return {};
}

// "self_cuda_time_total" gives kSelfDevice. Errors: kUsage with the list of keys.
Result<SortKey> sort_key(std::string_view name) {
  if (name.empty()) return SortKey::kNone;
  std::string key(name);
  std::ranges::replace(key, '-', '_');
  for (const std::string_view device : {"cuda", "xpu", "privateuse1"})
    for (size_t at = key.find(device); at != std::string::npos; at = key.find(device, at + 6))
      key.replace(at, device.size(), "device");
  static constexpr std::pair<std::string_view, SortKey> kKeys[] = {
#define SORT_KEY(key, torch, ...) {torch, SortKey::key},
#include "compat/torch_tables/sort_keys.def"
      {"key", SortKey::kName},
      {"name", SortKey::kName},
#define SORT_KEY(key, torch, own, ...) {own, SortKey::key},
#include "compat/torch_tables/sort_keys.def"
  };
  std::string list;
  for (const auto& [known, value] : kKeys) {
    if (key == known) return value;
    if (!known.empty()) append_item(list, known);
  }
  return make_error(ErrorCode::kUsage, "--sort-by knows no \"" + std::string(name) + "\"",
                    "it knows " + list + "; cuda and xpu stand for device too");
}

// Returns true when a top-level member of the trace records that an option of the profiler was on: "profile_memory",
// "with_flops".
bool says(const Trace& trace, std::string_view key) {
  return std::ranges::any_of(trace.parts, [&](const Part& part) {
    const std::string_view json = meta_json(part, key);
    return json == "1" || json == "true";
  });
}

// Errors: kUsage naming the option. Torch's own options are refused without --format torch.
Result<Options> read_options(const AnalysisInput& input) {
  const AnalysisOptions& given = input.options;
  Options options;
  GroupOptions& grouping = options.grouping;
  const auto flag = [&](const char* name, bool fallback, bool& to) -> Status {
    TRY_OK(take(given.flag(name, fallback), to));
    return {};
  };
  grouping.events.as_torch = input.foreign;
  TRY_OK(flag("group-by-input-shape", false, grouping.by_input_shape));
  TRY_OK(flag("group-by-overload-name", false, grouping.by_overload_name));
  TRY_OK(flag("include-python-functions", false, grouping.events.python_frames));
  if (input.foreign) grouping.hide_frames = !std::exchange(grouping.events.python_frames, true);
  TRY_OK(flag("with-flops", says(*input.trace, "with_flops"), grouping.with_flops));
  TRY_OK(flag("top-level-events-only", false, options.top_level_events_only));
  TRY_OK(take(given.integer("group-by-stack-n", 0, 0, kMaxStackEntries), grouping.stack_entries));
  grouping.recorded_stacks = given.text("stacks", input.foreign ? "torch" : "rebuilt") == "torch";
  TRY_OK(take(given.integer("row-limit", input.foreign ? 100 : -1), options.row_limit));
  TRY_OK(take(sort_key(given.text("sort-by")), options.sort));
  TRY_OK(read_torch_options(input, options.torch));
  options.torch.sort = options.sort;
  options.torch.row_limit = options.row_limit;
  options.torch.top_level_events_only = options.top_level_events_only;
  options.torch.with_flops = grouping.with_flops;
  return options;
}

constexpr size_t kMaxStackText = 16'384;  // bytes of a row's stack: a hundred frames of the usual length
constexpr size_t kReportRows = 200, kReportRowsPerRank = 40;  // the larger of the two limits applies, over all ranks

struct RankAnswer {
  int32_t rank = 0;
  OperatorGroups groups;            // keeps only the first event of each group
  std::vector<std::string> stacks;  // for each group; empty unless asked for
  // Self times of all rows; device: only work, because annotations cover the same time again.
  int64_t host_ns = 0, device_ns = 0;
  bool has_memory = false;
};

// Returns the name that torch would have used for the device. It is not in the trace, so it is found from categories.
std::string torch_device_name(const Trace& trace, const Part& part, const OperatorGroups& groups) {
  for (const FunctionEvent& e : groups.made.events) {
    if (!e.on_device) continue;
    if (e.category == Category::kMtiaWork) return "mtia";
    for (const CategoryInfo& category : trace.categories)
      if (category.text.starts_with("xpu_")) return "xpu";
    return "cuda";
  }
  const std::string_view devices = meta_json(part, "deviceProperties");
  return devices.find('{') != std::string_view::npos ? "cuda" : "";
}

Result<AnalysisResult> torch_answer(const Trace& trace, const TorchRun& run, Options options) {
  if (run.parts.size() > 1) {
    std::string ranks;
    for (size_t k = 0; k < run.parts.size() && k < 8; ++k)
      ranks += (k > 0 ? ", " : "") + std::to_string(run.ranks[run.parts[k]]);
    return make_error(
        ErrorCode::kUsage,
        "torch's table is of one process, and there are " + std::to_string(run.parts.size()) + " ranks here",
        "choose one with --ranks: " + ranks + (run.parts.size() > 8 ? ", …" : ""));
  }
  const Part& part = trace.parts[run.parts[0]];
  const FunctionNames names(trace);
  const OperatorGroups groups = operators::group_events(trace, part, names, options.grouping);
  options.torch.profile_memory = !part.memory.empty() || says(trace, "profile_memory");
  options.torch.use_device = torch_device_name(trace, part, groups);
  AnalysisResult result;
  result.foreign = operators::torch_table(part, trace, names, groups, options.grouping, options.torch);
  if (options.grouping.stack_entries > 0 && options.grouping.recorded_stacks && part.stacks.empty())
    result.notes.add(problem::operators_no_stacks_torch);
  return result;
}

std::string_view kind_of(const FunctionEvent& e, std::string_view name) {
  if (e.slice == kNoSliceIndex) return "memory";
  if (e.category == Category::kCpuOp && is_communication_call(name)) return "communication";
  static constexpr auto kTexts = texts_by<Category::kSpan>(
      {"device work", "operator", "annotation", "frame", "runtime call", "driver call", "overhead", "kernel", "copy",
       "memset", "device work", "wait", "device work", "annotation on device", "profiler range", "device work",
       "device work", "device work"});
  return kTexts[e.category];
}

std::string stack_text(const OperatorGroups& groups, const Group& group, int64_t entries) {
  std::string out;
  for (const std::string_view entry : groups.stacks.entries(group.stack, entries)) {
    if (out.size() > kMaxStackText) return out + "; …";
    (out += out.empty() ? "" : "; ") += entry;
  }
  return out;
}

// Drops all events of a rank but the first of each group, once the rows are known. So memory holds only the ranks in
// work, and rows.
void keep_first_events(OperatorGroups& groups) {
  std::vector<FunctionEvent> first;
  first.reserve(groups.groups.size());
  for (Group& group : groups.groups) {
    first.push_back(groups.first_of(group));
    group.first = static_cast<uint32_t>(first.size() - 1);
  }
  groups.made = FunctionEvents();
  groups.made.events = std::move(first);
  groups.group_of = {};
  groups.stacks = PythonStacks();
}

RankAnswer answer_for(const Trace& trace, const TorchRun& run, size_t p, const FunctionNames& names,
                      const GroupOptions& grouping) {
  RankAnswer answer{.rank = run.ranks[p], .groups = operators::group_events(trace, trace.parts[p], names, grouping)};
  answer.has_memory = !answer.groups.made.memory.empty();
  for (const FunctionEvent& e : answer.groups.made.events) {
    answer.host_ns += e.self_host_ns;
    if (is_device_work(e.category)) answer.device_ns += e.self_device_ns;
  }
  if (grouping.stack_entries > 0)
    for (const Group& group : answer.groups.groups)
      answer.stacks.push_back(stack_text(answer.groups, group, grouping.stack_entries));
  keep_first_events(answer.groups);
  return answer;
}

struct Line {
  const RankAnswer* rank = nullptr;
  const Group* group = nullptr;
  double by = 0, then_by = 0;
};

double sort_value(const Group& g, SortKey key) {
  switch (key) {
#define SORT_KEY(key, torch, own, of_group, of_row) \
  case SortKey::key: return of_group;
#include "compat/torch_tables/sort_keys.def"
    default: return 0;
  }
}

std::vector<Line> sorted_lines(const std::vector<RankAnswer>& ranks, const FunctionNames& names,
                               const Options& options) {
  std::vector<Line> lines;
  bool any_device = false;
  for (const RankAnswer& answer : ranks) {
    any_device |= answer.device_ns > 0;
    for (const Group& group : answer.groups.groups)
      if (!options.top_level_events_only || answer.groups.first_of(group).parent < 0)
        lines.push_back({&answer, &group});
  }
  const SortKey key = options.sort != SortKey::kNone ? options.sort
                      : any_device                   ? SortKey::kSelfDevice
                                                     : SortKey::kSelfHost;
  for (Line& line : lines) {
    line.by = sort_value(*line.group, key);
    line.then_by = options.sort == SortKey::kNone ? static_cast<double>(line.group->self_host_ns) : 0;
  }
  const auto name = [&](const Line& line) { return names.text(line.rank->groups.first_of(*line.group).name); };
  sort_stably(lines, [&](const Line& a, const Line& b) {
    if (key == SortKey::kName) return name(a) < name(b);
    return a.by != b.by ? a.by > b.by : a.then_by > b.then_by;
  });
  return lines;
}

TableSpec spec_for(const Options& options, bool memory) {
  const GroupOptions& by = options.grouping;
  TableSpec spec = declared_table("operators/operators");
  const std::vector<ColumnSpec>& more = declared_table("operators/operators/more").columns;
  const bool wanted[] = {by.by_overload_name, memory, memory, memory, memory, by.with_flops, by.by_input_shape,
                         by.stack_entries > 0};
  for (size_t i = 1; i < more.size(); ++i)
    if (wanted[i]) spec.columns.push_back(more[i]);
  if (wanted[0]) spec.columns.insert(spec.columns.begin() + 3, more[0]);  // the overload stands behind the name's kind
  return spec;
}

Table our_table(const std::vector<RankAnswer>& ranks, const FunctionNames& names, const Options& options,
                size_t max_rows) {
  const bool memory = std::ranges::any_of(ranks, [](const RankAnswer& r) { return r.has_memory; });
  const GroupOptions& by = options.grouping;
  const std::vector<Line> lines = sorted_lines(ranks, names, options);
  TableSpec spec = spec_for(options, memory);
  if (lines.size() > max_rows)
    spec.title += ", the first " + std::to_string(max_rows) + " of " + std::to_string(lines.size()) + " rows";
  Table table(std::move(spec));
  for (const Line& line : lines) {
    if (table.row_count() == max_rows) break;
    const Group& g = *line.group;
    const OperatorGroups& groups = line.rank->groups;
    const FunctionEvent& first = groups.first_of(g);
    const auto mean = [&](int64_t sum) { return std::llround(sum / static_cast<double>(g.count)); };
    std::vector<Table::Value> row = {int64_t{line.rank->rank}, std::string(names.text(first.name)),
                                     std::string(kind_of(first, names.text(first.name)))};
    if (by.by_overload_name) row.emplace_back(std::string(g.overload == 0 ? "" : names.overload(g.overload)));
    row.emplace_back(g.count);
    row.emplace_back(g.self_host_ns);
    row.emplace_back(share_of(g.self_host_ns, line.rank->host_ns));
    row.emplace_back(g.host_ns);
    row.emplace_back(int64_t{mean(g.host_ns)});
    row.emplace_back(g.self_device_ns);
    row.emplace_back(share_of(g.self_device_ns, line.rank->device_ns));
    row.emplace_back(g.device_ns);
    row.emplace_back(int64_t{mean(g.device_ns)});
    if (memory)
      for (const int64_t bytes : {g.bytes.host, g.bytes.self_host, g.bytes.device, g.bytes.self_device})
        row.emplace_back(bytes);
    if (by.with_flops) row.emplace_back(g.flops);
    if (by.by_input_shape) row.emplace_back(groups.shapes[g.shape]);
    if (by.stack_entries > 0) row.emplace_back(line.rank->stacks[&g - groups.groups.data()]);
    table.add_row(std::move(row));
  }
  return table;
}

// Adds notes on what was asked for but is not in the trace.
void note_missing(const Trace& trace, const TorchRun& run, const GroupOptions& by, Diagnostics& notes) {
  const auto none = [&](auto&& empty) {
    return std::ranges::all_of(run.parts, [&](size_t p) { return empty(trace.parts[p]); });
  };
  if ((by.by_input_shape || by.with_flops) && none([](const Part& p) { return p.inputs.empty(); }))
    notes.add(problem::operators_no_shapes);
  if (by.stack_entries == 0) return;
  const auto has_frames = [&](const Part& part) {
    return std::ranges::any_of(part.slices.category_id,
                               [&](uint8_t c) { return trace.categories[c].kind == Category::kPythonFunction; });
  };
  if (none([&](const Part& p) { return p.stacks.empty() && (by.recorded_stacks || !has_frames(p)); }))
    notes.add(problem::operators_no_stacks, Args().flag("recorded", by.recorded_stacks));
}

}  // namespace

Result<AnalysisResult> run_operators(const AnalysisInput& input) {
  TRY(options, read_options(input));
  const Trace& trace = *input.trace;
  TRY(torch, make_torch_run(trace, {.hta = false, .include_last_step = true}));
  if (input.foreign) return torch_answer(trace, *torch, std::move(*options));
  const FunctionNames names(trace);
  std::vector<RankAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = answer_for(trace, *torch, torch->parts[k], names, options->grouping); });
  size_t max_rows = options->row_limit < 0 ? SIZE_MAX : static_cast<size_t>(options->row_limit);
  if (input.brief) max_rows = std::min(max_rows, std::max(kReportRows, kReportRowsPerRank * ranks.size()));
  AnalysisResult result;
  result.tables.push_back(our_table(ranks, names, *options, max_rows));
  note_missing(trace, *torch, options->grouping, result.notes);
  if (std::ranges::all_of(ranks, [](const RankAnswer& r) { return r.groups.groups.empty(); }))
    result.notes.add(problem::operators_none);
  return result;
}

}  // namespace stageline
