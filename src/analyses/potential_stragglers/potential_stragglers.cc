// Which rank the others wait for in collectives. Definitions: docs/analyses/potential-stragglers.md.
//
// Clocks of ranks are not compared. All ranks leave a synchronising collective together, so the rank with the shortest
// kernel came last, and each other rank waited by as much as its kernel is longer.
//
//   rank 0  ├── waits ───┼─ exchange ─┤
//   rank 1        ├ waits┼─ exchange ─┤
//   rank 2               ├─ exchange ─┤   came last: its kernel has the exchange alone
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analyses/analysis.h"
#include "analyses/potential_stragglers/problems.h"
#include "base/parallel.h"
#include "compat/hta/hta_stragglers.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using Type = ColumnType;

// Collectives that a rank may leave before the others have come.
constexpr std::array<std::string_view, 10> kLeaveEarly = {
    "send", "recv", "receive", "batchSendRecv", "broadcast", "reduce", "gather", "scatter", "wait", "_broadcast_oop"};

struct Collective {
  // These fields are equal on all ranks of one collective.
  StringId comms_id = 0, group = 0, group_ranks = 0, name = 0;
  int64_t number = -1;  // its own sequence number
  int32_t step = -1;    // without a number: the profiler step, and the position in it
  uint32_t position = 0;

  size_t part = 0;
  int64_t start_ns = 0, dur_ns = 0;

  auto key() const { return std::tuple(comms_id, group, group_ranks, name, number, step, position); }
  auto kind() const { return std::tuple(comms_id, group, group_ranks, name, number, step); }
};

// Facts of every name of the run.
struct NameFacts {
  std::vector<bool> leaves_early, send_receive, all_to_all;
};
NameFacts name_facts(const StringPool& names) {
  NameFacts facts;
  for (StringId id = 0; id < names.size(); ++id) {
    const std::string_view name = names.text(id);
    const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    facts.leaves_early.push_back(std::find(kLeaveEarly.begin(), kLeaveEarly.end(), name) != kLeaveEarly.end());
    facts.send_receive.push_back(holds("SendRecv"));
    facts.all_to_all.push_back(holds("all_to_all") || holds("alltoall") || holds("All2All") || holds("all2all"));
  }
  return facts;
}

// NCCL's SendRecv kernel is also used for all-to-all. When there are no arguments, the operators around its launch tell
// which it is.
bool inside_all_to_all(const Slices& s, uint32_t slice, const NameFacts& names) {
  uint32_t at = s.parent[slice] != kNoSliceIndex ? s.parent[slice] : s.partner[slice];
  while (at != kNoSliceIndex) {
    if (names.all_to_all[s.name_id[at]]) return true;
    at = s.parent[at];
  }
  return false;
}

struct RankCollectives {
  std::vector<Collective> list;
  int64_t left_out = 0;  // number of point-to-point and rooted operations
};

RankCollectives collectives_of(const TorchRank& rank, size_t part, const std::vector<int32_t>& steps,
                               const NameFacts& names) {
  RankCollectives out;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kCommunication) continue;
    if (!steps.empty() && !std::binary_search(steps.begin(), steps.end(), row.iteration)) continue;
    Collective c;
    c.part = part;
    c.start_ns = row.start_ns;
    c.dur_ns = row.dur_ns;
    const CollectiveFact* fact = fact_of(rank.part->collectives, row.slice);
    const bool tells = fact && fact->name != 0;
    c.name = tells ? fact->name : row.name;
    if (names.leaves_early[c.name] ||
        (!tells && names.send_receive[row.name] && !inside_all_to_all(rank.part->slices, row.slice, names))) {
      ++out.left_out;
      continue;
    }
    if (fact) {
      c.comms_id = fact->comms_id;
      c.group = fact->group;
      c.group_ranks = fact->group_ranks;
      c.number = fact->seq;
    }
    if (c.number < 0 && c.comms_id == 0) c.step = row.iteration;
    out.list.push_back(c);
  }
  std::sort(out.list.begin(), out.list.end(), [](const Collective& a, const Collective& b) {
    return a.kind() != b.kind() ? a.kind() < b.kind() : a.start_ns < b.start_ns;
  });
  for (size_t i = 1; i < out.list.size(); ++i)
    if (out.list[i].kind() == out.list[i - 1].kind()) out.list[i].position = out.list[i - 1].position + 1;
  return out;
}

struct RankSum {
  int64_t collectives = 0, last = 0, wait_ns = 0, caused_ns = 0;
};
struct KindSum {
  int64_t count = 0, ranks = 0, wait_ns = 0, longest_ns = 0;
  std::vector<double> end_spread_ns;
  std::map<int32_t, int64_t> caused_ns;  // for each rank
};
struct Sums {
  std::vector<RankSum> ranks;                                         // for each part of the run
  std::map<std::tuple<StringId, StringId, StringId>, KindSum> kinds;  // group, its ranks, name
  int64_t alone = 0;  // number of collectives without a counterpart on another rank
};

// `all` is sorted by key; [begin, end) holds one collective, once for each rank.
void add_collective(const TorchRun& run, const Collective* begin, const Collective* end, Sums& sums) {
  const auto count = end - begin;
  if (count < 2) {
    sums.alone += count;
    return;
  }
  const Collective* last =
      std::min_element(begin, end, [](const Collective& a, const Collective& b) { return a.dur_ns < b.dur_ns; });
  KindSum& kind = sums.kinds[{begin->group, begin->group_ranks, begin->name}];
  int64_t wait = 0, first_end = INT64_MAX, last_end = INT64_MIN;
  for (const Collective* c = begin; c != end; ++c) {
    const int64_t own = c->dur_ns - last->dur_ns;
    ++sums.ranks[c->part].collectives;
    sums.ranks[c->part].wait_ns += own;
    wait += own;
    kind.longest_ns = std::max(kind.longest_ns, own);
    first_end = std::min(first_end, c->start_ns + c->dur_ns);
    last_end = std::max(last_end, c->start_ns + c->dur_ns);
  }
  ++kind.count;
  kind.ranks = std::max<int64_t>(kind.ranks, count);
  kind.wait_ns += wait;
  kind.end_spread_ns.push_back(static_cast<double>(last_end - first_end));
  if (wait == 0) return;
  ++sums.ranks[last->part].last;
  sums.ranks[last->part].caused_ns += wait;
  kind.caused_ns[run.trace->parts[run.parts[last->part]].rank] += wait;
}

Sums sums_of(const TorchRun& run, const std::vector<RankCollectives>& ranks) {
  std::vector<Collective> all;
  for (const RankCollectives& rank : ranks) all.insert(all.end(), rank.list.begin(), rank.list.end());
  std::sort(all.begin(), all.end(), [](const Collective& a, const Collective& b) {
    return a.key() != b.key() ? a.key() < b.key() : a.part < b.part;
  });
  Sums sums;
  sums.ranks.resize(ranks.size());
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end].key() == all[i].key()) ++end;
    add_collective(run, &all[i], &all[i] + (end - i), sums);
    i = end;
  }
  return sums;
}

std::vector<ColumnSpec> potential_stragglers_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"is_candidate", "candidate", Type::kInteger,
           "1 for the ranks that cause most waiting, --num-candidates of them"},
          {"collective_count", "collectives", Type::kInteger, "Collectives matched with other ranks"},
          {"last_count", "came last", Type::kInteger, "Number of collectives in which it came last"},
          {"last_share", "came last", Type::kShare, "Those as a share of its collectives"},
          {"caused_wait_ns", "caused waiting", Type::kDuration, "Time that others waited for it, summed over them"},
          {"caused_wait_share", "caused waiting", Type::kShare, "That as a share of all waiting of the run"},
          {"wait_ns", "waits", Type::kDuration, "Time that it waited for others inside collectives"}};
}

Table rank_potential_stragglers_table(const TorchRun& run, const Sums& sums, size_t candidates) {
  Table table("potential-stragglers", "Who the others wait for", potential_stragglers_columns());
  int64_t total = 0;
  std::vector<size_t> order;
  for (size_t k = 0; k < sums.ranks.size(); ++k) {
    total += sums.ranks[k].caused_ns;
    if (sums.ranks[k].collectives > 0) order.push_back(k);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sums.ranks[a].caused_ns > sums.ranks[b].caused_ns; });
  for (size_t i = 0; i < order.size(); ++i) {
    const RankSum& r = sums.ranks[order[i]];
    const auto share = [](int64_t a, int64_t b) {
      return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : NAN;
    };
    table.add_row({int64_t{run.trace->parts[run.parts[order[i]]].rank},
                   int64_t{i < candidates && r.caused_ns > 0 ? 1 : 0}, r.collectives, r.last,
                   share(r.last, r.collectives), r.caused_ns, share(r.caused_ns, total), r.wait_ns});
  }
  return table;
}

std::vector<ColumnSpec> collective_waits_columns() {
  return {
      {"group", "group", Type::kText, "Process group"},
      {"group_ranks", "ranks of the group", Type::kText, "Ranks of the group in the trace, where long lists are cut"},
      {"collective", "collective", Type::kText, "Collective, or the kernel's name where there is none"},
      {"rank_count", "ranks", Type::kInteger, "Largest number of this trace's ranks in one of them"},
      {"count", "count", Type::kInteger, "Collectives matched over at least two ranks"},
      {"wait_ns", "waiting", Type::kDuration, "Summed over collectives and ranks"},
      {"max_wait_ns", "longest wait", Type::kDuration, "Longest wait of one rank in one collective"},
      {"worst_rank", "worst rank", Type::kInteger, "The rank that caused most of the waiting"},
      {"end_spread_ns", "spread of ends", Type::kDuration,
       "Median of last end − first end by the files' clocks: ranks leave together, so this is how far to "
       "trust the clocks between ranks. No other number here compares clocks"}};
}

Table kind_table(const TorchRun& run, const Sums& sums) {
  Table table("collective-waits", "Waiting inside collectives", collective_waits_columns());
  for (const auto& [key, kind] : sums.kinds) {
    const auto& [group, group_ranks, name] = key;
    int64_t worst = kNullInteger, most = 0;
    for (const auto& [rank, caused] : kind.caused_ns)
      if (caused > most) {
        most = caused;
        worst = rank;
      }
    std::vector<double> spread = kind.end_spread_ns;
    std::sort(spread.begin(), spread.end());
    const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
    table.add_row({text(group), text(group_ranks), text(name), kind.ranks, kind.count, kind.wait_ns, kind.longest_ns,
                   worst, static_cast<int64_t>(quantile(spread, 0.5))});
  }
  return table;
}

Table hta_potential_stragglers_table(const std::vector<int32_t>& ranks) {
  Table table("potential-stragglers", "Potential stragglers (HTA)", {{"rank", "rank", Type::kInteger, ""}});
  for (const int32_t rank : ranks) table.add_row({int64_t{rank}});
  return table;
}

Result<AnalysisResult> run_potential_stragglers(const AnalysisInput& input) {
  Result<std::vector<int32_t>> steps = input.options.numbers("profiler-steps");
  if (!steps) return std::move(steps).error();
  Result<int64_t> candidates = input.options.integer("num-candidates", 2, input.hta ? INT64_MIN : 0);
  if (!candidates) return std::move(candidates).error();
  Result<TorchRun> torch = make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows});
  if (!torch) return std::move(torch).error();
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  if (input.hta) {
    Result<std::vector<int32_t>> ranks =
        hta_stragglers(*torch, *steps, input.options.has("profiler-steps"), *candidates);
    if (!ranks) return std::move(ranks).error();
    result.tables.push_back(hta_potential_stragglers_table(*ranks));
    return result;
  }
  const NameFacts names = name_facts(torch->trace->names);
  std::vector<RankCollectives> ranks(torch->parts.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = collectives_of(*torch_rank(*torch, torch->parts[k]), k, *steps, names); });
  const Sums sums = sums_of(*torch, ranks);
  int64_t left_out = 0;
  for (const RankCollectives& rank : ranks) left_out += rank.left_out;
  const auto is_empty = [](const RankCollectives& rank) { return rank.list.empty() && rank.left_out == 0; };
  if (!steps->empty() && std::all_of(ranks.begin(), ranks.end(), is_empty))
    result.notes.add(problem::straggler_no_steps);
  if (left_out > 0) result.notes.add(problem::straggler_not_synchronising, {}, left_out);
  if (sums.alone > 0 && ranks.size() > 1) result.notes.add(problem::straggler_no_counterpart, {}, sums.alone);
  result.tables.push_back(rank_potential_stragglers_table(*torch, sums, static_cast<size_t>(*candidates)));
  result.tables.push_back(kind_table(*torch, sums));
  return result;
}

}  // namespace

extern const Analysis potential_stragglers_analysis;
const Analysis potential_stragglers_analysis = {
    .name = "potential-stragglers",
    .summary = "ranks that the others wait for in collectives",
    .tables = {{"potential-stragglers", "one row per rank, who causes most waiting first",
                potential_stragglers_columns},
               {"collective-waits", "one row per process group and collective", collective_waits_columns}},
    .run = run_potential_stragglers,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"profiler-steps", "LIST", "Only these profiler steps, such as 15-17; default all", ""},
                {"num-candidates", "N", "How many ranks to call candidates; default 2", ""}},
    .compat = "hta"};

}  // namespace stageline
