#include "engine/filter_run.h"

#include "engine/problems.h"
#include "model/run_extent.h"
#include "model/torch_facts.h"
#include "pipeline/cells/link_cells.h"
#include "profile/flight_match.h"

namespace stageline {
namespace {

// Keeps the cells that touch the range, which counts from `zero`. Times do not change.
void keep_range(Trace& trace, const TimeRange& range, int64_t zero) {
  const auto at = [&](int64_t ns) {
    int64_t sum = 0;
    if (__builtin_add_overflow(zero, ns, &sum)) return ns < 0 ? INT64_MIN : INT64_MAX;
    return ns == INT64_MIN || ns == INT64_MAX ? ns : sum;
  };
  const int64_t from = at(range.from_ns), to = at(range.to_ns);
  Cells& cells = trace.cells;
  cells.filter([&](size_t i) {
    return trace.common_ns(cells.part[i], cells.end_ns[i]) >= from &&
           trace.common_ns(cells.part[i], cells.start_ns[i]) <= to;
  });
}

// Returns the time from which --range counts, on the clock that all ranks share.
int64_t first_cell_ns(const Trace& trace) {
  if (trace.cells.size() == 0) return 0;
  int64_t first = INT64_MAX;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    first = std::min(first, trace.common_ns(trace.cells.part[i], trace.cells.start_ns[i]));
  return first;
}

std::string number_ranges(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size(); ++i) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    append_item(out, std::to_string(numbers[i]), ",");
    if (last > i) out += "-" + std::to_string(numbers[last]);
    i = last;
  }
  return out;
}

bool is_wanted(const std::vector<int32_t>& ranks, int32_t rank) {
  return ranks.empty() || std::ranges::binary_search(ranks, rank);
}

// Ranks, steps and length of a run before it is filtered.
struct Whole {
  std::vector<int64_t> ranks, steps;
  int64_t length_ns = 0;
};

Whole whole_of(const Trace& trace, bool profiled) {
  Whole whole;
  std::set<int64_t> steps;
  for (const Part& part : trace.parts) {
    whole.ranks.push_back(part.rank);
    for (const ProfilerStep& step : part.steps) steps.insert(step.number);
  }
  if (!profiled) steps.insert(trace.cells.step.begin(), trace.cells.step.end());
  whole.steps.assign(steps.begin(), steps.end());
  whole.length_ns = recording_ns(trace);
  return whole;
}

// Returns the error for flags that leave nothing: it names the flag, and what there is.
Error nothing_left(const RunFilter& filter, const Whole& had, const std::string& path) {
  Error error{ErrorCode::kBadInput, "nothing is left of it with these --ranks, --steps and --range", {path}, ""};
  const bool by_step = filter.first_step != INT64_MIN || filter.last_step != INT64_MAX;
  const auto in_steps = [&](int64_t step) { return step >= filter.first_step && step <= filter.last_step; };
  if (std::ranges::none_of(had.ranks,
                           [&](int64_t rank) { return is_wanted(filter.ranks, static_cast<int32_t>(rank)); })) {
    error.what = "none of the ranks named by --ranks is there";
    error.hint = "it has rank" + std::string(had.ranks.size() == 1 ? " " : "s ") + number_ranges(had.ranks);
  } else if (by_step && std::ranges::none_of(had.steps, in_steps)) {
    error.what =
        had.steps.empty() ? "--steps: this trace names no steps" : "none of the steps named by --steps is there";
    error.hint = had.steps.empty() ? "steps are the slices ProfilerStep#N that profiler.step() makes"
                                   : "it has steps " + number_ranges(had.steps);
  } else {
    error.hint = "--range counts from the first start of the whole run, which lasts " +
                 human_duration(static_cast<double>(had.length_ns));
  }
  return error;
}

// True for profiles without ProfilerSteps whose cells count their own steps; those numbers mean nothing to slices.
bool steps_are_of_cells(const Trace& trace) {
  return trace.cells.size() > 0 &&
         std::ranges::all_of(trace.parts, [](const Part& part) { return part.steps.empty(); });
}

// Returns a range's name in a recording whose ranges have only names (NVTX, mstx); "" when there is none.
std::string name_of_a_range(const Trace& trace) {
  for (const Part& part : trace.parts)
    if (!part.ranges.empty()) return std::string(trace.names.text(part.ranges.front().message));
  return {};
}

}  // namespace

Status filter_run(Trace& trace, const RunFilter& filter, bool profiled, const std::string& path) {
  const bool by_step = filter.first_step != INT64_MIN || filter.last_step != INT64_MAX;
  const bool filtered = !filter.ranks.empty() || filter.range || by_step;
  const Whole whole = filtered ? whole_of(trace, profiled) : Whole();
  trace.slice_filter.ranks = filter.ranks;
  if (!filter.ranks.empty()) trace.pipelines = extent_of(trace).dp_count;
  if (!profiled) {
    if (!filter.ranks.empty() || by_step) filter_trace(trace, filter.ranks, filter.first_step, filter.last_step);
    if (filter.range) keep_range(trace, *filter.range, first_cell_ns(trace));
    if (trace.cells.size() > 0 || has_flight_calls(trace)) return {};
    if (filtered) return nothing_left(filter, whole, path);
    if (const std::string name = name_of_a_range(trace); !name.empty())
      return make_error(ErrorCode::kBadInput,
                        "no rule reads pipeline work from the names of its ranges, such as \"" + name + "\"",
                        "--cell-rules FILE says what names mean; stageline help cell-rules shows the form", {path});
    return make_error(ErrorCode::kBadInput, "it holds no pipeline work", "stageline info shows what there is", {path});
  }
  const bool of_cells = by_step && steps_are_of_cells(trace);
  if (!filter.ranks.empty() || by_step)
    trace.cells.filter([&](size_t i) {
      const int32_t step = trace.cells.step[i];
      return is_wanted(filter.ranks, trace.parts[trace.cells.part[i]].rank) &&
             ((step >= filter.first_step && step <= filter.last_step) ||
              (step == kUnknown && filter.first_step == INT64_MIN));
    });
  if (filter.range) keep_range(trace, *filter.range, first_start_ns(trace));
  if (!of_cells) {
    trace.slice_filter.first_step = filter.first_step;
    trace.slice_filter.last_step = filter.last_step;
  } else {
    trace.diagnostics.add(problem::filter_steps_of_cells);
  }
  if (filter.range) {
    trace.slice_filter.from_ns = filter.range->from_ns;
    trace.slice_filter.to_ns = filter.range->to_ns;
  }
  if (filtered && count_slices(trace).slices == 0) return nothing_left(filter, whole, path);
  return {};
}

bool has_other_ranks(const Trace& trace) {
  return std::ranges::any_of(trace.parts,
                             [&](const Part& part) { return !is_wanted(trace.slice_filter.ranks, part.rank); });
}

void drop_other_ranks(Trace& trace) {
  const std::vector<int32_t> ranks = trace.slice_filter.ranks;
  filter_trace(trace, ranks, INT64_MIN, INT64_MAX);
  if (trace.cells.size() > 0) link_cells(trace);
}

}  // namespace stageline
