#include "base/json_members.h"
#include "model/lanes.h"
#include "model/torch_facts.h"
#include "profile/ledger.h"

namespace stageline {
namespace {

// "[0, 1, 2]" → {0, 1, 2}; empty where the list was cut ("...") or is none.
template <class Number> std::vector<Number> list_of(std::string_view text) {
  std::vector<Number> out;
  for (const JsonMember& one : json_members(text)) {
    const auto number = json_integer(one.value);
    if (!number || *number < 0 || *number > INT32_MAX) return {};
    out.push_back(static_cast<Number>(*number));
  }
  return text.find("...") == std::string_view::npos ? out : std::vector<Number>{};
}

// Returns bytes to each member. Lists count rows of dimension 0 or elements; both are right as shares of all elements.
// `sum` becomes what they add up to.
std::vector<int64_t> split_bytes(std::string_view text, int64_t elements, int64_t element_bytes, int64_t& sum) {
  std::vector<int64_t> split = list_of<int64_t>(text);
  if (split.empty()) return split;
  sum = sum_over<int64_t>(split);
  if (sum == 0) return elements == 0 ? split : std::vector<int64_t>{};
  if (elements % sum != 0 || elements > INT64_MAX / element_bytes) return {};
  for (int64_t& part : split) part *= elements / sum * element_bytes;
  return split;
}

class CallReader {
 public:
  CallReader(const TorchRank& rank, const Trace& trace, uint32_t rank_index)
      : rank_(rank), trace_(trace), part_(*rank.part), rank_index_(rank_index), has_fact_(part_.slices.size()) {
    for (const CollectiveFact& fact : part_.collectives) has_fact_[fact.slice] = fact.name != 0;
    for (const JsonMember& group :
         json_members(json_member(meta_json(part_, "distributedInfo"), "pg_config"), kMaxGroups))
      listed_[json_text(json_member(group.value, "pg_name"))] = list_of<int32_t>(json_member(group.value, "ranks"));
  }

  RankCalls read() {
    std::vector<const TorchRow*> kernels, operations;
    std::vector<Interval> computation;
    for (const TorchRow& row : rank_.rows) {
      if (row.category == Category::kCollective && known_fact(row.slice)) operations.push_back(&row);
      if (!row.on_device) continue;
      if (row.kernel == KernelClass::kCommunication) kernels.push_back(&row);
      if (row.kernel == KernelClass::kComputation) computation.push_back({row.start_ns, row.end_ns()});
    }
    out_.computation = CoveredTime(union_of(std::move(computation)));
    // Recordings have NCCL's own operations with the times of their kernels, which say nothing themselves.
    if (!operations.empty()) kernels = std::move(operations);
    std::ranges::sort(kernels, {}, [](const TorchRow* row) { return std::pair(row->start_ns, row->slice); });
    find_records(kernels);
    for (const TorchRow* row : kernels) add(*row);
    settle_numbers();
    return std::move(out_);
  }

 private:
  static constexpr size_t kMaxGroups = 65'536;

  const CollectiveFact* known_fact(uint32_t slice) const {
    const CollectiveFact* fact = has_fact_[slice] ? fact_of(part_.collectives, slice) : nullptr;
    return fact && collective_kind(trace_.names.text(fact->name)) != CollectiveKind::kUnknown ? fact : nullptr;
  }

  // The nearest recorded call around a kernel's launch. The operator that owns the kernel by number counts only if it
  // is still running then: coalesced calls have ended.
  uint32_t record_around(uint32_t kernel) const {
    const Slices& s = part_.slices;
    const uint32_t launch = s.partner[kernel];
    for (uint32_t at : {launch, s.parent[kernel]})
      for (; at != kNoSliceIndex; at = s.parent[at])
        if (known_fact(at) && (launch == kNoSliceIndex || s.end_ns(at) > s.start_ns[launch])) return at;
    return kNoSliceIndex;
  }

  // Calls that were coalesced launched nothing themselves: one kernel follows them at the end of their group. So a
  // kernel without arguments and without a call around it has all calls of its thread before it that are not taken.
  void find_records(const std::vector<const TorchRow*>& kernels) {
    const Slices& s = part_.slices;
    std::vector<bool> taken(s.size());
    std::map<size_t, std::vector<const TorchRow*>> waiting;  // by lane of the launch
    for (const TorchRow* row : kernels) {
      const uint32_t around = record_around(row->slice);
      if (around != kNoSliceIndex) taken[around] = true;
      if (around != kNoSliceIndex || known_fact(row->slice) || s.partner[row->slice] == kNoSliceIndex ||
          !may_be_coalesced(row->name))
        continue;
      waiting[lane_of(part_, s.partner[row->slice])].push_back(row);
    }
    for (auto& [lane, rows] : waiting) {
      const auto launch_ns = [&](const TorchRow* row) { return s.start_ns[s.partner[row->slice]]; };
      sort_stably(rows, {}, launch_ns);
      uint32_t next = static_cast<uint32_t>(part_.lanes[lane].begin);
      for (const TorchRow* row : rows)
        for (; next < part_.lanes[lane].end && s.start_ns[next] < launch_ns(row); ++next)
          if (!taken[next] && s.end_ns(next) <= launch_ns(row))
            if (const CollectiveFact* fact = known_fact(next)) coalesced_[row->slice].push_back(fact);
    }
  }

  // Kernels of other makers carry no arguments of c10d, whatever was called before.
  bool may_be_coalesced(StringId kernel) const {
    const std::string_view name = trace_.names.text(kernel);
    return name.starts_with("nccl") || name.starts_with("void nccl") || name.find("rccl") != std::string_view::npos;
  }

  void add(const TorchRow& row) {
    LedgerCall call{.rank_index = rank_index_,
                    .slice = row.slice,
                    .step = row.iteration,
                    .kernel = row.name,
                    .start_ns = row.start_ns,
                    .end_ns = row.end_ns()};
    if (const KernelFact* kernel = fact_of(part_.kernels, row.slice))
      if (const auto grid = json_members(trace_.names.text(kernel->grid), 1); !grid.empty())
        call.channels = static_cast<int32_t>(json_integer(grid[0].value).value_or(-1));
    if (const std::string_view name = trace_.names.text(row.name); name.starts_with("nccl:"))
      if (const size_t comma = name.find(", "); comma != std::string_view::npos)
        call.channels =
            static_cast<int32_t>(parse_int(name.substr(comma + 2, name.find(' ', comma + 2) - comma - 2)).value_or(-1));
    if (const CollectiveFact* own = known_fact(row.slice)) {
      take(*own, call, true);
    } else if (const uint32_t around = record_around(row.slice); around != kNoSliceIndex) {
      take(*known_fact(around), call, true);
    } else if (const auto found = coalesced_.find(row.slice); found != coalesced_.end()) {
      bool first = true;
      for (const CollectiveFact* fact : found->second) take(*fact, call, std::exchange(first, false));
    }
    if (call.kind == CollectiveKind::kSendRecv) {
      LedgerPeer all;
      for (const LedgerPeer& peer : call.peers) {
        all.sent = peer.sent < 0 || all.sent < 0 ? -1 : sum_or_limit(all.sent, peer.sent);
        all.received = peer.received < 0 || all.received < 0 ? -1 : sum_or_limit(all.received, peer.received);
      }
      call.bytes = all.bytes();
    }
    out_.calls.push_back(std::move(call));
  }

  void take(const CollectiveFact& fact, LedgerCall& call, bool first) {
    const CollectiveKind kind = collective_kind(trace_.names.text(fact.name));
    call.kind = first || call.kind == kind ? kind : CollectiveKind::kUnknown;
    // XLA's operations have members, which its profiles do not name.
    if (fact.group != 0 || fact.group_ranks != 0 || fact.group_size > 0) call.group = group_of(fact);
    call.comms_id = fact.comms_id;
    call.number = fact.seq;
    const int64_t element = dtype_bytes(trace_.names.text(fact.dtype));
    const bool has_elements = fact.in_elements > 0 || fact.out_elements > 0;
    const int64_t bytes =
        has_elements ? message_bytes(kind, fact.group_size, fact.in_elements, fact.out_elements, element) : fact.bytes;
    if (first) call.bytes = bytes;
    else call.bytes = call.bytes < 0 || bytes < 0 ? -1 : sum_or_limit(call.bytes, bytes);
    if (kind == CollectiveKind::kSendRecv) take_message(fact, bytes, call);
    if (kind == CollectiveKind::kAllToAllV && first && element > 0) {
      call.sent_to = split_bytes(trace_.names.text(fact.in_split), fact.in_elements, element, call.rows_sent);
      call.received_from =
          split_bytes(trace_.names.text(fact.out_split), fact.out_elements, element, call.rows_received);
    }
  }

  void take_message(const CollectiveFact& fact, int64_t bytes, LedgerCall& call) {
    const bool sends = trace_.names.text(fact.name).find("end") != std::string_view::npos;
    const std::vector<int32_t> none;
    const std::vector<int32_t>& members = call.group < 0 ? none : out_.groups[static_cast<size_t>(call.group)].members;
    int64_t peer = sends ? fact.dst_rank : fact.src_rank;
    if (peer < 0 && fact.peer >= 0 && fact.peer < std::ssize(members)) peer = members[static_cast<size_t>(fact.peer)];
    if (peer == rank_.rank || peer > INT32_MAX) peer = -1;
    auto at = std::ranges::find(call.peers, static_cast<int32_t>(peer), &LedgerPeer::rank);
    if (at == call.peers.end()) at = call.peers.insert(at, {static_cast<int32_t>(peer)});
    int64_t& sum = sends ? at->sent : at->received;
    sum = bytes < 0 || sum < 0 ? -1 : sum_or_limit(sum, bytes);
  }

  int32_t group_of(const CollectiveFact& fact) {
    const auto [at, fresh] =
        groups_.try_emplace({fact.group, fact.group_ranks, fact.group_size}, static_cast<int32_t>(out_.groups.size()));
    if (!fresh) return at->second;
    LedgerGroup group;
    group.own_name = fact.group;
    group.description = fact.group_description;
    group.members = list_of<int32_t>(trace_.names.text(fact.group_ranks));
    const std::string name(trace_.names.text(fact.group));
    if (const auto listed = listed_.find(name); group.members.empty() && listed != listed_.end())
      group.members = listed->second;
    group.size = fact.group_size > 0 ? fact.group_size : std::ssize(group.members);
    group.name = group.members.empty() ? "? " + name + " " + std::to_string(group.size) : rank_ranges(group.members);
    out_.groups.push_back(std::move(group));
    return at->second;
  }

  // A number that never moves within a group is none: torchcomms writes 0 everywhere.
  void settle_numbers() {
    struct Numbers {
      int64_t calls = 0, first = -1;
      bool moves = false;
    };
    std::vector<Numbers> of(out_.groups.size());
    for (const LedgerCall& call : out_.calls) {
      if (call.group < 0) continue;
      Numbers& numbers = of[static_cast<size_t>(call.group)];
      if (numbers.calls++ == 0) numbers.first = call.number;
      numbers.moves |= call.number != numbers.first;
    }
    for (LedgerCall& call : out_.calls)
      if (call.group >= 0) {
        const Numbers& numbers = of[static_cast<size_t>(call.group)];
        if (!numbers.moves && numbers.calls > 1) call.number = -1;
      }
  }

  const TorchRank& rank_;
  const Trace& trace_;
  const Part& part_;
  const uint32_t rank_index_;
  std::vector<bool> has_fact_;                                        // of each slice: a call with a name
  std::map<std::string, std::vector<int32_t>> listed_;                // members by the group's name
  std::map<uint32_t, std::vector<const CollectiveFact*>> coalesced_;  // by kernel
  std::map<std::tuple<StringId, StringId, int64_t>, int32_t> groups_;
  RankCalls out_;
};

// Bytes of an element of tensors that all have one type; −1 where types differ or are unknown.
int64_t element_bytes(std::string_view in_types, std::string_view out_types) {
  std::set<std::string_view> types;
  for (const std::string_view list : {in_types, out_types})
    for (const std::string_view type : split(list, ','))
      if (!trim(type).empty()) types.insert(trim(type));
  return types.size() == 1 ? dtype_bytes(*types.begin()) : -1;
}

}  // namespace

RankCalls rank_calls(const TorchRank& rank, const Trace& trace, uint32_t rank_index) {
  return CallReader(rank, trace, rank_index).read();
}

RankCalls flight_rank_calls(const TorchRun& run, size_t p, uint32_t rank_index) {
  const Trace& trace = *run.trace;
  const Part& part = trace.parts[p];
  RankCalls out;
  std::map<int32_t, int32_t> group_of;
  // Where the ring has lost the first calls, nothing says which message of the other side a kept one is.
  int64_t first_record = min_over<int64_t>(part.flight_calls, &FlightCall::record_id);
  for (const FlightCall& from : part.flight_calls) {
    const FlightGroup& group = trace.flight_groups[static_cast<size_t>(from.group)];
    const CollectiveFact& fact = *fact_of(part.collectives, from.slice);
    const auto [at, fresh] = group_of.try_emplace(from.group, static_cast<int32_t>(out.groups.size()));
    const int64_t size = std::ssize(group.ranks);
    if (fresh)
      out.groups.push_back(
          {group.members_known ? rank_ranges(group.ranks) : "? " + group.name + " " + std::to_string(size),
           group.members_known ? group.ranks : std::vector<int32_t>{}, fact.group, fact.group_description, size});
    LedgerCall call{.kind = collective_kind(trace.names.text(from.op)),
                    .rank_index = rank_index,
                    .slice = from.slice,
                    .group = at->second,
                    .number = from.sequence,
                    .start_ns = part.slices.start_ns[from.slice] - run.zero_ns};
    // The reader gives a slice the length of duration_ms, else that until the recorder noticed the end.
    const int64_t length = part.slices.dur_ns[from.slice];
    const int64_t noticed = std::max<int64_t>(0, from.completed_ns - part.slices.start_ns[from.slice]);
    const bool timed = from.state == FlightState::kCompleted && length > 0 && length != noticed;
    call.end_ns = timed ? sum_or_limit(call.start_ns, length) : -1;
    if (fact.in_elements > 0 || fact.out_elements > 0)
      call.bytes = message_bytes(call.kind, size, fact.in_elements, fact.out_elements,
                                 element_bytes(trace.names.text(from.in_dtypes), trace.names.text(from.out_dtypes)));
    if (call.kind == CollectiveKind::kSendRecv) {
      LedgerPeer peer{.rank = first_record > 1 ? -1 : from.peer};
      (from.is_send ? peer.sent : peer.received) = call.bytes;
      peer.sender = from.is_send ? part.rank : from.peer;
      call.peers.push_back(peer);
    }
    out.calls.push_back(std::move(call));
  }
  return out;
}

std::string rank_ranges(const std::vector<int32_t>& ranks) {
  std::vector<int32_t> sorted = ranks;
  std::ranges::sort(sorted);
  std::string out;
  for (size_t i = 0; i < sorted.size();) {
    size_t k = i;
    while (k + 1 < sorted.size() && sorted[k + 1] == sorted[k] + 1) ++k;
    out += (out.empty() ? "" : ",") + std::to_string(sorted[i]);
    if (k > i) out += "-" + std::to_string(sorted[k]);
    i = k + 1;
  }
  return out;
}

}  // namespace stageline
