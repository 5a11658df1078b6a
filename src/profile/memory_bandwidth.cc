#include "profile/memory_bandwidth.h"

#include "model/numpy_order.h"
#include "profile/problems.h"

namespace stageline {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// HTA gives a copy of no length one microsecond (get_memory_bw_time_series).
constexpr int64_t kHtaShortestNs = 1000;

// Returns whole bytes per second; −1 when size or duration is missing, or when the rate is beyond all hardware.
int64_t rate_of(const CopyFact& fact, int64_t dur_ns) {
  if (dur_ns <= 0) return -1;
  if (fact.bytes < 0) {
    const double rate = fact.bandwidth_gbps * 1e9;
    return rate > 0 && rate < 1e17 ? static_cast<int64_t>(std::llround(rate)) : -1;
  }
  const __int128 rate = (static_cast<__int128>(fact.bytes) * kSecond + dur_ns / 2) / dur_ns;
  return rate < static_cast<__int128>(1) << 56 ? static_cast<int64_t>(rate) : -1;
}

// Returns "Memcpy HtoD" for the names of CUDA and of ROCm.
std::string copy_label(std::string_view name, Category category) {
  if (name.starts_with("Memcpy") || name.starts_with("Memset")) return std::string(memory_kernel_label(name));
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (holds("HostToDevice") || holds("HtoD")) return "Memcpy HtoD";
  if (holds("DeviceToHost") || holds("DtoH")) return "Memcpy DtoH";
  if (holds("DeviceToDevice") || holds("DtoD")) return "Memcpy DtoD";
  if (holds("PtoP") || holds("PeerToPeer")) return "Memcpy PtoP";
  return category == Category::kMemset ? "Memset" : "Memcpy Unknown";
}

}  // namespace

std::vector<CopyBandwidth> copy_bandwidths(const TorchRun& run, const TorchRank& rank) {
  struct Own {
    CopyBandwidth total;
    std::vector<StepChange> changes;
  };
  std::vector<Own> labels;
  std::map<std::pair<StringId, Category>, size_t> label_of;
  for (const TorchRow& row : rank.rows) {
    if (row.category != Category::kMemcpy && row.category != Category::kMemset) continue;
    const auto [known, added] = label_of.try_emplace({row.name, row.category}, 0);
    if (added) {
      std::string label = copy_label(run.name(row), row.category);
      const auto it = std::ranges::find_if(labels, [&](const Own& o) { return o.total.label == label; });
      known->second = static_cast<size_t>(it - labels.begin());
      if (it == labels.end()) {
        labels.emplace_back();
        labels.back().total.label = std::move(label);
      }
    }
    Own& own = labels[known->second];
    ++own.total.copies;
    const CopyFact* fact = fact_of(rank.part->copies, row.slice);
    if (fact && fact->bytes > 0) own.total.bytes = sum_or_limit(own.total.bytes, fact->bytes);
    const int64_t rate = fact ? rate_of(*fact, row.dur_ns) : -1;
    if (rate < 0) {
      ++own.total.without_rate;
      continue;
    }
    own.changes.push_back({row.start_ns, rate});
    own.changes.push_back({row.end_ns(), -rate});
  }
  sort_stably(labels, [](const Own& a, const Own& b) { return a.total.label < b.total.label; });
  std::vector<CopyBandwidth> out;
  for (Own& own : labels) {
    own.total.rate = series_of(std::move(own.changes));
    out.push_back(std::move(own.total));
  }
  return out;
}

void note_copy_flaws(const std::vector<CopyBandwidth>& copies, Diagnostics& notes) {
  for (const CopyBandwidth& c : copies) notes.add(problem::bandwidth_no_rate, {}, c.without_rate);
}

std::vector<BandwidthPoint> hta_bandwidth_points(const TorchRun& run, const TorchRank& rank) {
  std::vector<BandwidthPoint> points;
  std::vector<int64_t> ends;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kMemory) continue;
    const CopyFact* fact = fact_of(rank.part->copies, row.slice);
    points.push_back({row.start_ns, memory_kernel_label(run.name(row)), row.lane, fact ? fact->bandwidth_gbps : 0.0});
    ends.push_back(row.start_ns + (row.dur_ns == 0 ? kHtaShortestNs : row.dur_ns));
  }
  for (size_t i = 0; i < ends.size(); ++i)
    points.push_back({ends[i], points[i].label, points[i].lane, -points[i].gbps});
  for (uint32_t i = 0; i < points.size(); ++i) points[i].index = i;
  sort_as_numpy(points, &BandwidthPoint::ts_ns);
  sort_stably(points, {}, &BandwidthPoint::label);
  for (size_t i = 1; i < points.size(); ++i)
    if (points[i].label == points[i - 1].label) points[i].gbps += points[i - 1].gbps;
  return points;
}

std::vector<std::vector<BandwidthPoint>> hta_bandwidths(const TorchRun& run) {
  return ask_ranks(run, [&](const TorchRank& rank) { return hta_bandwidth_points(run, rank); });
}

}  // namespace stageline
