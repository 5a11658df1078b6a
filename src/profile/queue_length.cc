#include "profile/queue_length.h"

#include "model/intervals.h"
#include "model/numpy_order.h"
#include "profile/problems.h"

namespace stageline {
namespace {

constexpr std::array<std::string_view, 12> kHtaLaunches = {
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel",      "cuLaunchKernelEx",
    "cudaMemcpyAsync",  "cudaMemsetAsync",     "hipLaunchKernel",     "hipExtModuleLaunchKernel",
    "hipMemcpyAsync",   "hipMemsetAsync",      "hipMemcpyWithStream", "runFunction - job_prep_and_submit_for_execution",
};

// A call or a device row in the table that HTA sorts.
struct Step {
  uint32_t row;
  uint32_t device_row;  // the device row on whose stream it counts; kNoSliceIndex for none
  int8_t change;
};

}  // namespace

std::vector<StreamQueue> stream_queues(const TorchRun& run, const TorchRank& rank) {
  struct Changes {
    std::vector<StepChange> waiting, in_flight;
    int64_t early = 0, unlaunched = 0;
    uint32_t launch = kNoSliceIndex;  // of the row before, which ends at end_ns
    int64_t end_ns = 0;
    void end_launch() {
      if (launch != kNoSliceIndex) in_flight.push_back({end_ns, -1});
      launch = kNoSliceIndex;
    }
  };
  const Part& part = *rank.part;
  std::map<std::pair<std::string_view, int64_t>, Changes> streams;
  Changes* changes = nullptr;
  uint32_t lane = UINT32_MAX;
  int64_t stream = 0;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    if (changes == nullptr || row.lane != lane || row.stream != stream) {
      lane = row.lane;
      stream = row.stream;
      changes = &streams[{part.lanes[row.lane].pid, row.stream}];
    }
    const uint32_t launch = part.slices.partner[row.slice];
    if (launch == kNoSliceIndex) {
      ++changes->unlaunched;
      continue;
    }
    if (launch == changes->launch) {
      changes->end_ns = std::max(changes->end_ns, row.end_ns());
      continue;
    }
    changes->end_launch();
    changes->launch = launch;
    changes->end_ns = row.end_ns();
    const int64_t called = part.slices.start_ns[launch] - run.zero_ns;
    if (called > row.start_ns) ++changes->early;
    const int64_t from = std::min(called, row.start_ns);
    if (from < row.start_ns) {
      changes->waiting.push_back({from, 1});
      changes->waiting.push_back({row.start_ns, -1});
    }
    changes->in_flight.push_back({from, 1});
  }
  std::vector<StreamQueue> out;
  for (auto& [key, own] : streams) {
    own.end_launch();
    out.push_back({std::string(key.first), key.second, series_of(std::move(own.waiting)),
                   series_of(std::move(own.in_flight)), own.early, own.unlaunched});
  }
  return out;
}

Result<std::vector<QueuePoint>> hta_queue_points(const TorchRun& run, const TorchRank& rank) {
  std::vector<bool> launches(run.trace->names.size());
  for (StringId id = 0; id < launches.size(); ++id)
    launches[id] = std::ranges::find(kHtaLaunches, run.trace->names.text(id)) != kHtaLaunches.end();
  const auto is_call = [&](const TorchRow& row) { return launches[row.name] && row.partner_index > 0; };

  std::vector<int64_t> called;  // the calls' correlations
  for (const TorchRow& row : rank.rows)
    if (is_call(row)) called.push_back(row.correlation);
  std::ranges::sort(called);
  std::vector<std::pair<int64_t, uint32_t>> work;  // device rows with these, by correlation, then in table order
  std::vector<Step> starts;
  for (uint32_t i = 0; i < rank.rows.size(); ++i) {
    const TorchRow& row = rank.rows[i];
    if (!row.on_device || !std::ranges::binary_search(called, row.correlation)) continue;
    work.emplace_back(row.correlation, i);
    starts.push_back({i, i, -1});
  }
  std::ranges::sort(work);
  std::vector<Step> steps;
  steps.reserve(starts.size() * 2);
  for (uint32_t i = 0; i < rank.rows.size(); ++i) {
    if (!is_call(rank.rows[i])) continue;
    const int64_t correlation = rank.rows[i].correlation;
    auto it = std::lower_bound(work.begin(), work.end(), std::pair<int64_t, uint32_t>(correlation, 0));
    if (it == work.end() || it->first != correlation) steps.push_back({i, kNoSliceIndex, 1});
    for (; it != work.end() && it->first == correlation; ++it) steps.push_back({i, it->second, 1});
  }
  if (steps.size() != starts.size())
    return make_error(ErrorCode::kBadInput, "AssertionError: ",
                      "HTA asserts that launches and device rows pair up; in rank " + std::to_string(rank.rank) +
                          " there are " + std::to_string(steps.size()) + " and " + std::to_string(starts.size()) +
                          "; without --compat hta each device row is paired with its own launch");
  steps.insert(steps.end(), starts.begin(), starts.end());

  const auto start = [&](const Step& step) { return rank.rows[step.row].start_ns; };
  sort_as_numpy(steps, start);
  std::vector<QueuePoint> points;
  points.reserve(steps.size());
  for (const Step& step : steps) {
    if (step.device_row == kNoSliceIndex) continue;
    const TorchRow& device = rank.rows[step.device_row];
    points.push_back({start(step), rank.rows[step.row].index, device.stream, device.lane, step.change});
  }
  sort_stably(points, {}, &QueuePoint::stream);
  for (size_t i = 1; i < points.size(); ++i)
    if (points[i].stream == points[i - 1].stream) points[i].length += points[i - 1].length;
  return points;
}

Result<std::vector<std::vector<QueuePoint>>> hta_queues(const TorchRun& run) {
  return try_ranks(run, [&](const TorchRank& rank) { return hta_queue_points(run, rank); });
}

void note_queue_flaws(const std::vector<StreamQueue>& queues, Diagnostics& notes) {
  for (const StreamQueue& q : queues) {
    notes.add(problem::queue_early_start, {}, q.early);
    notes.add(problem::queue_no_launch, {}, q.unlaunched);
  }
}

std::vector<QueueRange> streams_of(const std::vector<QueuePoint>& points) {
  std::vector<QueueRange> ranges;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || points[i].stream != points[i - 1].stream) ranges.push_back({i, i});
    ranges.back().end = i + 1;
  }
  return ranges;
}

std::vector<FullQueue> full_queues(const TorchRank& rank, const std::vector<StreamQueue>& queues, int64_t max) {
  Span recorded;
  for (const TorchRow& row : rank.rows) recorded.add(row.start_ns, row.end_ns());
  std::vector<FullQueue> out;
  for (const StreamQueue& q : queues) {
    if (q.in_flight.size() == 0) continue;
    const int64_t longest = q.waiting.size() == 0 ? 0 : *std::ranges::max_element(q.waiting.value);
    out.push_back({q.device, q.stream, longest, time_at_least(q.waiting, max), recorded.length_ns()});
  }
  return out;
}

}  // namespace stageline
