#include "facts/profile_sums.h"

#include "model/lost_work.h"
#include "profile/operator_groups.h"
#include "profile/queue_length.h"
#include "profile/slow_transfers.h"

namespace stageline {
namespace {

// Reads what a rank's rows give; what needs other ranks stays in `ops` and `work` until all are there.
class RankReader {
 public:
  RankReader(const TbRun& run, const FunctionNames& functions)
      : run_(run), functions_(functions), ops_(run.torch.trace->names), pageable_(run.torch.trace->names.size()) {
    for (StringId id = 0; id < pageable_.size(); ++id)
      pageable_[id] = run.torch.trace->names.text(id).find("Pageable") != std::string_view::npos;
  }

  DeviceSums read(size_t k, std::vector<CommunicationOp>& ops, TbRankWork& work) const {
    const TorchRun& torch = run_.torch;
    const TbRank tb = tb_rank(run_, torch.parts[k]);
    const TorchRank& rank = tb.rank;
    DeviceSums sums{.rank = rank.rank, .time = device_time(torch, rank), .steps = device_steps(torch, torch.parts[k])};
    for (const FullQueue& queue : full_queues(rank, stream_queues(torch, rank), kCudaQueueLength))
      if (const double share = queue.full_share(); share > sums.full_queue_share) sums.full_queue_share = share;
    sums.pageable_ns = sum_pageable(rank);
    const TbOverview overview = tb_overview(run_, functions_, tb);
    sums.advice = tb_advice(overview);
    if (!overview.steps.empty()) {
      StepCosts& mean = sums.step_costs.emplace();
      mean.step_ns = std::llround(overview.average_ns(overview.total_ns));
      for (size_t role = 0; role < kTbRoleCount; ++role)
        mean.costs[role] = std::llround(overview.average_ns(overview.sums[role]));
      sums.costs_of_steps = overview.costs;
    }
    ops = communication_ops(rank, static_cast<uint32_t>(k), ops_);
    work = tb_work(run_, tb);
    return sums;
  }

 private:
  std::vector<std::pair<StringId, int64_t>> sum_pageable(const TorchRank& rank) const {
    std::map<StringId, int64_t> by_name;
    for (const TorchRow& row : rank.rows)
      if (row.on_device && row.kernel == KernelClass::kMemory && pageable_[row.name]) by_name[row.name] += row.dur_ns;
    return {by_name.begin(), by_name.end()};
  }

  const TbRun& run_;
  const FunctionNames& functions_;
  const OpNames ops_;
  std::vector<bool> pageable_;  // of each name
};

void add_cluster_sums(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ops, ProfileSums& sums) {
  parallel_for(ops.size(), [&](size_t k) {
    const ClusterTimes times = cluster_times(run, *torch_rank(run, run.parts[k]), ops[k]);
    if (!times.empty()) sums.ranks[k].cluster = cluster_sum(times);
  });
}

void add_slow_links(const TorchRun& run, ProfileSums& sums) {
  const SlowTransfers slow = slow_transfers(all_transfers(run), kSlowRatio, 0);
  for (const auto& [of, link] : slow_links(slow.classes)) {
    const auto& [transport, name] = of->name;
    sums.slow_links.push_back(
        {link->src, link->dst, name.empty() ? transport : name, link->reading, link->lost_ns(), link->ratio()});
  }
}

ProfileSums sums_of(const Trace& trace) {
  ProfileSums sums;
  Result<TbRun> made = make_tb_run(trace, true);
  if (!made) return sums;
  const TorchRun& torch = made->torch;
  const FunctionNames functions(trace);
  const RankReader reader(*made, functions);
  const size_t count = torch.parts.size();
  std::vector<std::vector<CommunicationOp>> ops(count);
  std::vector<TbRankWork> work(count);
  sums.ranks.resize(count);
  parallel_for(count, [&](size_t k) { sums.ranks[k] = reader.read(k, ops[k], work[k]); });
  const CollectiveSums waits = collective_sums(torch, match_collectives(ops));
  join_work(work, trace.clock == ClockState::kShared);
  for (size_t k = 0; k < count; ++k) {
    sums.ranks[k].collectives = waits.ranks[k];
    sums.communicates |= !work[k].calls.empty();
    if (!work[k].steps.empty()) sums.ranks[k].work = work[k].mean();
    sums.ranks[k].overlaps_of_steps = std::move(work[k].overlaps);
    sums.ranks[k].step_waits = std::move(work[k].step_waits);
    sums.ranks[k].joined_collectives = work[k].collectives;
    sums.ranks[k].came_last = work[k].came_last;
  }
  if (trace.device_family == DeviceFamily::kNpu) add_cluster_sums(torch, ops, sums);
  const auto has_transfers = [](const Part& p) { return !p.transfers.empty() || !p.link_summaries.empty(); };
  if (std::ranges::any_of(trace.parts, has_transfers)) add_slow_links(torch, sums);
  const std::vector<bool> lacks = parts_without_kernels(*torch.trace, torch.parts);
  for (size_t k = count; k-- > 0;)
    if (lacks[k]) sums.ranks.erase(sums.ranks.begin() + k);
  return sums;
}

struct ProfileSumsFact {
  using Value = ProfileSums;
  static Value make(const Run& run) { return sums_of(run.trace()); }
};

}  // namespace

const ProfileSums& profile_sums_of(const Run& run) { return run.fact<ProfileSumsFact>(); }

std::optional<LargestClass> largest_class_at_peak(const Trace& trace, int32_t rank) {
  constexpr double kFollowed = 1.1;  // blocks whose frees were not recorded pile up beyond what was ever allocated
  static constexpr MemoryClass kNamed[] = {MemoryClass::kActivation, MemoryClass::kGradient,
                                           MemoryClass::kOptimizerState, MemoryClass::kParameter,
                                           MemoryClass::kTemporary};
  Result<TorchRun> torch = make_torch_run(trace, {.include_last_step = true});
  if (!torch) return {};
  for (const size_t p : torch->parts) {
    const Part& part = trace.parts[p];
    if (part.rank != rank || part.memory.empty()) continue;
    const MemoryAnswer answer = memory_answer(*torch, p);
    const MemoryClasses classes = classify_memory(trace, part, answer.history);
    for (const MemoryCurve& curve : answer.curves) {
      if (curve.points.empty() || memory_device_name(curve.device) == "CPU") continue;
      const MemoryClassPoint peak =
          memory_class_series(part, answer.history, classes, curve.device, torch->zero_ns).peak;
      const double total = peak.total();
      if (total > kFollowed * curve.points[curve.peak].allocated) continue;
      for (const MemoryClass c : kNamed)
        if (const double share = share_or_zero(peak.bytes[c], total); share >= 0.5) return LargestClass{c, share};
    }
  }
  return {};
}

std::vector<SelfTime> self_times(const Trace& trace, bool in_steps) {
  Result<TorchRun> torch = make_torch_run(trace, {.include_last_step = true});
  if (!torch) return {};
  const FunctionNames names(trace);
  std::vector<std::vector<SelfTime>> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    const Part& part = trace.parts[torch->parts[k]];
    const operators::OperatorGroups groups = operators::group_events(trace, part, names, {});
    std::vector<int64_t> self_ns(groups.groups.size());
    int64_t all = 0;
    for (size_t i = 0; i < groups.made.events.size(); ++i) {
      const FunctionEvent& e = groups.made.events[i];
      if (e.category == Category::kUserAnnotation || e.slice == kNoSliceIndex) continue;
      if (in_steps && !part.steps.empty() && part.slices.step[e.slice] == 0) continue;
      all += e.self_host_ns;
      self_ns[groups.group_of[i]] += e.self_host_ns;
    }
    for (size_t g = 0; g < self_ns.size(); ++g) {
      const FunctionEvent& first = groups.first_of(groups.groups[g]);
      if (first.slice == kNoSliceIndex || first.category != Category::kCpuOp) continue;
      ranks[k].push_back({std::string(names.text(first.name)), torch->ranks[torch->parts[k]], self_ns[g],
                          share_or_zero(self_ns[g], all)});
    }
  });
  std::vector<SelfTime> out;
  for (std::vector<SelfTime>& rank : ranks) std::move(rank.begin(), rank.end(), std::back_inserter(out));
  return out;
}

std::string longest_names(const Trace& trace) {
  std::map<StringId, int64_t> self_ns;
  // Asynchronous ranges are waiting as often as work, and overlap: they count where there is nothing else.
  const auto is_range = [&](const Lane& lane) {
    return lane.tid.starts_with("async ") || (trace.format == "perfetto" && !parse_int(lane.tid));
  };
  const auto& parts = trace.parts;
  // Slices of Perfetto that were never closed end with the trace, and how long they took is not known.
  int64_t open_until = INT64_MIN;
  for (size_t p = 0; p < parts.size() && trace.diagnostics.count("pftrace.unmatched_begin") > 0; ++p)
    for (size_t i = 0; i < parts[p].slices.size(); ++i) open_until = std::max(open_until, parts[p].slices.end_ns(i));
  const auto is_no_work = [&](const Lane& lane) { return lane.begin == lane.end || is_range(lane); };
  const bool all = std::ranges::all_of(parts, [&](const Part& p) { return std::ranges::all_of(p.lanes, is_no_work); });
  for (const Part& part : parts)
    for (const Lane& lane : part.lanes) {
      if (is_range(lane) && !all) continue;
      std::vector<size_t> open;  // slices around the current one
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (trace.categories[part.slices.category_id[i]].kind == Category::kSpan) continue;  // the recording itself
        const int64_t end = part.slices.end_ns(i);
        if (end == open_until) continue;
        // Ranges may overlap without lying in each other.
        while (!open.empty() &&
               (part.slices.end_ns(open.back()) <= part.slices.start_ns[i] || part.slices.end_ns(open.back()) < end))
          open.pop_back();
        if (!open.empty()) self_ns[part.slices.name_id[open.back()]] -= part.slices.dur_ns[i];
        self_ns[part.slices.name_id[i]] += part.slices.dur_ns[i];
        open.push_back(i);
      }
    }
  std::vector<std::pair<int64_t, StringId>> order;
  for (const auto& [name, ns] : self_ns) order.emplace_back(-ns, name);
  std::ranges::sort(order);
  std::string out;
  for (size_t k = 0; k < order.size() && k < 3 && order[k].first < 0; ++k)
    append_item(out, std::string(trace.names.text(order[k].second)) + " (" +
                         human_duration(static_cast<double>(-order[k].first)) + ")");
  return out;
}

}  // namespace stageline
