#include "profile/torch_view.h"

#include "base/give_up.h"
#include "profile/device_timeline.h"
#include "profile/problems.h"

namespace stageline {
namespace {

bool kept_by_filter(const TorchRun& run, const TorchRow& row) {
  const SliceFilter& filter = run.trace->slice_filter;
  if (filter.first_step != INT64_MIN || filter.last_step != INT64_MAX)
    if (row.iteration < 0 || row.iteration < filter.first_step || row.iteration > filter.last_step) return false;
  return row.end_ns() >= filter.from_ns && row.start_ns <= filter.to_ns;
}

// A range on a device starts with the first work of the calls inside it. The launch of that work gives its step, since
// the device may run whole steps behind the host.
size_t decider_of_range(const Trace& trace, const Slices& s, const Lane& lane, size_t range) {
  for (size_t i = range + 1; i < lane.end && s.start_ns[i] == s.start_ns[range]; ++i)
    if (is_device_work(trace.categories[s.category_id[i]].kind) && s.partner[i] != kNoSliceIndex) return s.partner[i];
  return range;
}

TorchRank exact_rank(const TorchRun& run, size_t p) {
  const Trace& trace = *run.trace;
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  TorchRank rank{.part = &part, .rank = part.rank};
  const int64_t last_step_start =
      run.drops_last_step && part.steps.size() >= 2 ? part.steps.back().start_ns : INT64_MAX;
  std::vector<int32_t> row_of(s.size(), -1);
  rank.rows.reserve(s.size());
  for (size_t l = 0; l < part.lanes.size(); ++l) {
    const Lane& lane = part.lanes[l];
    for (size_t i = lane.begin; i < lane.end; ++i) {
      give_up_point(i);
      const Category category = trace.categories[s.category_id[i]].kind;
      const bool device = is_device_work(category);
      const uint32_t partner = s.partner[i];
      size_t decides = device && partner != kNoSliceIndex ? partner : i;
      if (category == Category::kGpuAnnotation) decides = decider_of_range(trace, s, lane, i);
      if (s.start_ns[decides] >= last_step_start) continue;
      TorchRow row{.start_ns = s.start_ns[i] - run.zero_ns,
                   .dur_ns = s.dur_ns[i],
                   .correlation = s.correlation[i] == kNoCorrelation ? -1 : static_cast<int64_t>(s.correlation[i]),
                   .slice = static_cast<uint32_t>(i),
                   .index = s.file_index[i],
                   .name = s.name_id[i],
                   .lane = static_cast<uint16_t>(std::min<size_t>(l, UINT16_MAX)),
                   .category = category,
                   .kernel = s.class_of(i),
                   .on_device = device};
      if (device || category == Category::kDeviceSync) row.stream = stream_of(part, i, l);
      const uint16_t step = s.step[category == Category::kGpuAnnotation ? decides : i];
      row.iteration = step == 0 ? -1 : static_cast<int32_t>(part.steps[step - 1u].number);
      if (!kept_by_filter(run, row)) continue;
      row_of[i] = static_cast<int32_t>(rank.rows.size());
      rank.rows.push_back(row);
    }
  }
  for (TorchRow& row : rank.rows) {
    const uint32_t partner = s.partner[row.slice];
    if (partner == kNoSliceIndex) continue;
    row.partner = row_of[partner];
    row.partner_index = s.file_index[partner];
  }
  return rank;
}

}  // namespace

TorchRank lay_out_rank(const TorchRun& run, size_t part) {
  if (!run.options.hta) return exact_rank(run, part);
  TorchRank rank = hta_rank_rows(run, part);
  if (run.trace->slice_filter.any())
    std::erase_if(rank.rows, [&](const TorchRow& row) { return !kept_by_filter(run, row); });
  hta_index_rows(rank);
  return rank;
}

Result<TorchRun> make_torch_run(const Trace& trace, const TorchOptions& options) {
  if (options.store)
    if (std::optional<TorchRun> kept = options.store->run(options)) {
      kept->options = options;  // another question may have made it
      return std::move(*kept);
    }
  TorchRun run{.trace = &trace, .options = options};
  const bool any =
      std::ranges::any_of(trace.parts, [](const Part& p) { return p.slices.size() > 0 && p.slices.has_facts(); });
  if (!any)
    return make_error(ErrorCode::kBadInput, "it holds no profiler slices",
                      "this analysis reads PyTorch profiler traces (Chrome JSON); it was read as " + trace.format);
  std::vector<bool> held(trace.parts.size(), true);
  for (const Part& part : trace.parts) run.ranks.push_back(part.rank);
  if (options.hta) held = hta_run_facts(run);
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    if (held[p] && (wanted.empty() || std::ranges::binary_search(wanted, run.ranks[p]))) run.parts.push_back(p);
  sort_stably(run.parts, [&](size_t a, size_t b) { return run.ranks[a] < run.ranks[b]; });
  if (run.parts.empty())
    return make_error(ErrorCode::kBadInput, "none of the ranks named by --ranks is there",
                      options.hta ? "HTA finds ranks in its own way: docs/analyses/hta-loading.md"
                                  : "stageline info lists the ranks");
  if (options.hta) {
    if (options.store) options.store->keep(run);
    return run;
  }
  run.zero_ns = INT64_MAX;
  std::set<int64_t> steps;
  for (const Part& part : trace.parts) {
    for (const Lane& lane : part.lanes)
      if (lane.begin < lane.end) run.zero_ns = std::min(run.zero_ns, part.slices.start_ns[lane.begin]);
    for (const ProfilerStep& step : part.steps) steps.insert(step.number);
  }
  if (run.zero_ns == INT64_MAX) run.zero_ns = 0;
  run.listed_steps.assign(steps.begin(), steps.end());
  run.drops_last_step = !options.include_last_step && run.listed_steps.size() >= 2;
  if (options.store) options.store->keep(run);
  return run;
}

std::shared_ptr<const TorchRank> torch_rank(const TorchRun& run, size_t part) {
  if (run.options.store) return run.options.store->rank(run, part);
  return std::make_shared<const TorchRank>(lay_out_rank(run, part));
}

std::optional<TorchRun> TorchRowStore::run(const TorchOptions& options) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(mode(options));
  return found == runs_.end() ? std::nullopt : std::optional(found->second);
}

void TorchRowStore::keep(const TorchRun& run) {
  const std::lock_guard lock(mutex_);
  runs_.emplace(mode(run.options), run);
}

std::shared_ptr<const TorchRank> TorchRowStore::rank(const TorchRun& run, size_t part) {
  const std::pair key(mode(run.options), part);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = ranks_.find(key); found != ranks_.end()) return found->second;
  }
  auto rank = std::make_shared<const TorchRank>(lay_out_rank(run, part));
  const size_t bytes = rank->rows.capacity() * sizeof(TorchRow) + rank->row_of_index.capacity() * sizeof(int32_t);
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes <= max_bytes_ && ranks_.emplace(key, rank).second) bytes_ += bytes;
  return rank;
}

void note_last_step(const TorchRun& run, Diagnostics& notes) {
  if (run.drops_last_step) notes.add(problem::profile_last_step);
}

}  // namespace stageline
