#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

const CounterSeries* clock_series(const Part& part) {
  const auto found = std::ranges::find_if(part.counters, [](const CounterSeries& series) {
    return !series.time_ns.empty() &&
           (series.name.ends_with("AI Core / freq") || series.name.ends_with("SM Clock (MHz)"));
  });
  return found == part.counters.end() ? nullptr : &*found;
}

bool computes(const Slices& slices, size_t i) {
  return i < slices.kernel_class.size() && slices.class_of(i) == KernelClass::kComputation;
}

struct Kernels {
  double ns = 0;
  int64_t count = 0;
};
// By name, and shapes where they were recorded.
using KernelKey = std::pair<StringId, StringId>;

// Calls take(slice, key) for kernels that compute; of steps alone, where the rank has steps.
template <class Take> void for_each_kernel(const Part& part, Take take) {
  for (uint32_t i = 0; i < part.slices.size(); ++i) {
    if (!computes(part.slices, i) || (!part.steps.empty() && part.slices.step[i] == 0)) continue;
    const InputFact* input = fact_of(part.inputs, i);
    const uint32_t owner = i < part.slices.parent.size() ? part.slices.parent[i] : kNoSliceIndex;
    if (!input && owner != kNoSliceIndex) input = fact_of(part.inputs, owner);
    take(i, KernelKey{part.slices.name_id[i], input ? input->dims : 0});
  }
}

std::map<KernelKey, Kernels> kernels_of(const Part& part) {
  std::map<KernelKey, Kernels> kernels;
  for_each_kernel(part, [&](uint32_t i, const KernelKey& key) {
    Kernels& of = kernels[key];
    of.ns += static_cast<double>(part.slices.dur_ns[i]);
    ++of.count;
  });
  return kernels;
}

}  // namespace

std::vector<ClockTime> clock_times(const Part& part) {
  const CounterSeries* series = clock_series(part);
  const Slices& slices = part.slices;
  if (series == nullptr || slices.size() == 0) return {};
  std::vector<Interval> computing;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t i = 0; i < slices.size(); ++i) {
    first = std::min(first, slices.start_ns[i]);
    last = std::max(last, slices.end_ns(i));
    if (computes(slices, i)) computing.push_back({slices.start_ns[i], slices.end_ns(i)});
  }
  const CoveredTime busy(union_of(std::move(computing)));
  std::map<double, ClockTime> by_clock;
  for (size_t k = 0; k < series->time_ns.size(); ++k) {
    const int64_t from = k == 0 ? first : std::max(first, series->time_ns[k]);
    const int64_t to = k + 1 < series->time_ns.size() ? std::min(last, series->time_ns[k + 1]) : last;
    ClockTime& clock = by_clock[series->value[k]];
    clock.mhz = series->value[k];
    ++clock.values;
    if (from >= to) continue;
    clock.recorded_ns += to - from;
    clock.computing_ns += busy.within(from, to);
  }
  return mapped<ClockTime>(by_clock, [&](const auto& entry) { return entry.second; });
}

double computing_mhz(const std::vector<ClockTime>& clocks) {
  double weighted = 0, ns = 0;
  for (const ClockTime& clock : clocks) {
    weighted += clock.mhz * static_cast<double>(clock.computing_ns);
    ns += static_cast<double>(clock.computing_ns);
  }
  return ns > 0 ? weighted / ns : kNaN;
}

SharedKernels shared_kernels(const Trace& trace, const Part& part) {
  const auto own = kernels_of(part);
  std::map<KernelKey, std::vector<double>> means;  // of the others, one for each rank
  for (const Part& other : trace.parts)
    if (&other != &part)
      for (const auto& [key, kernels] : kernels_of(other))
        if (own.contains(key)) means[key].push_back(kernels.ns / static_cast<double>(kernels.count));
  SharedKernels shared;
  std::map<KernelKey, int64_t> shorter;
  for (auto& [key, others] : means) {
    std::ranges::sort(others);
    const double usual = quantile(others, 0.5), count = static_cast<double>(own.at(key).count);
    shared.own_ns += own.at(key).ns;
    shared.others_ns += count * usual;
    if (usual * count < own.at(key).ns) shorter[key] = std::llround(usual);
  }
  shared.shorter_ns.assign(part.slices.size(), -1);
  for_each_kernel(part, [&](uint32_t i, const KernelKey& key) {
    if (const auto known = shorter.find(key); known != shorter.end()) shared.shorter_ns[i] = known->second;
  });
  return shared;
}

}  // namespace stageline
