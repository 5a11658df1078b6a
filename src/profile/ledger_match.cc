#include "profile/ledger.h"
#include "profile/same_calls.h"

namespace stageline {
namespace {

// Returns true when timestamps of two ranks are of one clock: the ranks share a host, or the trace says so.
bool share_clock(const Trace& trace, const Part& a, const Part& b) {
  if (trace.clock == ClockState::kShared || &a == &b) return true;
  return trace.clock != ClockState::kPerRank && !a.machine_name.empty() && a.machine_name == b.machine_name;
}

// One call, or one peer of a batch of messages. Entries of one instance have equal keys and different ranks.
struct Entry {
  std::array<int64_t, 5> key;
  const LedgerCall* call;
  const LedgerPeer* peer;  // of messages
  int32_t low, high;
};
// By what calls are matched; the first element of a key. All ranks must have equally many of the last two.
enum MatchBy : int64_t { kById, kByNumber, kByOrder, kByPair };

// Joins the groups of ranks. A group is its members; its name distinguishes two with the same members where all ranks
// have the same names for them.
class Groups {
 public:
  explicit Groups(const std::vector<RankCalls>& ranks) {
    for (size_t k = 0; k < ranks.size(); ++k)
      for (const LedgerGroup& group : ranks[k].groups) names_[group.name][k].insert(group.own_name);
    for (auto& [group, by_rank] : names_)
      for (const auto& [rank, names] : by_rank)
        if (names != by_rank.begin()->second) differ_.insert(group);
  }

  int32_t join(const LedgerGroup& group) {
    const StringId name = differ_.contains(group.name) ? 0 : group.own_name;
    const auto [at, fresh] = known_.try_emplace({group.name, name}, static_cast<int32_t>(all.size()));
    if (fresh) all.push_back(group);
    return at->second;
  }

  std::vector<LedgerGroup> all;

 private:
  std::map<std::string, std::map<size_t, std::set<StringId>>> names_;  // of each group on each rank
  std::set<std::string> differ_;
  std::map<std::pair<std::string, StringId>, int32_t> known_;
};

class LedgerMatcher {
  using enum CollectiveKind;

 public:
  LedgerMatcher(const TorchRun& run, std::vector<RankCalls>& ranks) : run_(run) {
    Groups groups(ranks);
    for (RankCalls& rank : ranks) {
      auto joined = mapped<int32_t>(rank.groups, [&](const LedgerGroup& group) { return groups.join(group); });
      for (LedgerCall& call : rank.calls)
        if (call.group >= 0) call.group = joined[static_cast<size_t>(call.group)];
      out_.calls.push_back(std::move(rank.calls));
      computation_.push_back(std::move(rank.computation));
    }
    out_.groups = std::move(groups.all);
  }

  Ledger match() {
    for (const std::vector<LedgerCall>& calls : out_.calls)
      for (const LedgerCall& call : calls) add_entries(call);
    each_same(
        entries_, [](const Entry& e) -> const auto& { return e.key; },
        [](const Entry& e) { return e.call->rank_index; },
        [&](const SameCalls<Entry>& ranks) {
          const bool lost = ranks.size() < 2 || (ranks[0][0].key[0] >= kByOrder && !equally_many(ranks));
          each_instance(ranks, [&](const std::vector<Entry>& one) {
            if (!lost && one.size() > 1) return add_instance(one);
            for (const Entry& entry : one) out_.unmatched.push_back({entry.call, entry.low, entry.high});
          });
        });
    return std::move(out_);
  }

 private:
  int32_t rank_of(const LedgerCall& call) const { return run_.ranks[run_.parts[call.rank_index]]; }
  const Part& part_of(const LedgerCall& call) const { return run_.trace->parts[run_.parts[call.rank_index]]; }

  void add_entries(const LedgerCall& call) {
    const auto group = int64_t{call.group}, kind = static_cast<int64_t>(call.kind);
    out_.has_steps |= call.step >= 0;
    if (call.kind == kSendRecv) {
      const bool known = std::ranges::all_of(call.peers, [](const LedgerPeer& peer) { return peer.rank >= 0; });
      if (!known || call.peers.empty()) return out_.unmatched.push_back({&call});
      for (const LedgerPeer& peer : call.peers) {
        const auto [low, high] = std::minmax({rank_of(call), peer.rank});
        entries_.push_back({{kByPair, group, low, high, peer.sender}, &call, &peer, low, high});
      }
    } else if (call.kind == kUnknown || (call.group < 0 && call.comms_id == 0)) {
      out_.unmatched.push_back({&call});
    } else if (call.comms_id != 0) {
      entries_.push_back({{kById, call.comms_id, 0, 0, 0}, &call, nullptr, -1, -1});
    } else if (call.number >= 0) {
      entries_.push_back({{kByNumber, group, kind, call.number, 0}, &call, nullptr, -1, -1});
    } else {
      const int64_t bytes = call.kind == kAllToAllV ? -1 : call.bytes;
      entries_.push_back({{kByOrder, group, kind, call.step, bytes}, &call, nullptr, -1, -1});
    }
  }

  void add_instance(const std::vector<Entry>& entries) {
    const LedgerCall& first = *entries[0].call;
    LedgerInstance instance{.kind = first.kind,
                            .group = first.group,
                            .low = entries[0].low,
                            .high = entries[0].high,
                            .begin = out_.parts.size()};
    for (const Entry& entry : entries) {
      const int64_t bytes = entry.peer ? entry.peer->bytes() : entry.call->bytes;
      instance.bytes = &entry == entries.data()          ? bytes
                       : bytes < 0 || instance.bytes < 0 ? -1
                                                         : std::max(instance.bytes, bytes);
      out_.parts.push_back({entry.call});
    }
    instance.end = out_.parts.size();
    const int64_t wanted = entries[0].peer || first.group < 0 ? 2 : out_.groups[static_cast<size_t>(first.group)].size;
    instance.complete = std::ssize(entries) >= wanted;
    if (instance.complete) measure(instance);
    out_.instances.push_back(instance);
  }

  // When the last rank came that this one needs: of an all-to-all-v only those with bytes for or from it.
  int64_t last_needed(const LedgerPart* begin, const LedgerPart* end, const LedgerCall& call, int64_t last_ns) const {
    if (call.kind != kAllToAllV || call.group < 0) return last_ns;
    const std::vector<int32_t>& members = out_.groups[static_cast<size_t>(call.group)].members;
    if (members.empty() || call.sent_to.size() != members.size() || call.received_from.size() != members.size())
      return last_ns;
    int64_t needed = call.start_ns;
    for (const LedgerPart* other = begin; other != end; ++other) {
      const auto j = static_cast<size_t>(std::ranges::find(members, rank_of(*other->call)) - members.begin());
      if (j < members.size() && (call.sent_to[j] > 0 || call.received_from[j] > 0))
        needed = std::max(needed, other->call->start_ns);
    }
    return needed;
  }

  double bus_bytes(const LedgerInstance& instance, const LedgerPart* begin, const LedgerPart* end) const {
    if (instance.kind != kAllToAllV)
      return static_cast<double>(instance.bytes) * bus_factor(instance.kind, std::max<int64_t>(end - begin, 0));
    int64_t max = 0;
    for (const LedgerPart* part = begin; part != end; ++part) {
      const LedgerCall& call = *part->call;
      int64_t own = 0;
      if (call.group >= 0) {
        const std::vector<int32_t>& members = out_.groups[static_cast<size_t>(call.group)].members;
        const size_t at = static_cast<size_t>(std::ranges::find(members, rank_of(call)) - members.begin());
        if (at < call.sent_to.size()) own = call.sent_to[at];
      }
      max = std::max(max, call.bytes - own);
    }
    return static_cast<double>(max);
  }

  void measure(LedgerInstance& instance) {
    LedgerPart* const begin = out_.parts.data() + instance.begin;
    LedgerPart* const end = out_.parts.data() + instance.end;
    bool shared = true, timed = true;
    int64_t last_ns = INT64_MIN, first_end = INT64_MAX, last_end = INT64_MIN, shortest = INT64_MAX;
    for (const LedgerPart* part = begin; part != end; ++part) {
      const LedgerCall& call = *part->call;
      shared = shared && share_clock(*run_.trace, part_of(*begin->call), part_of(call));
      timed = timed && call.end_ns >= 0;
      last_ns = std::max(last_ns, call.start_ns);
      first_end = std::min(first_end, call.end_ns);
      last_end = std::max(last_end, call.end_ns);
      shortest = std::min(shortest, call.end_ns - call.start_ns);
    }
    if (instance.bytes >= 0) instance.bus_bytes = bus_bytes(instance, begin, end);
    if (!timed) {
      instance.took_ns = -1;
      return;
    }
    int64_t longest_transfer = 0;
    for (LedgerPart* part = begin; part != end; ++part) {
      const LedgerCall& call = *part->call;
      const int64_t length = call.end_ns - call.start_ns;
      const int64_t since_last = shared ? call.end_ns - last_needed(begin, end, call, last_ns) : shortest;
      part->transfer_ns = std::clamp<int64_t>(since_last, 0, std::max<int64_t>(length, 0));
      part->wait_ns = length - part->transfer_ns;
      longest_transfer = std::max(longest_transfer, part->transfer_ns);
      const CoveredTime& computation = computation_[call.rank_index];
      const int64_t middle = call.end_ns - part->transfer_ns;
      part->exposed_wait_ns = part->wait_ns - computation.within(call.start_ns, middle);
      part->exposed_transfer_ns = part->transfer_ns - computation.within(middle, call.end_ns);
    }
    instance.took_ns = !shared                       ? shortest
                       : instance.kind == kSendRecv  ? first_end - last_ns
                       : instance.kind == kAllToAllV ? longest_transfer
                                                     : last_end - last_ns;
    instance.took_ns = std::max<int64_t>(instance.took_ns, 0);
    instance.basis = shared                                                      ? TransferBasis::kClock
                     : synchronises(instance.kind) || instance.kind == kSendRecv ? TransferBasis::kDurations
                     : has_root(instance.kind)                                   ? TransferBasis::kAtMost
                                                                                 : TransferBasis::kAtLeast;
  }

  const TorchRun& run_;
  Ledger out_;
  std::vector<CoveredTime> computation_;  // of each part of the run
  std::vector<Entry> entries_;
};

}  // namespace

Ledger make_ledger(const TorchRun& run) {
  std::vector<RankCalls> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    const auto index = static_cast<uint32_t>(k);
    ranks[k] = run.trace->parts[run.parts[k]].flight_calls.empty()
                   ? rank_calls(*torch_rank(run, run.parts[k]), *run.trace, index)
                   : flight_rank_calls(run, run.parts[k], index);
  });
  return LedgerMatcher(run, ranks).match();
}

}  // namespace stageline
