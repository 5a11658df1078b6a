#include "diagnosis/profile/finding_parts.h"
#include "model/statistics.h"
#include "pipeline/cells/rank_layout.h"
#include "profile/expert_products.h"

namespace stageline {
namespace {

constexpr double kMinCost = 0.02;  // of a step
constexpr double kExplains = 0.5;  // minimum part of a rank's longer computing, or its lateness

struct RankExperts {
  const Part* part = nullptr;
  std::vector<int32_t> group;  // the ranks that share experts with it
  std::vector<ExpertProduct> products;
  double tokens = 0, mean_tokens = 0;  // of forwards
  double longer_ns = 0;                // than the same products of the group's fastest rank
  // By slice: a kernel's time if all ranks of the group get equally many tokens.
  std::map<uint32_t, int64_t> even_ns;
  double ratio() const { return share_or_zero(tokens, mean_tokens); }
};

// Compares the same products on all ranks of a group: those of one step and pass with the same place among these.
void even_out(std::vector<RankExperts>& ranks) {
  using Made = std::pair<RankExperts*, const ExpertProduct*>;
  std::map<std::tuple<std::vector<int32_t>, int32_t, bool, size_t>, std::vector<Made>> products;
  for (RankExperts& rank : ranks) {
    std::map<std::pair<int32_t, bool>, size_t> place;
    for (const ExpertProduct& x : rank.products)
      products[{rank.group, x.step, x.backward, place[{x.step, x.backward}]++}].emplace_back(&rank, &x);
  }
  for (const auto& [key, made] : products) {
    if (made.size() < 2 || made.size() != std::get<0>(key).size()) continue;
    double mean = 0, mean_ns = 0;
    int64_t fastest = INT64_MAX;
    for (const auto& [rank, x] : made) {
      mean += static_cast<double>(x->tokens) / static_cast<double>(made.size());
      mean_ns += static_cast<double>(x->kernel_ns) / static_cast<double>(made.size());
      fastest = std::min(fastest, x->kernel_ns);
    }
    for (const auto& [rank, x] : made) {
      if (!x->backward) rank->tokens += static_cast<double>(x->tokens), rank->mean_tokens += mean;
      if (x->tokens <= 0 || x->kernel_ns <= 0) continue;
      rank->longer_ns += static_cast<double>(x->kernel_ns - fastest);
      // A part of a product's time does not depend on its tokens, so the mean time is that of the mean tokens. A slow
      // device is not to be evened out with it.
      const double share = mean / static_cast<double>(x->tokens);
      const double factor =
          std::clamp(mean_ns / static_cast<double>(x->kernel_ns), std::min(1.0, share), std::max(1.0, share));
      for (const uint32_t slice : x->kernels)
        rank->even_ns[slice] = std::llround(static_cast<double>(rank->part->slices.dur_ns[slice]) * factor);
    }
  }
}

double saved_share(const JobReplay& job, const ProfileFacts& facts, const std::vector<RankExperts>& ranks) {
  if (!job.usable()) return 0;
  std::vector<TakenOut> out(job.timelines().size());
  for (size_t r = 0; r < out.size(); ++r) {
    const DeviceTimeline& timeline = job.timelines()[r];
    const auto rank = std::ranges::find(ranks, timeline.part, &RankExperts::part);
    if (rank == ranks.end()) continue;
    for (const DeviceTimeline::DeviceItem& item : timeline.device)
      out[r].device_ns.push_back(value_at(rank->even_ns, item.slice, -1));
  }
  double sum = sum_over<double>(job.saved(out, job.meetings()), [&](const auto& entry) { return entry.second; });
  return share_or_zero(sum, facts.whole.span_ns);
}

// Returns true when a finding about a rank that computes longer or comes late is about its experts.
bool is_of_experts(const ProfileFacts& f, const std::vector<RankExperts>& ranks, const Finding& finding) {
  if ((finding.id != "rank.slow" && finding.id != "rank.late") || (finding.id == "rank.slow" && f.slow.by_kernels))
    return false;
  const auto facts = std::ranges::find_if(f.ranks, [&](const RankFacts& r) { return r.rank == finding.rank; });
  const auto own = std::ranges::find_if(ranks, [&](const RankExperts& r) { return r.part->rank == finding.rank; });
  if (facts == f.ranks.end() || own == ranks.end()) return false;
  std::vector<double> others;
  for (const RankFacts& r : f.ranks)
    if (r.rank != finding.rank) others.push_back(r.compute_ns);
  const double longer = facts->compute_ns - median_of(std::move(others));
  const double late = finding.id == "rank.late" ? finding.weight * facts->span_ns : 0;
  return own->longer_ns > 0 && own->longer_ns >= kExplains * std::max(longer, late);
}

}  // namespace

void add_uneven_experts(const Trace& trace, const ProfileFacts& facts, JobOnce& job, std::vector<Finding>& list) {
  const std::vector<bool> grouped = grouped_names(trace.names);
  if (std::ranges::find(grouped, true) == grouped.end()) return;
  const Result<TorchRun> run = make_torch_run(trace, {.include_last_step = true});
  if (!run) return;
  std::vector<RankExperts> ranks = ask_ranks(*run, [&](const TorchRank& rank) {
    return RankExperts{rank.part, expert_ranks(trace.names, *rank.part), expert_products(*run, rank, grouped)};
  });
  even_out(ranks);
  const auto fullest = std::ranges::max_element(ranks, {}, &RankExperts::ratio);
  if (fullest == ranks.end() || fullest->ratio() <= 1) return;
  Finding x{.id = "experts.uneven", .weight = saved_share(job(), facts, ranks)};
  if (x.weight < kMinCost) return;
  x.value = fixed(fullest->ratio(), 2) + "×";
  x.price.saving_ns = x.weight * facts.step_ns;
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {fullest->part->rank}}};
  Args args;
  args.set("rank", int64_t{fullest->part->rank}).set("ratio", x.value).set("group", rank_ranges(fullest->group));
  say(x, "profile.experts", args);
  std::erase_if(list, [&](const Finding& of) { return is_of_experts(facts, ranks, of); });
  list.push_back(std::move(x));
}

}  // namespace stageline
