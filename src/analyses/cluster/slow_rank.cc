// Finds which rank is late in each collective, by how much, and what that costs the others. Definitions:
// docs/analyses/slow-rank.md.
#include "analyses/cluster/cluster.h"
#include "analyses/cluster/msprof.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

constexpr int64_t kLateNs = 10'000;  // a rank gets a vote only when it comes this much later than the second last

struct RankSum {
  int64_t collectives = 0, votes = 0, lost_ns = 0, lost_by_clock_ns = 0, wait_ns = 0;
};
struct GroupSum {
  int64_t collectives = 0, ranks = 0, votes = 0, wait_ns = 0;
  std::map<int64_t, RankSum> of;  // for each rank
  StringId description = 0;
};
struct Late {
  const CommunicationOp* op = nullptr;
  size_t collective = 0;
  int64_t rank = 0, ranks = 0, late_ns = 0, late_by_clock_ns = kNullInteger, lost_ns = 0;
};

struct Sums {
  std::vector<RankSum> ranks;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, GroupSum> groups;
  std::vector<Late> late;
  bool clocks = false;
};

bool clocks_agree(const Trace& trace) {
  return trace.clock == ClockState::kShared || trace.clock == ClockState::kAligned ||
         trace.alignment != AlignState::kRaw;
}

// The time that the others lose, computed from starts on one clock: each waits from its own start to the last start,
// but no longer than its operation takes.
struct ByClock {
  size_t last = 0;
  int64_t late_ns = 0, lost_ns = 0;
};
ByClock by_clock(const TorchRun& run, CommunicationOp* const* begin, CommunicationOp* const* end) {
  ByClock out;
  std::vector<int64_t> starts;
  for (auto at = begin; at != end; ++at)
    starts.push_back(
        run.trace->common_ns(static_cast<int32_t>(run.parts[(*at)->rank_index]), (*at)->start_ns + run.zero_ns));
  out.last = std::ranges::max_element(starts) - starts.begin();
  int64_t second = INT64_MIN;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (i == out.last) continue;
    second = std::max(second, starts[i]);
    out.lost_ns += std::min(starts[out.last] - starts[i], begin[i]->dur_ns);
  }
  out.late_ns = starts[out.last] - second;
  return out;
}

Sums sums_of(const TorchRun& run, const Matched& matched, int64_t late_ns, size_t rank_count) {
  Sums sums;
  sums.ranks.resize(rank_count);
  sums.clocks = clocks_agree(*run.trace);
  for (size_t c = 0; c < matched.count(); ++c) {
    CommunicationOp* const* begin = matched.members.data() + matched.begin[c];
    CommunicationOp* const* end = matched.members.data() + matched.begin[c + 1];
    const auto shorter = [](const CommunicationOp* a, const CommunicationOp* b) { return a->dur_ns < b->dur_ns; };
    const CommunicationOp* last = *std::min_element(begin, end, shorter);
    const auto text = [&](StringId id) { return run.trace->names.text(id); };
    GroupSum& group = sums.groups[{text(last->group), text(last->group_ranks), text(last->kind)}];
    ++group.collectives;
    group.ranks = std::max<int64_t>(group.ranks, end - begin);
    group.description = last->description;
    int64_t second = INT64_MAX, lost = 0;
    for (auto at = begin; at != end; ++at) {
      RankSum& rank = sums.ranks[(*at)->rank_index];
      ++rank.collectives;
      rank.wait_ns = sum_or_limit(rank.wait_ns, (*at)->wait_ns());
      lost = sum_or_limit(lost, (*at)->wait_ns());
      if (*at != last) second = std::min(second, (*at)->dur_ns);
    }
    group.wait_ns = sum_or_limit(group.wait_ns, lost);
    const int64_t number = run.ranks[run.parts[last->rank_index]];
    Late late{last, c, number, end - begin, second - last->dur_ns, kNullInteger, lost};
    RankSum& rank = sums.ranks[last->rank_index];
    rank.lost_ns = sum_or_limit(rank.lost_ns, lost);
    group.of[number].lost_ns = sum_or_limit(group.of[number].lost_ns, lost);
    if (sums.clocks) {
      const ByClock clock = by_clock(run, begin, end);
      sums.ranks[begin[clock.last]->rank_index].lost_by_clock_ns += clock.lost_ns;
      if (begin[clock.last] == last) late.late_by_clock_ns = clock.late_ns;
    }
    if (late.late_ns < late_ns) continue;
    ++rank.votes;
    ++group.votes;
    ++group.of[number].votes;
    sums.late.push_back(late);
  }
  return sums;
}

Table rank_slow_rank_table(const TorchRun& run, const Sums& sums) {
  Table table(declared_table("slow-rank/slow-ranks"));
  std::vector<size_t> order;
  int64_t whole = 0;
  for (size_t k = 0; k < sums.ranks.size(); ++k) {
    whole = sum_or_limit(whole, sums.ranks[k].lost_ns);
    if (sums.ranks[k].collectives > 0) order.push_back(k);
  }
  sort_stably(order, std::greater(), [&](size_t a) { return sums.ranks[a].lost_ns; });
  for (const size_t k : order) {
    const RankSum& r = sums.ranks[k];
    table.add_row({int64_t{run.ranks[run.parts[k]]}, r.collectives, r.votes, share_of(r.votes, r.collectives),
                   r.lost_ns, share_of(r.lost_ns, whole), sums.clocks ? r.lost_by_clock_ns : kNullInteger, r.wait_ns});
  }
  return table;
}

Table group_table(const TorchRun& run, const Sums& sums) {
  Table table(declared_table("slow-rank/slow-rank-groups"));
  for (const auto& [key, group] : sums.groups) {
    const auto& [name, members, kind] = key;
    const auto worst = std::ranges::max_element(group.of, {}, [](const auto& a) { return a.second.lost_ns; });
    const bool any = worst != group.of.end() && worst->second.lost_ns > 0;
    table.add_row({std::string(name), std::string(run.trace->names.text(group.description)), std::string(members),
                   std::string(kind), group.ranks, group.collectives, group.votes, group.wait_ns,
                   any ? worst->first : kNullInteger, any ? worst->second.votes : 0, any ? worst->second.lost_ns : 0});
  }
  return table;
}

// The work that the late rank did beyond the median of its peers since its last operation of the same group; on its
// host, between the launches of the two.
struct LateEvidence {
  std::string where;      // "device", "host"; "" where neither explains half of the delay
  std::string name;       // of the kernels, or of the calls and ranges of the host, that took longest beyond the peers'
  int64_t longer_ns = 0;  // by how much they did
};

using Times = std::map<StringId, double>;  // of rows by name

struct Before {  // what one rank did before one collective
  Interval device{0, 0}, host{0, 0};
  Times on_device, on_host;
};

int64_t launch_ns(const TorchRun& run, const Part& part, const CommunicationOp& op) {
  const uint32_t launch = part.slices.partner[op.slice];
  return launch == kNoSliceIndex ? op.start_ns : part.slices.start_ns[launch] - run.zero_ns;
}

Before before_op(const TorchRun& run, const Part& part, const std::vector<CommunicationOp>& ops,
                 const CommunicationOp& op) {
  Before out{{INT64_MIN, op.start_ns}, {INT64_MIN, launch_ns(run, part, op)}, {}, {}};
  for (const CommunicationOp& other : ops) {
    if (other.start_ns >= op.start_ns) break;
    if (other.group != op.group) continue;
    out.device.start = std::max(out.device.start, other.end_ns());
    out.host.start = std::max(out.host.start, launch_ns(run, part, other));
  }
  return out;
}

// The name that takes longest beyond the median of the others.
LateEvidence longest_beyond(const TorchRun& run, const Times& own, const std::vector<const Times*>& others,
                            const char* where) {
  LateEvidence out{where, {}, 0};
  for (const auto& [name, ns] : own) {
    std::vector<double> theirs;
    for (const Times* times : others) theirs.push_back(value_at(*times, name));
    const auto longer = static_cast<int64_t>(ns - (theirs.empty() ? 0 : median_of(std::move(theirs))));
    if (longer > out.longer_ns) out.longer_ns = longer, out.name = std::string(run.trace->names.text(name));
  }
  return out;
}

std::vector<LateEvidence> late_evidence(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ops,
                                        const Matched& matched, const std::vector<Late>& collectives) {
  const auto members_of = [&](size_t c) {
    const size_t place = collectives[c].collective;
    return std::span(matched.members).subspan(matched.begin[place], matched.begin[place + 1] - matched.begin[place]);
  };
  std::vector<std::map<size_t, Before>> ranks(run.parts.size());  // by collective
  parallel_for(ranks.size(), [&](size_t k) {
    const auto rank = torch_rank(run, run.parts[k]);
    for (size_t c = 0; c < collectives.size(); ++c)
      for (const CommunicationOp* op : members_of(c))
        if (op->rank_index == k) ranks[k].emplace(c, before_op(run, *rank->part, ops[k], *op));
    for (auto& [c, before] : ranks[k])
      for (const TorchRow& row : rank->rows) {
        const Interval& window = row.on_device ? before.device : before.host;
        if (row.start_ns < window.start || row.start_ns >= window.end) continue;
        if (row.on_device && row.kernel != KernelClass::kCommunication)
          before.on_device[row.name] += static_cast<double>(row.dur_ns);
        if (!row.on_device && is_host(row.category))
          before.on_host[row.name] += static_cast<double>(std::min(row.end_ns(), window.end) - row.start_ns);
      }
  });
  std::vector<LateEvidence> out;
  for (size_t c = 0; c < collectives.size(); ++c) {
    const CommunicationOp* last = collectives[c].op;
    const int64_t late_ns = collectives[c].late_ns;
    std::vector<const Times*> devices, hosts;
    for (const CommunicationOp* op : members_of(c)) {
      if (op == last) continue;
      devices.push_back(&ranks[op->rank_index].at(c).on_device);
      hosts.push_back(&ranks[op->rank_index].at(c).on_host);
    }
    const Before& own = ranks[last->rank_index].at(c);
    out.push_back(longest_beyond(run, own.on_device, devices, "device"));
    if (2 * out.back().longer_ns < late_ns) out.back() = longest_beyond(run, own.on_host, hosts, "host");
    if (2 * out.back().longer_ns < late_ns) out.back() = {};
  }
  return out;
}

Table late_table(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ops, const Matched& matched,
                 Sums& sums, size_t max) {
  Table table(declared_table("slow-rank/late-collectives"));
  sort_stably(sums.late, [](const Late& a, const Late& b) {
    return a.lost_ns != b.lost_ns ? a.lost_ns > b.lost_ns
                                  : std::pair(a.op->start_ns, a.rank) < std::pair(b.op->start_ns, b.rank);
  });
  sums.late.resize(std::min(max, sums.late.size()));
  const std::vector<LateEvidence> evidence = late_evidence(run, ops, matched, sums.late);
  for (size_t i = 0; i < sums.late.size(); ++i) {
    const Late& late = sums.late[i];
    table.add_row({std::string(run.trace->names.text(late.op->name)),
                   std::string(run.trace->names.text(late.op->group)),
                   late.op->step < 0 ? kNullInteger : int64_t{late.op->step}, late.rank, late.ranks, late.op->start_ns,
                   late.late_ns, late.late_by_clock_ns, late.lost_ns, evidence[i].where, evidence[i].name,
                   evidence[i].name.empty() ? kNullInteger : evidence[i].longer_ns});
  }
  return table;
}

Table clocks_table(const TorchRun& run) {
  Table table(declared_table("slow-rank/device-clocks"));
  for (const size_t p : run.parts)
    for (const ClockTime& clock : clock_times(run.trace->parts[p]))
      table.add_row({int64_t{run.ranks[p]}, clock.mhz, clock.recorded_ns, clock.computing_ns});
  return table;
}

}  // namespace

Result<AnalysisResult> run_slow_rank(const AnalysisInput& input) {
  TRY(late_ns, input.options.duration_ns("late", kLateNs));
  TRY(max, input.options.integer("top", 15, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  AnalysisResult result;
  note_level_none(input, result.notes);
  if (input.msprof) return result.with(msprof_slow_rank(*torch, ops)).with(msprof_clocks(*torch));
  const Matched matched = match_collectives(ops);
  Sums sums = sums_of(*torch, matched, *late_ns, ops.size());
  if (input.for_report && matched.count() == 0) return result;
  note_unmatched(matched, ops.size(), result.notes);
  result.add(rank_slow_rank_table(*torch, sums), group_table(*torch, sums),
             late_table(*torch, ops, matched, sums, *max));
  if (Table clocks = clocks_table(*torch); clocks.row_count() > 0) result.tables.push_back(std::move(clocks));
  return result;
}

}  // namespace stageline
