#include "profile/device_time.h"

#include <algorithm>
#include <vector>

#include "model/intervals.h"
#include "model/lost_work.h"

namespace stageline {

DeviceTime device_time(const TorchRun& run, const TorchRank& rank) {
  std::vector<Interval> all, compute, communication;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const TorchRow& row : rank.rows) {
    if (row.on_device || is_host(row.category)) {
      first = std::min(first, row.start_ns);
      last = std::max(last, row.end_ns());
    }
    if (!row.on_device) continue;
    all.push_back({row.start_ns, row.end_ns()});
    if (row.kernel == KernelClass::kComputation) compute.push_back(all.back());
    if (row.kernel == KernelClass::kCommunication) communication.push_back(all.back());
  }
  DeviceTime t;
  t.rank = rank.rank;
  t.any = !all.empty();
  if (!t.any) return t;
  all = union_of(std::move(all));
  compute = union_of(std::move(compute));
  communication = union_of(std::move(communication));
  t.span_ns = all.back().end - all.front().start;
  t.outside_ns = all.front().start - first + last - all.back().end;
  for (size_t i = 1; i < all.size() && !run.options.hta; ++i)
    if (rank.part->recorded_anew(run.zero_ns + all[i - 1].end, run.zero_ns + all[i].start))
      t.span_ns -= all[i].start - all[i - 1].end;
  t.idle_ns = t.span_ns - length_of(all);
  t.compute_ns = length_of(compute);
  t.communication_ns = length_of(communication);
  t.overlap_ns = shared_length(communication, compute);
  return t;
}

std::vector<bool> lacks_kernels(const TorchRun& run) {
  std::vector<bool> lacks;
  for (const size_t part : run.parts) lacks.push_back(kernels_are_missing(run.trace->parts[part]));
  if (std::find(lacks.begin(), lacks.end(), false) == lacks.end()) lacks.assign(lacks.size(), false);
  return lacks;
}

}  // namespace stageline
