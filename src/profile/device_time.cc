#include "profile/device_time.h"

#include "model/intervals.h"

namespace stageline {
namespace {

// Returns the time between two recordings, in which devices may have worked: the span excludes it. `work` is a union.
int64_t unrecorded_ns(const std::vector<Interval>& work, const Part& part, int64_t zero_ns) {
  int64_t sum = 0;
  for (size_t i = 1; i < work.size(); ++i)
    if (part.recorded_anew(zero_ns + work[i - 1].end, zero_ns + work[i].start)) sum += work[i].start - work[i - 1].end;
  return sum;
}

// Returns what the devices did in each step of the part. Work belongs to the step that launched it.
std::vector<Span> work_of_steps(const Trace& trace, const Part& part) {
  std::vector<Span> steps(part.steps.size());
  const Slices& s = part.slices;
  if (s.step.empty()) return steps;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s.step[i] == 0 || !is_device_work(trace.categories[s.category_id[i]].kind)) continue;
    steps[s.step[i] - 1u].add(s.start_ns[i], s.end_ns(i));
  }
  return steps;
}

// The host may run ahead and block later, so its rows say little about the length of a step. Devices work in order, so
// they spent on this step the time from the last end of the step before to the last end of this one.
int64_t device_length(const Part& part, const std::vector<Span>& work, size_t k) {
  const bool follows = k > 0 && work[k - 1].any() && part.steps[k].number == part.steps[k - 1].number + 1 &&
                       !part.recorded_anew(work[k - 1].end_ns, work[k].start_ns);
  return std::max<int64_t>(0, work[k].end_ns - (follows ? work[k - 1].end_ns : work[k].start_ns));
}

}  // namespace

DeviceTime device_time(const TorchRun& run, const TorchRank& rank) {
  std::vector<Interval> all, compute, communication;
  Span recorded;
  for (const TorchRow& row : rank.rows) {
    if (row.on_device || is_host(row.category)) recorded.add(row.start_ns, row.end_ns());
    if (!row.on_device) continue;
    all.push_back({row.start_ns, row.end_ns()});
    if (row.kernel == KernelClass::kComputation) compute.push_back(all.back());
    if (row.kernel == KernelClass::kCommunication) communication.push_back(all.back());
  }
  DeviceTime t{.rank = rank.rank, .any = !all.empty()};
  if (!t.any) return t;
  all = union_of(std::move(all));
  compute = union_of(std::move(compute));
  communication = union_of(std::move(communication));
  t.span_ns = all.back().end - all.front().start;
  t.outside_ns = all.front().start - recorded.start_ns + recorded.end_ns - all.back().end;
  if (!run.options.hta) t.span_ns -= unrecorded_ns(all, *rank.part, run.zero_ns);
  t.idle_ns = t.span_ns - length_of(all);
  t.compute_ns = length_of(compute);
  t.communication_ns = length_of(communication);
  t.overlap_ns = shared_length(communication, compute);
  return t;
}

std::vector<DeviceStep> device_steps(const TorchRun& run, size_t p) {
  const Part& part = run.trace->parts[p];
  const SliceFilter& filter = run.trace->slice_filter;
  const std::vector<Span> work = work_of_steps(*run.trace, part);
  const bool drops = run.drops_last_step && part.steps.size() >= 2;
  std::vector<DeviceStep> out;
  for (size_t k = 0; k < part.steps.size(); ++k) {
    const ProfilerStep& step = part.steps[k];
    if (drops && step.start_ns >= part.steps.back().start_ns) continue;
    if (step.number < filter.first_step || step.number > filter.last_step) continue;
    DeviceStep d{part.rank, step.number, step.start_ns - run.zero_ns, step.end_ns - step.start_ns};
    d.any = work[k].any();
    if (d.any) {
      d.start_ns = work[k].start_ns - run.zero_ns;
      d.end_ns = work[k].end_ns - run.zero_ns;
      d.length_ns = device_length(part, work, k);
    }
    out.push_back(d);
  }
  return out;
}

}  // namespace stageline
