#include "diagnosis/profile/profile_facts.h"

#include "base/json_members.h"
#include "model/row_names.h"
#include "model/run_extent.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

// Adds the device's times of a rank.
void add_to_whole(const RankFacts& rank, RankFacts& whole) {
  whole.span_ns += rank.span_ns, whole.compute_ns += rank.compute_ns, whole.idle_ns += rank.idle_ns;
  whole.comm_ns += rank.comm_ns, whole.exposed_comm_ns += rank.exposed_comm_ns;
  whole.exposed_memory_ns += rank.exposed_memory_ns;
}

void read_devices(const ProfileSums& sums, ProfileFacts& facts) {
  for (const DeviceSums& rank : sums.ranks) {
    const DeviceTime& time = rank.time;
    facts.comm_overlap_ns += time.overlap_ns;
    if (time.span_ns <= 0) continue;
    RankFacts& r = facts.ranks.emplace_back();
    r.rank = rank.rank;
    r.span_ns = time.span_ns;
    r.compute_ns = time.compute_ns;
    r.exposed_comm_ns = time.exposed_communication_ns();
    r.exposed_memory_ns = time.exposed_memory_ns();
    r.idle_ns = time.idle_ns;
    if (facts.only_communication) r.span_ns = time.communication_ns, r.idle_ns = 0;
    r.comm_ns = time.communication_ns;
    r.wait_ns = rank.collectives.wait_ns;
    r.transfer_ns = rank.collectives.transfer_ns;
    add_to_whole(r, facts.whole);
    facts.outside_ns += time.outside_ns;
  }
  facts.recorded_ns = facts.whole.span_ns + facts.outside_ns;
}

// Takes steps from the devices if they did anything. The host runs ahead and blocks, so its rows are alternately long
// and short even if the devices' steps are all alike.
void read_steps(const ProfileSums& sums, ProfileFacts& facts) {
  std::set<std::pair<int64_t, size_t>> numbers;  // with how often a rank had the number before, in another recording
  std::vector<double> durations;
  std::map<int64_t, std::map<int32_t, double>> by_number;  // the longest of each rank
  for (const DeviceSums& rank : sums.ranks)
    for (const DeviceStep& step : rank.steps) facts.device_steps |= step.any;
  for (const DeviceSums& rank : sums.ranks) {
    std::map<int64_t, size_t> times;
    for (const DeviceStep& step : rank.steps) {
      numbers.emplace(step.number, times[step.number]++);
      if (facts.device_steps && !step.any) continue;
      durations.push_back(facts.device_steps ? step.length_ns : step.host_ns);
      double& longest = by_number[step.number][rank.rank];
      longest = std::max(longest, durations.back());
      if (durations.back() <= facts.max_step_ns) continue;
      facts.max_step_ns = durations.back();
      facts.max_step = step.number;
    }
  }
  facts.step_count = numbers.size();
  facts.median_step_ns = median_of(durations);
  // A step is slow that stands out of the scatter of all, by the rule of Iglewicz and Hoaglin: 3.5 modified z-scores.
  constexpr double kStandsOut = 3.5 / 0.6745;
  auto away = mapped<double>(durations, [&](const double d) { return std::abs(d - facts.median_step_ns); });
  const double least =
      std::max(kSlowStepRatio * facts.median_step_ns, facts.median_step_ns + kStandsOut * median_of(std::move(away)));
  for (const double d : durations) facts.slow_steps += d >= least;
  facts.step_ns = mean_of(durations);
  std::vector<std::pair<double, int32_t>> longest;
  for (const auto& [rank, ns] : by_number[facts.max_step]) longest.emplace_back(ns, rank);
  sort_stably(longest, std::greater(), &std::pair<double, int32_t>::first);
  for (const auto& [ns, rank] : longest)
    if (ns >= kSlowStepRatio * facts.median_step_ns) facts.max_step_ranks.push_back(rank);
  facts.max_step_of = longest.size();
  for (const DeviceSums& rank : sums.ranks) {
    std::vector<double> caused;
    double own = 0;
    for (const TbStepWait& step : rank.step_waits) {
      caused.push_back(step.others_ns / std::max(1.0, sums.ranks.size() - 1.0));
      if (step.number == facts.max_step) own = caused.back();
    }
    const double extra = own - median_of(caused);
    if (!(extra > facts.max_step_wait_ns)) continue;
    facts.max_step_wait_ns = extra;
    facts.max_step_late = rank.rank;
  }
  if (2 * facts.max_step_wait_ns < facts.max_step_ns - facts.median_step_ns) facts.max_step_late.reset();
}

void read_queues(const ProfileSums& sums, ProfileFacts& facts) {
  for (const DeviceSums& rank : sums.ranks) {
    if (rank.full_queue_share <= facts.full_queue_share) continue;
    facts.full_queue_share = rank.full_queue_share;
    facts.full_queue_rank = rank.rank;
  }
}

void read_stragglers(const ProfileSums& sums, ProfileFacts& facts) {
  for (const DeviceSums& rank : sums.ranks) {
    facts.stragglers_known |= rank.collectives.collectives > 0;
    if (rank.collectives.caused_ns <= facts.caused_wait_ns) continue;
    facts.caused_wait_ns = rank.collectives.caused_ns;
    facts.straggler = rank.rank;
    facts.came_last = rank.collectives.last;
    facts.collectives = rank.collectives.collectives;
  }
}

void read_copies(const Trace& trace, const ProfileSums& sums, ProfileFacts& facts) {
  std::map<std::string_view, double> by_name;
  for (const DeviceSums& rank : sums.ranks)
    for (const auto& [name, ns] : rank.pageable_ns) {
      by_name[trace.names.text(name)] += ns;
      facts.pageable_ns += ns;
    }
  double max = 0;
  for (const auto& [name, sum] : by_name) {
    if (sum <= max) continue;
    max = sum;
    facts.pageable_name = std::string(name);
  }
}

// A graph without its kernels is one row: the file does not say what in it computes, communicates or waits.
void read_whole_graphs(const Trace& trace, ProfileFacts& facts) {
  if (trace.diagnostics.count("nsys.whole_graphs") == 0) return;
  for (const Part& part : trace.parts)
    for (size_t i = 0; i < part.slices.size(); ++i)
      if (is_device_work(trace.categories[part.slices.category_id[i]].kind) &&
          trace.names.text(part.slices.name_id[i]).starts_with("CUDA graph "))
        facts.whole_graphs_ns += static_cast<double>(part.slices.dur_ns[i]);
  facts.whole_graphs_ns = std::min(facts.whole_graphs_ns, facts.whole.compute_ns);
}

// Replaces the sums by those of the accounts (times by rank, time recorded outside), so that bar, headline and findings
// are about the same window.
void take_account(const ProfileAccount& account, ProfileFacts& facts) {
  // If launches are not linked, the reason of a gap is unknown.
  if (!is_linked(account) || account.size() != facts.ranks.size()) return;
  facts.whole = {};
  facts.comm_overlap_ns = 0;
  facts.outside_ns = 0;
  facts.window_ns = 0;
  int64_t steps = 0;
  for (RankFacts& r : facts.ranks) {
    const auto it = std::ranges::find_if(account, [&](const RankAccount& a) { return a.rank == r.rank; });
    if (it == account.end()) continue;
    const RankAccount& a = *it;
    r.span_ns = a.window_ns;
    r.compute_ns = a.compute_ns;
    r.exposed_comm_ns = a.exposed_comm_ns;
    r.exposed_memory_ns = a.exposed_memory_ns;
    r.idle_ns = a.all_idle_ns();
    r.host_wait_ns = a.idle_of_host_ns();
    r.stream_wait_ns = a.idle_ns[IdleCause::kStream];
    r.comm_ns = a.comm_ns;
    add_to_whole(r, facts.whole);
    facts.comm_overlap_ns += a.comm_ns - a.exposed_comm_ns;
    facts.outside_ns += a.before_and_after_ns;
    facts.unknown_ns += a.steps_ns - a.window_ns;
    steps += std::max<int64_t>(0, a.steps);
    if (r.span_ns <= facts.window_ns) continue;
    facts.window_ns = r.span_ns;
    facts.step_ns = a.steps > 0 ? a.steps_ns / a.steps : r.span_ns;
  }
  double exposed_ns = 0, one_stream_ns = 0;
  for (const RankAccount& a : account)
    for (const RankLoss& x : a.losses)
      if (x.kind == LossKind::kCollective)
        exposed_ns += x.recorded_ns, one_stream_ns += x.one_stream ? x.recorded_ns : 0;
  facts.comm_on_compute_stream = 2 * one_stream_ns > exposed_ns;
  facts.recorded_ns = facts.whole.span_ns + facts.unknown_ns + facts.outside_ns;
  if (steps > 0) facts.step_count = std::max<size_t>(1, static_cast<size_t>(steps) / facts.ranks.size());
  facts.accounted = true;
}

void read_names(const Trace& trace, ProfileFacts& facts) {
  facts.loader_processes = has_loader_processes(trace.names);
  for (StringId id = 0; id < trace.names.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    facts.graphs |= has("GraphLaunch");
    facts.compiled |= has("Torch-Compiled Region") || has("CompiledFunction") || name.starts_with("triton_");
    facts.fused_optimizer |= has("aten::_fused_") || has("aten::_foreach_");
  }
}

// Chrome traces of other profilers say it in a member that their reader adds.
bool is_recorded_by(const Trace& trace, std::string_view format) {
  return !trace.parts.empty() && std::ranges::any_of(trace.parts[0].metadata, [&](const MetaField& field) {
    return field.key == "recorded_by" && field.json == '"' + std::string(format) + '"';
  });
}

std::string_view recorder_of(const Trace& trace) {
  for (const std::string_view format : {"nsys", "rocpd", "xplane"})
    if (trace.format == format || is_recorded_by(trace, format)) return format;
  return trace.writer.empty() && (trace.format == "kineto" || trace.format == "ascend") ? "torch" : "";
}

void see_changing_shapes(const Trace& trace, ProfileFacts& facts) {
  std::map<StringId, int64_t> changing;  // by kind of operator: its time
  for (const Part& part : trace.parts) {
    std::map<StringId, std::map<uint16_t, std::set<StringId>>> shapes;  // by kind and step
    std::map<StringId, int64_t> ns;
    for (const TaskFact& task : part.tasks) {
      const InputFact* inputs = fact_of(part.inputs, task.slice);
      if (!inputs || task.op_type == 0 || part.slices.step[task.slice] == 0) continue;
      shapes[task.op_type][part.slices.step[task.slice]].insert(inputs->dims);
      ns[task.op_type] += part.slices.dur_ns[task.slice];
    }
    for (const auto& [kind, steps] : shapes) {
      if (steps.size() < 2) continue;
      facts.changing_kinds = std::max<int64_t>(facts.changing_kinds, 0);
      if (std::ranges::adjacent_find(steps, std::not_equal_to(), [](const auto& of) { return of.second; }) !=
          steps.end())
        changing[kind] += ns[kind];
    }
  }
  if (changing.empty()) return;
  facts.changing_kinds = std::ssize(changing);
  const auto most = std::ranges::max_element(changing, {}, [](const auto& of) { return of.second; });
  facts.changing_most = trace.names.text(most->first);
}

// Returns the time in which a host was recorded: its steps, without the time between them, or, where there are none,
// all its rows. The time between two recordings of a rank does not count. Time that several ranks recorded counts once.
double host_time_ns(const Trace& trace, const ProfileSums& sums) {
  std::set<int64_t> steps;
  for (const DeviceSums& rank : sums.ranks)
    for (const DeviceStep& step : rank.steps) steps.insert(step.number);
  const auto joined = [](const Part& part) { return !part.later_recordings_ns.empty(); };
  if (steps.empty() && std::ranges::none_of(trace.parts, joined)) return recording_ns(trace);
  std::vector<Interval> recorded;
  for (const Part& part : trace.parts) {
    const std::vector<int64_t>& later = part.later_recordings_ns;
    std::vector<Span> spans(later.size() + 1);
    const auto add = [&](int64_t start_ns, int64_t end_ns) {
      spans[std::ranges::upper_bound(later, start_ns) - later.begin()].add(start_ns, end_ns);
    };
    for (const ProfilerStep& step : part.steps)
      if (steps.contains(step.number)) recorded.push_back({step.start_ns, step.end_ns});
    for (size_t i = 0; i < part.slices.size() && steps.empty(); ++i)
      add(part.slices.start_ns[i], part.slices.end_ns(i));
    for (const Span& span : spans)
      if (span.any()) recorded.push_back({span.start_ns, span.end_ns});
  }
  return length_of(union_of(std::move(recorded)));
}

}  // namespace

ProfileFacts profile_facts(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account) {
  ProfileFacts f;
  f.recorder = recorder_of(trace);
  for (const Part& part : trace.parts) {
    const std::string_view environment = meta_json(part, "ENV_VARIABLES");
    const auto value = [&](std::string_view name) { return json_text(json_member(environment, name)); };
    const std::string level = value("ASCEND_GLOBAL_LOG_LEVEL");
    f.launches_block |= value("ASCEND_LAUNCH_BLOCKING") == "1";
    f.logs_much |= level == "0" || level == "1" || level == "2";
    f.fixed_segments |=
        !environment.empty() && value("PYTORCH_NPU_ALLOC_CONF").find("expandable_segments:True") == std::string::npos;
  }
  see_changing_shapes(trace, f);
  f.npu = trace.device_family == DeviceFamily::kNpu;
  f.only_communication = is_only_communication(trace);
  f.launches_unknown =
      !account.empty() && std::ranges::none_of(account, [](const RankAccount& rank) { return rank.linked; });
  read_names(trace, f);
  read_devices(sums, f);
  read_steps(sums, f);
  read_queues(sums, f);
  read_stragglers(sums, f);
  read_copies(trace, sums, f);
  // Without device work the host's steps; without steps, everything.
  f.window_ns = host_time_ns(trace, sums);
  if (f.ranks.empty()) return f;
  f.window_ns = 0;
  for (const RankFacts& r : f.ranks) f.window_ns = std::max(f.window_ns, r.span_ns);
  take_account(account, f);
  read_whole_graphs(trace, f);
  return f;
}

Text time_per_step(const ProfileFacts& facts, double sum_ns) {
  const bool steps = facts.step_count > 1;
  const Args args = Args().flag("steps", steps).set("time", human_duration(steps ? sum_ns / facts.step_count : sum_ns));
  return words("profile.per_step", args);
}

const char* loader_advice(const ProfileFacts& facts) {
  return facts.loader_processes ? "profile.input.more" : "profile.input.processes";
}

Text device_graphs(const ProfileFacts& facts) { return words("profile.graphs", Args().flag("npu", facts.npu)); }

}  // namespace stageline
