#include "engine/filter_run.h"

#include "engine/problems.h"
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

// When --ranks, --steps or --range leave nothing of a profiler trace, this is an error that says what there is.
Status check_slices_left(const Trace& trace, const std::string& path) {
  const SliceFilter& filter = trace.slice_filter;
  if (filter.ranks.empty() && !filter.any()) return {};
  const SliceCounts left = count_slices(trace);
  if (left.slices > 0) return {};
  Error error{ErrorCode::kBadInput, "", {path}, ""};
  if (left.parts.empty()) {
    std::vector<int64_t> ranks;
    for (const Part& part : trace.parts) ranks.push_back(part.rank);
    error.what = "none of the ranks named by --ranks is there";
    error.hint = "it has rank" + std::string(ranks.size() == 1 ? " " : "s ") + number_ranges(ranks);
    return error;
  }
  std::vector<int64_t> steps;
  for (const size_t p : left.parts)
    for (const ProfilerStep& step : trace.parts[p].steps) steps.push_back(step.number);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  const bool by_step = filter.first_step != INT64_MIN || filter.last_step != INT64_MAX;
  if (by_step && left.steps.empty()) {
    error.what = steps.empty() ? "--steps: this trace names no steps" : "none of the steps named by --steps is there";
    error.hint = steps.empty() ? "steps are the slices ProfilerStep#N that profiler.step() makes"
                               : "it has steps " + number_ranges(steps);
    return error;
  }
  error.what = "nothing is left of it with these --ranks, --steps and --range";
  error.hint = "--range counts from the first slice of the whole run; stageline info shows its length";
  return error;
}

bool is_wanted(const std::vector<int32_t>& ranks, int32_t rank) {
  return ranks.empty() || std::ranges::binary_search(ranks, rank);
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
  trace.slice_filter.ranks = filter.ranks;
  if (!filter.ranks.empty()) trace.pipelines = extent_of(trace).dp_count;
  if (!profiled) {
    if (!filter.ranks.empty() || by_step) filter_trace(trace, filter.ranks, filter.first_step, filter.last_step);
    if (filter.range) keep_range(trace, *filter.range, first_cell_ns(trace));
    if (trace.cells.size() > 0 || has_flight_calls(trace)) return {};
    const bool filtered = !filter.ranks.empty() || filter.range || by_step;
    if (const std::string name = name_of_a_range(trace); !filtered && !name.empty())
      return make_error(ErrorCode::kBadInput,
                        "no rule reads pipeline work from the names of its ranges, such as \"" + name + "\"",
                        "--cell-rules FILE says what names mean; stageline help cell-rules shows the form", {path});
    return make_error(
        ErrorCode::kBadInput,
        filtered ? "nothing is left of it with these --ranks, --steps and --range" : "it holds no pipeline work",
        "stageline info shows what there is", {path});
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
  return check_slices_left(trace, path);
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
