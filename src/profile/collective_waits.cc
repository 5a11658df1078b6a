#include "profile/collective_waits.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stageline {
namespace {

// Collectives that a rank may leave before the others have come.
constexpr std::array<std::string_view, 10> kLeaveEarly = {
    "send", "recv", "receive", "batchSendRecv", "broadcast", "reduce", "gather", "scatter", "wait", "_broadcast_oop"};

}  // namespace

CollectiveCalls::CollectiveCalls(const StringPool& names) {
  for (StringId id = 0; id < names.size(); ++id) {
    const std::string_view name = names.text(id);
    const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    leaves_early_.push_back(std::find(kLeaveEarly.begin(), kLeaveEarly.end(), name) != kLeaveEarly.end());
    send_receive_.push_back(holds("SendRecv"));
    all_to_all_.push_back(holds("all_to_all") || holds("alltoall") || holds("All2All") || holds("all2all"));
  }
}

// NCCL's SendRecv kernel is also used for all-to-all. When there are no arguments, the operators around its launch tell
// which it is.
bool CollectiveCalls::inside_all_to_all(const Slices& s, uint32_t slice) const {
  uint32_t at = s.parent[slice] != kNoSliceIndex ? s.parent[slice] : s.partner[slice];
  while (at != kNoSliceIndex) {
    if (all_to_all_[s.name_id[at]]) return true;
    at = s.parent[at];
  }
  return false;
}

RankCalls CollectiveCalls::of(const TorchRank& rank, size_t part, const std::vector<int32_t>& steps) const {
  RankCalls out;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kCommunication) continue;
    if (!steps.empty() && !std::binary_search(steps.begin(), steps.end(), row.iteration)) continue;
    MatchedCall c;
    c.part = part;
    c.start_ns = row.start_ns;
    c.dur_ns = row.dur_ns;
    const CollectiveFact* fact = fact_of(rank.part->collectives, row.slice);
    const bool tells = fact && fact->name != 0;
    c.name = tells ? fact->name : row.name;
    if (leaves_early_[c.name] ||
        (!tells && send_receive_[row.name] && !inside_all_to_all(rank.part->slices, row.slice))) {
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
  std::sort(out.list.begin(), out.list.end(), [](const MatchedCall& a, const MatchedCall& b) {
    return a.kind() != b.kind() ? a.kind() < b.kind() : a.start_ns < b.start_ns;
  });
  for (size_t i = 1; i < out.list.size(); ++i)
    if (out.list[i].kind() == out.list[i - 1].kind()) out.list[i].position = out.list[i - 1].position + 1;
  return out;
}

namespace {

// `all` is sorted by key; [begin, end) holds one collective, once for each rank.
void add_collective(const TorchRun& run, const MatchedCall* begin, const MatchedCall* end, CollectiveSums& sums) {
  const auto count = end - begin;
  if (count < 2) {
    sums.alone += count;
    return;
  }
  const MatchedCall* last =
      std::min_element(begin, end, [](const MatchedCall& a, const MatchedCall& b) { return a.dur_ns < b.dur_ns; });
  KindWaits& kind = sums.kinds[{begin->group, begin->group_ranks, begin->name}];
  int64_t wait = 0, first_end = INT64_MAX, last_end = INT64_MIN;
  for (const MatchedCall* c = begin; c != end; ++c) {
    const int64_t own = c->dur_ns - last->dur_ns;
    ++sums.ranks[c->part].collectives;
    sums.ranks[c->part].wait_ns += own;
    sums.ranks[c->part].transfer_ns += last->dur_ns;
    wait += own;
    kind.longest_ns = std::max(kind.longest_ns, own);
    first_end = std::min(first_end, c->start_ns + c->dur_ns);
    last_end = std::max(last_end, c->start_ns + c->dur_ns);
  }
  ++kind.count;
  kind.ranks = std::max<int64_t>(kind.ranks, count);
  kind.wait_ns += wait;
  kind.end_spread_ns.push_back(last_end - first_end);
  if (wait == 0) return;
  // On one clock the starts say who came last. Where that is not the shortest call, ranks do not leave together (gloo),
  // and nobody is known to have kept the others.
  if (run.trace->clock == ClockState::kShared &&
      std::any_of(begin, end, [&](const MatchedCall& c) { return c.start_ns > last->start_ns; }))
    return;
  ++sums.ranks[last->part].last;
  sums.ranks[last->part].caused_ns += wait;
  kind.caused_ns[run.trace->parts[run.parts[last->part]].rank] += wait;
}

}  // namespace

CollectiveSums collective_sums(const TorchRun& run, const std::vector<RankCalls>& ranks) {
  std::vector<MatchedCall> all;
  for (const RankCalls& rank : ranks) all.insert(all.end(), rank.list.begin(), rank.list.end());
  std::sort(all.begin(), all.end(), [](const MatchedCall& a, const MatchedCall& b) {
    return a.key() != b.key() ? a.key() < b.key() : a.part < b.part;
  });
  CollectiveSums sums;
  sums.ranks.resize(ranks.size());
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end].key() == all[i].key()) ++end;
    add_collective(run, &all[i], &all[i] + (end - i), sums);
    i = end;
  }
  return sums;
}

}  // namespace stageline
