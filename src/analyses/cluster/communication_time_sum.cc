// Computes how long communication operations took, and how that time divides into transfer, waiting and the rest.
// Definitions: docs/analyses/communication-time-sum.md.
//
//   operation   ├──────────────────────────────────────┤  elapse
//   plane 1         ├ wait ┤├ copy ┤├ wait ┤├ copy ┤
//   plane 2       ├ ─ ─ wait ─ ─ ─ ┤├─ copy ─┤
//   transit                  ├──────────────┤├─────┤       union of data tasks over all planes
//   wait          ├─────────┤                              union of wait tasks, without transit
//   synchronisation is the waiting before the first transit, idle the rest of elapse.
#include "analyses/cluster/cluster.h"
#include "model/statistics.h"

namespace stageline {
namespace {

struct Sum {
  int64_t count = 0, elapse = 0, transit = 0, wait = 0, sync = 0, idle = 0;
  Basis basis = Basis::kNone;
  void add(const OpTime& time) {
    ++count;
    elapse = sum_or_limit(elapse, time.op.dur_ns);
    if (time.basis == Basis::kNone) return;
    basis = std::max(basis, time.basis);
    transit = sum_or_limit(transit, time.transit_ns);
    wait = sum_or_limit(wait, time.wait_ns);
    sync = sum_or_limit(sync, time.sync_ns);
    idle = sum_or_limit(idle, time.idle_ns());
  }
};

std::vector<Table::Value> behind(std::vector<Table::Value> keys, const Sum& sum) {
  const bool known = sum.basis != Basis::kNone;
  keys.emplace_back(sum.elapse);
  for (const int64_t ns : {sum.transit, sum.wait, sum.sync, sum.idle}) keys.emplace_back(known ? ns : kNullInteger);
  for (const int64_t ns : {sum.wait, sum.sync}) keys.emplace_back(share_of(ns, sum_or_limit(sum.transit, ns)));
  keys.emplace_back(std::string(basis_text(sum.basis)));
  return keys;
}

}  // namespace

Result<AnalysisResult> run_communication_time_sum(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  const Matched matched = match_collectives(ops);
  std::vector<std::vector<OpTime>> ranks(ops.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = op_times(*torch, ops[k], torch->trace->parts[torch->parts[k]], input.msprof);
  });
  const auto text = [&](StringId id) { return std::string(torch->trace->names.text(id)); };
  using Key = std::tuple<int64_t, std::string_view, std::string_view, std::string_view>;
  std::map<Key, Sum> groups;
  Table each(declared_table("communication-time-sum/communication-times"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const int64_t number = torch->ranks[torch->parts[k]];
    for (const OpTime& time : ranks[k]) {
      const auto name = [&](StringId id) { return torch->trace->names.text(id); };
      groups[{number, name(time.op.group), name(time.op.description), name(time.op.kind)}].add(time);
      if (input.for_report) continue;
      Sum one;
      one.add(time);
      each.add_row(behind({number, time.op.step < 0 ? kNullInteger : int64_t{time.op.step}, text(time.op.name),
                           text(time.op.group), time.op.start_ns},
                          one));
    }
  }
  Table sums(declared_table("communication-time-sum/communication-time-sum"));
  for (const auto& [key, sum] : groups) {
    const auto& [number, group, description, kind] = key;
    sums.add_row(behind({number, std::string(group), std::string(description), std::string(kind), sum.count}, sum));
  }
  AnalysisResult result;
  note_level_none(input, result.notes);
  if (!input.msprof) note_unmatched(matched, ranks.size(), result.notes);
  result.tables.push_back(std::move(sums));
  if (!input.for_report) result.tables.push_back(std::move(each));
  return result;
}

}  // namespace stageline
