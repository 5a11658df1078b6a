#include "base/parallel.h"
#include "model/intervals.h"
#include "model/run_extent.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

constexpr int64_t kMaxTogetherNs = int64_t{1} << 60;

// The cells of one rank in one step.
struct Group {
  int32_t step, part;
  size_t begin, end;  // its cells
  Span compute = {};  // of its forwards and backwards
};

class ImpossibleTimes {
 public:
  explicit ImpossibleTimes(const Trace& trace) : cells_(trace.cells), gone_(trace.cells.size(), false) {
    std::vector<std::vector<Group>> of_part(trace.parts.size());
    for (size_t begin = 0, end = 0; begin < cells_.size(); begin = end) {
      while (end < cells_.size() && cells_.step[end] == cells_.step[begin] && cells_.part[end] == cells_.part[begin])
        ++end;
      groups_.push_back({cells_.step[begin], cells_.part[begin], begin, end});
    }
    parallel_for(groups_.size(), [&](size_t g) { see(groups_[g]); });
    for (const Group& group : groups_)
      if (group.step != kUnknown && group.compute.any()) of_part[group.part].push_back(group);
    // Later steps come first, then earlier ones, so that the missing cells of one step do not judge the next one.
    for (std::vector<Group>& steps : of_part) {
      for (size_t g = steps.size(); g-- > 1;)
        judge(steps[g - 1], steps[g], steps[g - 1].compute.end_ns > steps[g].compute.end_ns,
              [&](size_t i) { return cells_.end_ns[i] > steps[g].compute.end_ns; });
      for (size_t g = 1; g < steps.size(); ++g)
        judge(steps[g], steps[g - 1], steps[g].compute.start_ns < steps[g - 1].compute.start_ns,
              [&](size_t i) { return cells_.start_ns[i] < steps[g - 1].compute.start_ns; });
    }
  }

  // Takes out what keeps the sum of all ranks' steps from being exact.
  void bound_sums() {
    std::vector<double> lengths_ns(groups_.size());
    parallel_for(groups_.size(), [&](size_t g) {
      Span kept;
      for (size_t i = groups_[g].begin; i < groups_[g].end; ++i)
        if (!gone_[i]) kept.add(cells_.start_ns[i], cells_.end_ns[i]);
      lengths_ns[g] = static_cast<double>(kept.length_ns());
    });
    const double together = std::accumulate(lengths_ns.begin(), lengths_ns.end(), 0.0);
    if (together <= kMaxTogetherNs) return;
    const int64_t share = kMaxTogetherNs / std::ssize(groups_);
    std::vector<int64_t> starts;
    for (const Group& group : groups_) {
      starts.assign(cells_.start_ns.begin() + group.begin, cells_.start_ns.begin() + group.end);
      const int64_t middle = at_share(starts, 2, 4);
      for (size_t i = group.begin; i < group.end; ++i)
        if (cells_.dur_ns(i) > share || between_ns(middle, cells_.start_ns[i]) > share ||
            between_ns(cells_.start_ns[i], middle) > share)
          gone_[i] = true;
    }
  }

  const std::vector<bool>& gone() const { return gone_; }

 private:
  void see(Group& group) const {
    group.compute = {};
    for (size_t i = group.begin; i < group.end; ++i)
      if (is_compute(cells_.kind[i]) && !gone_[i]) group.compute.add(cells_.start_ns[i], cells_.end_ns[i]);
  }
  static int64_t at_share(std::vector<int64_t>& values, size_t part, size_t of) {
    const auto at = values.begin() + (values.size() - 1) * part / of;
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  std::vector<int64_t> compute(const Group& group, const std::vector<int64_t>& stamps) const {
    std::vector<int64_t> found;
    for (size_t i = group.begin; i < group.end; ++i)
      if (is_compute(cells_.kind[i])) found.push_back(stamps[i]);
    return found;
  }
  // Returns true if the rank did the two one after the other: three quarters of the earlier one were over before three
  // quarters of the later one began.
  bool follow(const Group& a, const Group& b) const {
    const Group &before = a.step < b.step ? a : b, &next = a.step < b.step ? b : a;
    std::vector<int64_t> ends = compute(before, cells_.end_ns), starts = compute(next, cells_.start_ns);
    return at_share(ends, 3, 4) <= at_share(starts, 1, 4);
  }
  std::tuple<CellKind, int32_t, int32_t> work(size_t i) const {
    return {cells_.kind[i], cells_.chunk[i], cells_.micro_batch[i]};
  }
  // Takes those cells out of `group` that lie outside of what `beside` allows.
  template <class Outside> void judge(Group& group, const Group& beside, bool suspicious, const Outside& outside) {
    if (!suspicious || !follow(group, beside)) return;
    // Work that a step does twice was done again after a return to an earlier step, which is another matter.
    std::map<std::tuple<CellKind, int32_t, int32_t>, int64_t> times;
    for (size_t i = group.begin; i < group.end; ++i) ++times[work(i)];
    for (size_t i = group.begin; i < group.end; ++i)
      if (is_compute(cells_.kind[i]) && outside(i) && times.at(work(i)) == 1) gone_[i] = true;
    see(group);
  }

  const Cells& cells_;
  std::vector<bool> gone_;
  std::vector<Group> groups_;  // all cells
};

}  // namespace

void drop_impossible_times(Trace& trace) {
  ImpossibleTimes times(trace);
  times.bound_sums();
  const std::vector<bool>& gone = times.gone();
  const auto first = std::ranges::find(gone, true);
  if (first == gone.end()) return;
  const Cell cell = trace.cells.at(first - gone.begin());
  const Part& part = trace.parts[cell.part];
  const std::string step = cell.step == kUnknown ? "" : std::to_string(cell.step);
  trace.diagnostics.add(
      problem::cells_impossible_times,
      Args().set("cell", cell_label(cell, cell.chunk > 0)).set("rank", std::to_string(part.rank)).set("step", step),
      {part.source}, std::ranges::count(gone, true));
  for (size_t i = 0; i < gone.size(); ++i)
    if (gone[i] && trace.cells.step[i] != kUnknown) trace.lossy_steps.push_back(trace.cells.step[i]);
  settle_lossy_steps(trace);
  trace.cells.filter([&](size_t i) { return !gone[i]; });
}

}  // namespace stageline
