#include "base/parallel.h"
#include "server/timeline/answers.h"
#include "server/timeline/row_index.h"
#include "server/timeline/selection.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

constexpr int64_t kAnyKind = -1;

struct LaneCount {
  std::vector<uint32_t> bins;
  std::vector<int64_t> durations;  // kept while there are few of them
  int64_t sum_ns = 0, min_ns = INT64_MAX, max_ns = 0;
  uint64_t count = 0;
};

struct Asked {
  std::vector<uint32_t> lanes;
  TimeWindow window;
  NameSet names;
  Facets facets;
  int64_t kind = kAnyKind;
};

template <class Visit>
void for_asked(const Timeline& timeline, const Asked& asked, uint32_t lane_id, const std::vector<uint64_t>& mask,
               Visit visit) {
  const ViewLane& lane = timeline.lanes()[lane_id];
  const FacetTest test(timeline.trace(), timeline.lanes(), asked.facets);
  if (!lane.has_slices() || !test.lane_may(lane_id)) return;
  const size_t from = first_starting_from(lane, asked.window.from_ns());
  const size_t to = first_starting_from(lane, asked.window.to_ns());
  timeline.occurrences().for_named(lane, lane_id, asked.names, mask, from, to, [&](size_t i) {
    if ((asked.kind == kAnyKind || lane.kind(i) == asked.kind) && (!asked.facets.any() || test.has(lane_id, i)))
      visit(lane, i);
  });
}

// The slices that last from min to max, sorted by lane and start.
SliceWindow slices_lasting(const Timeline& timeline, const Asked& asked, int64_t min_ns, int64_t max_ns, size_t limit) {
  SliceWindow out;
  out.min_ns = min_ns;
  const std::vector<uint64_t> mask = timeline.occurrences().mask_of(asked.names);
  for (const uint32_t l : asked.lanes)
    for_asked(timeline, asked, l, mask, [&](const ViewLane& lane, size_t i) {
      const int64_t dur = lane.dur(i);
      if (dur < min_ns || dur > max_ns) return;
      const PlaceInRow at = out.slices.size() < limit ? row_place(lane, i) : PlaceInRow{};
      if (at) out.slices.push_back({l, static_cast<uint32_t>(i), static_cast<uint8_t>(at.row)});
      else out.complete = false;
    });
  return out;
}

void write_bins(JsonWriter& json, const std::vector<uint64_t>& bins, size_t first, size_t last) {
  size_t width = 1;
  while ((last - first) / width + 1 > kMaxBins) width *= 2;
  first = first / width * width;
  std::vector<int64_t> edges, counts;
  for (size_t b = first; b <= last; b += width) {
    edges.push_back(bin_start_ns(b));
    uint64_t count = 0;
    for (size_t k = b; k < std::min(b + width, kDurationBins); ++k) count += bins[k];
    counts.push_back(count);
  }
  edges.push_back(bin_start_ns(std::min(first + counts.size() * width, kDurationBins - 1)));
  json.list("edges_ns", edges).list("counts", counts);
}

std::string histogram_json(const Timeline& timeline, const Asked& asked) {
  const std::vector<uint64_t> mask = timeline.occurrences().mask_of(asked.names);
  const size_t tasks = std::max<size_t>(1, std::min<size_t>(asked.lanes.size(), thread_count()));
  std::vector<LaneCount> own(tasks);
  parallel_for(tasks, [&](size_t task) {
    LaneCount& sum = own[task];
    sum.bins.resize(kDurationBins);
    for (size_t k = task; k < asked.lanes.size(); k += tasks)
      for_asked(timeline, asked, asked.lanes[k], mask, [&](const ViewLane& lane, size_t i) {
        const int64_t dur = lane.dur(i);
        ++sum.bins[duration_bin(dur)];
        ++sum.count;
        sum.sum_ns = sum_or_limit(sum.sum_ns, dur);
        sum.min_ns = std::min(sum.min_ns, dur);
        sum.max_ns = std::max(sum.max_ns, dur);
        if (sum.durations.size() <= kExactQuantiles) sum.durations.push_back(dur);
      });
  });
  LaneCount all;
  std::vector<uint64_t> bins(kDurationBins);
  for (const LaneCount& one : own) {
    all.count += one.count;
    all.sum_ns = sum_or_limit(all.sum_ns, one.sum_ns);
    all.min_ns = std::min(all.min_ns, one.min_ns);
    all.max_ns = std::max(all.max_ns, one.max_ns);
    for (size_t b = 0; b < kDurationBins; ++b) bins[b] += one.bins[b];
  }
  const bool exact = all.count <= kExactQuantiles;
  JsonWriter json;
  json.begin_object().field("count", all.count).field("exact", exact);
  if (all.count == 0) {
    json.key("edges_ns").begin_array().end_array().key("counts").begin_array().end_array().end_object();
    return json.take();
  }
  write_bins(json, bins, duration_bin(all.min_ns), duration_bin(all.max_ns));
  const double mean_ns = all.sum_ns / static_cast<double>(all.count);
  json.field("sum_ns", all.sum_ns).field("mean_ns", std::llround(mean_ns));
  json.field("min_ns", all.min_ns).field("max_ns", all.max_ns);
  if (exact)
    for (const LaneCount& one : own)
      all.durations.insert(all.durations.end(), one.durations.begin(), one.durations.end());
  std::vector<uint32_t> narrow(bins.begin(), bins.end());
  for (const auto& [name, share] : {std::pair{"median_ns", 0.5}, {"p95_ns", 0.95}, {"p99_ns", 0.99}})
    json.field(name, exact ? quantile(all.durations, share)
                           : binned_quantile(narrow, 0, all.count, share, all.min_ns, all.max_ns));
  json.end_object();
  return json.take();
}

}  // namespace

Result<HistogramAnswer> histogram_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns() + 1));
  TRY(kind, integer_parameter(query, "kind", kAnyKind, kAnyKind, kViewKindCount - 1));
  TRY(meant, names_meant(timeline, query));
  const Asked asked{*lanes, *window, std::move(meant->names), meant->facets, *kind};
  if (!query.find("min") && !query.find("max")) return HistogramAnswer{histogram_json(timeline, asked), false};
  TRY(min, number_parameter(query, "min", 0.0));
  TRY(max, number_parameter(query, "max", 4e18));
  TRY(limit, integer_parameter(query, "limit", 50'000, 1, kMaxSlices));
  const auto whole = [](double ns) { return static_cast<int64_t>(std::clamp(ns, 0.0, 4e18)); };
  return HistogramAnswer{slices_wire(timeline, slices_lasting(timeline, asked, whole(*min), whole(*max), *limit)),
                         true};
}

}  // namespace stageline
