#include "profile/device_time.h"

#include <algorithm>
#include <vector>

#include "model/intervals.h"

namespace stageline {

namespace {

// Returns the time between two recordings, in which devices may have worked: the span excludes it. `work` is a
// union.
int64_t unrecorded_ns(const std::vector<Interval>& work, const Part& part, int64_t zero_ns) {
  int64_t sum = 0;
  for (size_t i = 1; i < work.size(); ++i)
    if (part.recorded_anew(zero_ns + work[i - 1].end, zero_ns + work[i].start)) sum += work[i].start - work[i - 1].end;
  return sum;
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

}  // namespace stageline
