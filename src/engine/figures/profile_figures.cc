// Figures of profiles: sums over their ranks and steps.
#include "diagnosis/profile/rank_losses.h"
#include "engine/engine.h"
#include "engine/figures/figures.h"
#include "facts/profile_sums.h"
#include "facts/utilisation_facts.h"
#include "model/run_extent.h"

namespace stageline::figures {
namespace {

// One figure; unknown, for this reason, where its base is not above zero.
std::vector<Figure> known_where(double base, const char* name, double value, const char* why) {
  if (base > 0) return {{.name = name, .value = value}};
  return {{.name = name, .why_unknown = words(why)}};
}

}  // namespace

std::vector<Figure> step_host(const SharedRun& run) {
  std::vector<double> lengths;
  for (const DeviceSums& rank : profile_sums_of(*run).ranks)
    for (const DeviceStep& step : rank.steps) lengths.push_back(step.host_ns);
  const double mean = mean_of(lengths);
  return known_where(mean, "step_host", mean, "figure.no_steps");
}

std::vector<Figure> device_window(const SharedRun& run) {
  int64_t longest = 0;
  for (const DeviceSums& rank : profile_sums_of(*run).ranks) longest = std::max(longest, rank.time.span_ns);
  const double window = longest;
  return known_where(window, "device_window", window, "figure.no_devices");
}

std::vector<Figure> comm_hidden(const SharedRun& run) {
  double overlap = 0, all = 0;
  if (is_only_communication(run->trace()))
    return {{.name = "comm_hidden", .why_unknown = words("figure.no_computing")}};
  const ProfileAccount& account = run->fact<ProfileAccountFact>();
  if (is_linked(account))
    for (const RankAccount& rank : account) all += rank.comm_ns, overlap += rank.comm_ns - rank.exposed_comm_ns;
  else
    for (const DeviceSums& rank : profile_sums_of(*run).ranks)
      all += rank.time.communication_ns, overlap += rank.time.overlap_ns;
  return known_where(all, "comm_hidden", share_or_zero(overlap, all), "figure.no_communication");
}

std::vector<Figure> coll_wait(const SharedRun& run) {
  double wait = 0, count = 0;
  for (const DeviceSums& rank : profile_sums_of(*run).ranks) {
    wait += rank.collectives.wait_ns;
    count += rank.collectives.collectives;
  }
  return known_where(count, "coll_wait", wait, "figure.no_collectives");
}

std::vector<Figure> hfu(const SharedRun& run) {
  const double share = hfu_of(utilisation_of(*run));
  return known_where(share, "hfu", share, "figure.no_flops");
}

// The bars of idle time by cause.
std::vector<Figure> idle_cause(const SharedRun& run) {
  const Explanation& e = explained_run(*run);
  constexpr std::string_view kIdle = "idle-";
  std::vector<Figure> out;
  for (const SpanPart& part : run->trace().cells.size() > 0 ? e.headline.device_parts : e.parts)
    if (part.id.starts_with(kIdle) && e.parts_of_ns > 0)
      out.push_back({.name = "idle_cause." + part.id.substr(kIdle.size()), .value = part.share * e.parts_of_ns});
  return out;
}

// Returns the operators with the longest time of their own.
std::vector<Figure> self_time(const SharedRun& run) {
  constexpr size_t kMaxOperators = 10;
  std::map<std::string, double> by_name;
  for (const SelfTime& time : self_times(run->trace(), false)) by_name[time.name] += time.self_ns;
  std::vector<Figure> out;
  for (const auto& [name, ns] : by_name) out.push_back({.name = "self_time." + name, .value = ns});
  sort_stably(out, std::greater(), &Figure::value);
  if (out.size() > kMaxOperators) out.resize(kMaxOperators);
  return out;
}

}  // namespace stageline::figures
