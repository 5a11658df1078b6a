#include "base/json_members.h"
#include "base/parallel.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {
namespace {

constexpr int64_t kSlackNs = 50'000;  // tolerance within the timestamps of one device
constexpr int32_t kAnyPeer = -1, kAbsent = -2;
constexpr uint64_t kUp = uint64_t{1} << 63, kOrderMask = (uint64_t{1} << 31) - 1;

enum class Way : uint8_t { kSend, kReceive, kBatch };

struct Operation {
  uint32_t slice = 0;
  int64_t start_ns = 0, end_ns = 0;
  Way way = Way::kSend;
  int32_t peer = kAnyPeer;
  int32_t list = -1;  // list of the part, which gives the step
};

// A result that one rank makes and another one waits for.
struct Need {
  int32_t step = kUnknown, micro_batch = 0, maker_chunk = 0, taker_chunk = 0;
  bool up = false;
  uint32_t maker = 0, taker = 0;       // parts
  int64_t made_ns = 0, needed_ns = 0;  // each on its own rank's clock
};

std::vector<Need> needs_of(const RowOrder& order, int32_t stages) {
  std::vector<Need> out;
  const std::vector<RowStop>& stops = order.stops();
  const auto chunk_of = [&](const RowStop& s) {
    const auto place = static_cast<int32_t>(s.place & kOrderMask);
    return (s.place & kUp ? order.vstage_count() - 1 - place : place) / stages;
  };
  for (size_t i = 1; i < stops.size(); ++i) {
    const RowStop &a = stops[i - 1], &b = stops[i];
    if (a.way != b.way || a.place + 1 != b.place || a.part == b.part) continue;
    out.push_back({static_cast<int32_t>(a.way), static_cast<int32_t>(a.place >> 31 & 0xffffffffULL), chunk_of(a),
                   chunk_of(b), (a.place & kUp) != 0, a.part, b.part, a.end_ns, b.start_ns});
  }
  return out;
}

class PartMessages {
 public:
  PartMessages(const Trace& trace, size_t part, std::vector<RowList> lists, const RangeRows& rows, int32_t chunks)
      : trace_(trace), part_(part), lists_(std::move(lists)), rows_(rows.parts[part]), chunks_(chunks) {}

  // `made` are the needs whose result this part makes, `taken` those that it waits for.
  RangeMessages find(std::vector<const Need*> made, std::vector<const Need*> taken) {
    // Needs go in the order in which they are needed; what one row needs, or makes for one other row, forward first.
    const auto before = [](const Need* a, const Need* b) {
      const auto key = [](const Need* n) {
        return std::tuple(n->step, n->needed_ns, n->made_ns, n->up, n->micro_batch);
      };
      return key(a) < key(b);
    };
    std::ranges::sort(made, before);
    std::ranges::sort(taken, before);
    gather();
    for (const Way way : {Way::kSend, Way::kReceive}) match(way, way == Way::kSend ? made : taken);
    match_batches(made, taken);
    return std::move(out_);
  }

 private:
  int32_t part_of_rank(int64_t rank) const {
    const auto at = std::ranges::lower_bound(trace_.parts, rank, {}, &Part::rank);
    return at != trace_.parts.end() && at->rank == rank ? static_cast<int32_t>(at - trace_.parts.begin()) : kAbsent;
  }

  // Each list is parsed once, for it may be long and all operations of a group have the same one.
  const std::vector<int64_t>& members_of(StringId group_ranks) {
    const auto [at, fresh] = members_.try_emplace(group_ranks);
    if (fresh && group_ranks != 0)
      for (const JsonMember& item : json_members(trace_.names.text(group_ranks), 1 << 16))
        at->second.push_back(json_integer(item.value).value_or(-1));
    return at->second;
  }

  int32_t peer_of(const CollectiveFact& fact, Way way) {
    const int64_t peer = way == Way::kSend ? fact.dst_rank : way == Way::kReceive ? fact.src_rank : -1;
    if (peer >= 0) return part_of_rank(peer);
    const std::vector<int64_t>& members = members_of(fact.group_ranks);
    if (fact.peer >= 0 && fact.peer < std::ssize(members)) return part_of_rank(members[fact.peer]);
    if (members.size() != 2) return kAnyPeer;
    return part_of_rank(members[0] == trace_.parts[part_].rank ? members[1] : members[0]);
  }

  void gather() {
    const Part& part = trace_.parts[part_];
    for (const Lane& lane : part.lanes) {
      if (lane.kind != LaneKind::kDeviceStream && part.slices.has_facts()) continue;
      auto fact = std::ranges::lower_bound(part.collectives, lane.begin, {}, &CollectiveFact::slice);
      for (; fact != part.collectives.end() && fact->slice < lane.end; ++fact) {
        const std::string_view name = trace_.names.text(fact->name);
        const bool send = name == "send", receive = name == "receive" || name == "recv";
        if (!send && !receive && name != "batchSendRecv") continue;
        const Way way = send ? Way::kSend : receive ? Way::kReceive : Way::kBatch;
        Operation op{fact->slice, part.slices.start_ns[fact->slice], part.slices.end_ns(fact->slice), way,
                     peer_of(*fact, way)};
        op.list = list_of(op);
        operations_.push_back(op);
      }
    }
    std::ranges::sort(operations_, {}, [](const Operation& a) { return std::tuple(a.start_ns, a.end_ns, a.slice); });
    out_.messages = operations_.size();
  }

  // A receive belongs to the first step whose last row can still use it, a send to the last step whose first row is
  // already over.
  int32_t list_of(const Operation& op) const {
    int32_t found = -1;
    if (op.way == Way::kReceive) {
      const auto at = std::ranges::partition_point(
          lists_, [&](const RowList& list) { return rows_[list.end - 1].start_ns + kSlackNs < op.end_ns; });
      found = at == lists_.end() ? -1 : static_cast<int32_t>(at - lists_.begin());
    } else {
      const auto at = std::ranges::partition_point(
          lists_, [&](const RowList& list) { return rows_[list.begin].end_ns <= op.start_ns + kSlackNs; });
      found = static_cast<int32_t>(at - lists_.begin()) - 1;
    }
    return found;
  }

  void add(const Operation& op, bool send, const Need& need) {
    Cell cell{.step = need.step,
              .part = static_cast<int32_t>(part_),
              .kind = send ? (need.up ? CellKind::kSendBackward : CellKind::kSendForward)
                           : (need.up ? CellKind::kRecvBackward : CellKind::kRecvForward),
              .chunk = send ? need.maker_chunk : need.taker_chunk,
              .micro_batch = need.micro_batch,
              .start_ns = op.start_ns,
              .end_ns = op.end_ns,
              .slice = op.slice};
    out_.cells.push_back(cell);
  }

  // Adds a message of which only the peer's stage is known.
  void add_plain(const Operation& op) {
    const bool send = op.way == Way::kSend;
    const int32_t own = trace_.parts[part_].stage;
    const int32_t other = op.peer < 0 ? kUnknown : trace_.parts[op.peer].stage;
    if (op.list < 0 || chunks_ != 1 || own == kUnknown || other == kUnknown || own == other) {
      ++out_.unknown;
      return;
    }
    Need need{.step = lists_[op.list].step, .micro_batch = kUnknown, .up = send == (other < own)};
    ++out_.unlabelled;
    add(op, send, need);
  }

  static bool possible(const Operation& op, const Need& need) {
    return op.way == Way::kSend ? need.made_ns <= op.start_ns + kSlackNs : op.end_ns <= need.needed_ns + kSlackNs;
  }

  // Returns true when operation k cannot trade places with a neighbour that belongs to another peer; asked where
  // operations do not name their peers.
  static bool only_one(const std::vector<const Operation*>& ops, const std::vector<const Need*>& needs, size_t k,
                       size_t n) {
    const auto same = [&](size_t a, size_t b) {
      return needs[a]->up == needs[b]->up && needs[a]->maker == needs[b]->maker && needs[a]->taker == needs[b]->taker;
    };
    const auto swap = [&](size_t a, size_t b, size_t x, size_t y) {
      return !same(x, y) && possible(*ops[a], *needs[y]) && possible(*ops[b], *needs[x]);
    };
    return !(k > 0 && n > 0 && swap(k - 1, k, n - 1, n)) &&
           !(k + 1 < ops.size() && n + 1 < needs.size() && swap(k, k + 1, n, n + 1));
  }

  // Pairs the operations with the needs of one step and peer, from the end; from the front where time forbids that.
  void pair(const std::vector<const Operation*>& ops, const std::vector<const Need*>& needs, bool peers_known) {
    // Where operations do not name their peers, each of a surplus could be with a rank that is not in the input, so
    // none is paired.
    const size_t n = peers_known || ops.size() == needs.size() ? std::min(ops.size(), needs.size()) : 0;
    for (const bool back : {true, false}) {
      const size_t o = back ? ops.size() - n : 0, d = back ? needs.size() - n : 0;
      size_t fits = 0;
      for (size_t k = 0; k < n; ++k) fits += possible(*ops[o + k], *needs[d + k]) ? 1 : 0;
      if (n == 0 || fits < n) {
        if (back && ops.size() != needs.size()) continue;
        if (n == 0 || fits * 50 < n * 49) break;
      }
      for (size_t k = 0; k < ops.size(); ++k) {
        const bool inside = k >= o && k < o + n;
        if (inside && possible(*ops[k], *needs[d + k - o]) && (peers_known || only_one(ops, needs, k, d + k - o)))
          add(*ops[k], ops[k]->way == Way::kSend, *needs[d + k - o]);
        else add_plain(*ops[k]);
      }
      return;
    }
    for (const Operation* op : ops) add_plain(*op);
  }

  int32_t step_of(const Operation& op) const { return op.list < 0 ? kUnknown : lists_[op.list].step; }

  // At an end of the pipeline every message is with the one neighbour, whether operations say so or not. This requires
  // that every step has as many operations as needs; otherwise some are with a rank that is not in the input.
  bool only_one_peer(Way way, const std::vector<const Need*>& needs) {
    const auto peer = [&](const Need* need) {
      return static_cast<int32_t>(way == Way::kSend ? need->taker : need->maker);
    };
    if (needs.empty()) return false;
    std::map<int32_t, int64_t> surplus;
    for (const Need* need : needs) {
      if (peer(need) != peer(needs[0])) return false;
      --surplus[need->step];
    }
    for (const Operation& op : operations_) {
      if (op.way != way) continue;
      if (op.peer != kAnyPeer && op.peer != peer(needs[0])) return false;
      ++surplus[step_of(op)];
    }
    for (const auto& [step, count] : surplus)
      if (count != 0) return false;
    for (Operation& op : operations_)
      if (op.way == way) op.peer = peer(needs[0]);
    return true;
  }

  void match(Way way, const std::vector<const Need*>& needs) {
    // Where some operations do not name their peers, all messages of the rank are taken as one sequence.
    bool all_known = true;
    for (const Operation& op : operations_) all_known = all_known && (op.way != way || op.peer != kAnyPeer);
    if (!all_known) all_known = only_one_peer(way, needs);
    using Key = std::pair<int32_t, int32_t>;  // step, peer
    std::map<Key, std::pair<std::vector<const Operation*>, std::vector<const Need*>>> groups;
    for (const Operation& op : operations_) {
      if (op.way != way) continue;
      if (step_of(op) == kUnknown) {
        ++out_.unknown;
        continue;
      }
      groups[{step_of(op), all_known ? op.peer : kAnyPeer}].first.push_back(&op);
    }
    for (const Need* need : needs) {
      const int32_t peer = way == Way::kSend ? need->taker : need->maker;
      groups[{need->step, all_known ? peer : kAnyPeer}].second.push_back(need);
    }
    for (auto& [key, group] : groups) {
      // The order in which one device made results is known, while the clocks of several receivers may differ.
      if (!all_known && way == Way::kSend) sort_stably(group.second, {}, &Need::made_ns);
      pair(group.first, group.second, all_known);
    }
  }

  void match_batches(const std::vector<const Need*>& made, const std::vector<const Need*>& taken) {
    std::vector<const Operation*> batches;
    for (const Operation& op : operations_)
      if (op.way == Way::kBatch) batches.push_back(&op);
    if (batches.empty()) return;
    std::vector<char> used(batches.size(), 0);
    const auto reaches = [](const Operation& op, uint32_t peer) {
      return op.peer == kAnyPeer || op.peer == static_cast<int32_t>(peer);
    };
    constexpr size_t kFarthest = 8;  // at most this number of operations with other peers is skipped
    for (const Need* need : made) {
      auto at = std::ranges::partition_point(
                    batches, [&](const Operation* op) { return op->start_ns + kSlackNs < need->made_ns; }) -
                batches.begin();
      for (size_t k = at, far = 0; k < batches.size() && far < kFarthest; ++k, ++far) {
        if (!reaches(*batches[k], need->taker)) continue;
        add(*batches[k], true, *need);
        used[k] = 1;
        break;
      }
    }
    for (const Need* need : taken) {
      const auto after =
          std::ranges::partition_point(batches, [&](const Operation* op) { return op->start_ns < need->needed_ns; }) -
          batches.begin();
      for (size_t k = after, far = 0; k-- > 0 && far < kFarthest; ++far) {
        if (!reaches(*batches[k], need->maker) || batches[k]->end_ns > need->needed_ns + kSlackNs) continue;
        add(*batches[k], false, *need);
        used[k] = 1;
        break;
      }
    }
    out_.unknown += std::ranges::count(used, 0);
  }

  const Trace& trace_;
  size_t part_;
  std::vector<RowList> lists_;
  const std::vector<RangeRow>& rows_;
  int32_t chunks_;
  std::map<StringId, std::vector<int64_t>> members_;  // key: the text of the list
  std::vector<Operation> operations_;
  RangeMessages out_;
};

}  // namespace

RangeMessages find_range_messages(const Trace& trace, const RowLists& lists, const RangeRows& rows,
                                  const RowOrder& order, int32_t chunks) {
  const std::vector<Need> needs = needs_of(order, std::max(1, trace.pipeline_stages));
  std::vector<std::vector<const Need*>> made(trace.parts.size()), taken(trace.parts.size());
  for (const Need& need : needs) {
    made[need.maker].push_back(&need);
    taken[need.taker].push_back(&need);
  }
  std::vector<std::vector<RowList>> own(trace.parts.size());
  for (const RowList& list : lists.lists)
    if (list.end > list.begin) own[list.part].push_back(list);
  std::vector<RangeMessages> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) {
    parts[p] = PartMessages(trace, p, std::move(own[p]), rows, chunks).find(std::move(made[p]), std::move(taken[p]));
  });
  RangeMessages out;
  for (RangeMessages& part : parts) {
    out.cells.insert(out.cells.end(), part.cells.begin(), part.cells.end());
    out.messages += part.messages;
    out.unknown += part.unknown;
    out.unlabelled += part.unlabelled;
  }
  return out;
}

}  // namespace stageline
