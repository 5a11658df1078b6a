#include "profile/slow_groups.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kRest = 0.1;   // share of a slow group's collectives that may be as fast as the siblings'
constexpr size_t kFewest = 10;  // collectives of which that share can be seen
constexpr size_t kMany = 20,
                 kSteps = 3;       // with so many, over so many steps, it is enough that most take longer in each
constexpr double kClearly = 1.05;  // links of one kind differ by less

// Collectives that are alike: purpose, kind, ranks, machines, bytes.
using Like = std::tuple<StringId, CollectiveKind, int64_t, size_t, int64_t>;

struct Account {
  std::map<int32_t, std::vector<double>> by_step;  // ratios
  SlowGroup slow;
  double lost_ns = 0, usual_ns = 0, max_ns = 0;  // max_ns: of one kind and size
};

// Compares the k-th collective of each group with the k-th of the others.
void compare(const Ledger& ledger, const Like& like, const std::map<int32_t, std::vector<size_t>>& groups,
             std::map<std::vector<int32_t>, Account>& accounts) {
  for (const auto& [group, own] : groups) {
    Account& account = accounts[ledger.groups[static_cast<size_t>(group)].members];
    account.slow.siblings = std::max<int64_t>(account.slow.siblings, std::ssize(groups) - 1);
    double lost = 0, own_ns = 0, others_ns = 0, bus = 0;
    for (size_t k = 0; k < own.size(); ++k) {
      std::vector<double> others;
      for (const auto& [other, instances] : groups)
        if (other != group && k < instances.size())
          others.push_back(static_cast<double>(ledger.instances[instances[k]].took_ns));
      if (others.empty()) break;
      const LedgerInstance& instance = ledger.instances[own[k]];
      std::ranges::sort(others);
      const double usual = quantile(others, 0.5), took = static_cast<double>(instance.took_ns);
      account.by_step[ledger.parts[instance.begin].call->step].push_back(took / usual);
      account.slow.excess.emplace_back(ledger.parts[instance.begin].call,
                                       std::max<int64_t>(0, std::llround(took - usual)));
      lost += took - usual, own_ns += took, others_ns += usual, bus += instance.bus_bytes;
    }
    account.lost_ns += lost, account.usual_ns += others_ns;
    if (!(lost > account.max_ns)) continue;
    account.max_ns = lost;
    account.slow.kind = std::get<1>(like), account.slow.machines = std::get<3>(like);
    account.slow.bytes = std::get<4>(like);
    account.slow.own_gbps = bus / own_ns, account.slow.others_gbps = bus / others_ns;
  }
}

}  // namespace

size_t machines_of(const TorchRun& run, const std::vector<int32_t>& ranks) {
  std::set<std::string_view> names;
  for (size_t k = 0; k < run.parts.size(); ++k)
    if (std::ranges::find(ranks, run.ranks[run.parts[k]]) != ranks.end())
      names.insert(run.trace->parts[run.parts[k]].machine_name);
  return std::max<size_t>(1, names.size());
}

std::vector<SlowGroup> slow_groups(const TorchRun& run, const Ledger& ledger) {
  std::map<Like, std::map<int32_t, std::vector<size_t>>> alike;  // by group: indices of instances
  std::map<int32_t, size_t> machines;
  for (size_t i = 0; i < ledger.instances.size(); ++i) {
    const LedgerInstance& instance = ledger.instances[i];
    if (!instance.complete || instance.low >= 0 || instance.bytes <= 0 || instance.took_ns <= 0 || instance.group < 0 ||
        instance.kind == CollectiveKind::kAllToAllV || !ledger.in_steps(instance))
      continue;
    const LedgerGroup& group = ledger.groups[static_cast<size_t>(instance.group)];
    if (group.members.empty()) continue;
    const auto [at, fresh] = machines.try_emplace(instance.group, 0);
    if (fresh) at->second = machines_of(run, group.members);
    alike[{group.description, instance.kind, group.size, at->second, instance.bytes}][instance.group].push_back(i);
  }
  std::map<std::vector<int32_t>, Account> accounts;
  for (const auto& [like, groups] : alike)
    if (groups.size() > 1) compare(ledger, like, groups, accounts);
  std::vector<Account> slow;
  for (auto& [members, account] : accounts) {
    std::vector<double> ratios;
    bool in_each = account.by_step.size() >= kSteps;
    for (auto& [step, of_step] : account.by_step) {
      std::ranges::sort(of_step);
      in_each = in_each && quantile(of_step, 0.5) > 1;
      ratios.insert(ratios.end(), of_step.begin(), of_step.end());
    }
    std::ranges::sort(ratios);
    if (ratios.size() < kFewest || account.lost_ns < (kClearly - 1) * account.usual_ns) continue;
    account.slow.ratio = quantile(ratios, 0.5);
    if (account.slow.ratio < kClearly || !(quantile(ratios, kRest) >= 1 || (in_each && ratios.size() >= kMany)))
      continue;
    account.slow.ranks = members;
    account.slow.count = std::ssize(ratios);
    account.slow.longer = std::ranges::count_if(ratios, [](double ratio) { return ratio > 1; });
    slow.push_back(std::move(account));
  }
  sort_stably(slow, std::greater(), &Account::lost_ns);
  return mapped<SlowGroup>(slow, [&](Account& account) { return std::move(account.slow); });
}

}  // namespace stageline
