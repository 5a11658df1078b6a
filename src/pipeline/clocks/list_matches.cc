#include "base/parallel.h"
#include "model/message_names.h"
#include "pipeline/clocks/match.h"

namespace stageline::align {
namespace {

constexpr int64_t kRoundedNs = 1000;  // timestamps of the same moment may differ by this much on one clock
// Limit on names of collectives; a source with a new name for each one is of no use here.
constexpr size_t kMaxNames = 256;

// Returns true for collectives that end on every rank after all ranks have begun.
bool synchronises(std::string_view name) {
  std::string word;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ') word += to_lower(c);
  constexpr std::array<std::string_view, 6> kAll = {"allreduce", "allgather", "reducescatter",
                                                    "alltoall",  "barrier",   "ringattention"};
  return std::ranges::any_of(kAll, [&](std::string_view all) { return word.find(all) != word.npos; });
}

using PairName = std::tuple<size_t, size_t, int32_t>;  // part a < part b, name

struct Interval {
  size_t part;
  int64_t start_ns, end_ns;
};

class Collectives {
 public:
  Collectives(Matches& matches) : matches_(matches) {}

  int32_t name_index(std::string_view name) {
    const auto it = std::ranges::find(matches_.names, name);
    if (it != matches_.names.end()) return static_cast<int32_t>(it - matches_.names.begin());
    if (matches_.names.size() == kMaxNames) return -1;
    matches_.names.emplace_back(name);
    return static_cast<int32_t>(matches_.names.size() - 1);
  }

  // `members` has one interval for each part, ordered by part.
  void add(const std::vector<Interval>& members, int32_t name) {
    for (size_t k = 1; k < members.size(); ++k) {
      add_pair(members[0], members[k], name);
      if (k > 1) add_pair(members[k - 1], members[k], name);
    }
  }

  void finish() {
    for (auto& [key, listed] : listed_) {
      sort_stably(listed, {}, &Match::recv_end_ns);
      matches_.ties.push_back(
          {std::get<0>(key), std::get<1>(key), TieKind::kCollectives, {}, std::move(listed), std::get<2>(key)});
    }
  }

 private:
  void add_pair(const Interval& a, const Interval& b, int32_t name) {
    if (a.part == b.part) return;
    auto& listed = listed_[{a.part, b.part, name}];
    const auto tag = static_cast<uint32_t>(listed.size());
    listed.push_back({a.start_ns, a.end_ns, b.start_ns, b.end_ns, tag, true});
    listed.push_back({b.start_ns, b.end_ns, a.start_ns, a.end_ns, tag, false});
  }

  Matches& matches_;
  std::map<PairName, std::vector<Match>> listed_;
};

size_t part_of_rank(const Trace& trace, int32_t rank) {
  const auto it = std::ranges::lower_bound(trace.parts, rank, {}, &Part::rank);
  return it != trace.parts.end() && it->rank == rank ? static_cast<size_t>(it - trace.parts.begin())
                                                     : trace.parts.size();
}

}  // namespace

void add_gaps(const Trace& trace, const std::set<std::pair<size_t, size_t>>& joined, Matches& matches) {
  const Cells& cells = trace.cells;
  // For each part the parts of higher numbers that it has links with, which are few, and the places of their ties.
  struct Neighbour {
    size_t part;
    size_t tie;
  };
  std::vector<std::vector<Neighbour>> neighbours(trace.parts.size());
  std::vector<Tie> ties;
  const auto tie_of = [&](const Link& link) {
    const size_t from = cells.part[link.from_cell], to = cells.part[link.to_cell];
    if (from == to) return SIZE_MAX;
    const auto [low, high] = std::minmax(from, to);
    for (const Neighbour& known : neighbours[low])
      if (known.part == high) return known.tie;
    size_t tie = SIZE_MAX;
    if (!joined.contains({low, high})) {
      tie = ties.size();
      ties.push_back({low, high, TieKind::kGaps, {}, {}, -1});
    }
    neighbours[low].push_back({high, tie});
    return tie;
  };
  for (uint32_t at = 0; at < trace.links.size(); ++at)
    if (const size_t tie = tie_of(trace.links[at]); tie != SIZE_MAX) ties[tie].links.push_back(at);
  const auto start_of = [&](uint32_t at) { return cells.start_ns[trace.links[at].to_cell]; };
  parallel_for(ties.size(), [&](size_t i) { sort_stably(ties[i].links, {}, start_of); });
  std::ranges::sort(ties, {}, [](const Tie& x) { return std::pair(x.part_a, x.part_b); });
  std::move(ties.begin(), ties.end(), std::back_inserter(matches.ties));
}

void add_cell_collectives(const Trace& trace, Matches& matches) {
  Collectives collectives(matches);
  // The parts of a stage and position, one for each replica; and those of a stage and replica, which share no more than
  // the collectives inside their cells.
  enum class Among : uint8_t { kReplicas, kPeers };
  std::map<std::tuple<Among, int32_t, int32_t>, std::vector<size_t>> groups;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    if (part.stage == kUnknown || part.dp == kUnknown) continue;
    std::vector<size_t>& peers = groups[{Among::kPeers, part.stage, part.dp}];
    peers.push_back(p);
    groups[{Among::kReplicas, part.stage, static_cast<int32_t>(peers.size())}].push_back(p);
  }
  const Cells& cells = trace.cells;
  std::unordered_map<StringId, int32_t> names;  // −1 for names that are of no use
  for (const auto& [where, parts] : groups) {
    if (parts.size() < 2) continue;
    // (step, name, how many of that name came before) → the members.
    std::map<std::tuple<int32_t, int32_t, int32_t>, std::vector<Interval>> instances;
    for (const size_t p : parts)
      for (const StepCells& step : matches.steps_of_part[p]) {
        std::map<int32_t, int32_t> count;
        size_t cell = step.end;  // the last that began
        for (size_t i = step.begin; i < step.end; ++i) {
          if (is_compute(cells.kind[i])) cell = i;
          if (cells.kind[i] != CellKind::kCollective || cells.slice[i] == kNoSlice) continue;
          if (std::get<Among>(where) == Among::kPeers &&
              (cell == step.end || cells.end_ns[i] > cells.end_ns[cell] + kRoundedNs))
            continue;
          const StringId id = trace.parts[p].slices.name_id[cells.slice[i]];
          auto known = names.find(id);
          if (known == names.end()) {
            const std::string_view text = trace.names.text(id);
            known = names.emplace(id, synchronises(text) ? collectives.name_index(text) : -1).first;
          }
          if (known->second < 0) continue;
          instances[{step.step, known->second, count[known->second]++}].push_back(
              {p, cells.start_ns[i], cells.end_ns[i]});
        }
      }
    for (const auto& [key, members] : instances)
      if (members.size() > 1) collectives.add(members, std::get<1>(key));
  }
  collectives.finish();
}

void add_profiler_collectives(const Trace& trace, Matches& matches) {
  if (trace.parts.size() < 2) return;
  Collectives collectives(matches);
  // The key is the comms id, or group and number. The list of ranks, as written, distinguishes groups of the same name.
  using Key = std::tuple<StringId, StringId, StringId, int64_t, int32_t>;
  std::map<Key, std::vector<Interval>> instances;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    std::map<std::pair<Key, int32_t>, int32_t> count;  // counts up the repeats of one key
    for (const CollectiveFact& fact : part.collectives) {
      if (part.slices.has_facts() && part.slices.class_of(fact.slice) != KernelClass::kCommunication) continue;
      const std::string_view name = trace.names.text(fact.name);
      if (!synchronises(name) || (fact.comms_id == 0 && fact.seq < 0)) continue;
      const int32_t index = collectives.name_index(name);
      if (index < 0) continue;
      Key key = fact.comms_id != 0 ? Key{fact.comms_id, 0, 0, 0, index}
                                   : Key{0, fact.group, fact.group_ranks, fact.seq, index};
      if (count[{key, index}]++ > 0) continue;
      instances[key].push_back({p, part.slices.start_ns[fact.slice], part.slices.end_ns(fact.slice)});
    }
  }
  for (const auto& [key, members] : instances)
    if (members.size() > 1) collectives.add(members, std::get<4>(key));
  collectives.finish();
}

std::set<std::pair<size_t, size_t>> add_numbered_messages(const Trace& trace, Matches& matches) {
  // (sender, receiver, forward, step, number) → the cells of send and receive, and how many of each there were.
  struct Pair {
    uint32_t send = UINT32_MAX, receive = UINT32_MAX;
    int sends = 0, receives = 0;
  };
  std::map<std::tuple<size_t, size_t, bool, int32_t, int64_t>, Pair> pairs;
  const Cells& cells = trace.cells;
  for (uint32_t i = 0; i < cells.size(); ++i) {
    if (!is_message(cells.kind[i]) || cells.slice[i] == kNoSlice) continue;
    const size_t own = cells.part[i];
    const CollectiveFact* fact = fact_of(trace.parts[own].collectives, cells.slice[i]);
    if (!fact || fact->seq < 0 || fact->src_rank < 0 || fact->dst_rank < 0 || !numbered_alike(trace, *fact)) continue;
    const bool send = is_send(cells.kind[i]);
    const bool forward = is_of_forward(cells.kind[i]);
    const int64_t other_rank = send ? fact->dst_rank : fact->src_rank;
    if (other_rank > INT32_MAX) continue;
    const size_t other = part_of_rank(trace, static_cast<int32_t>(other_rank));
    if (other >= trace.parts.size() || other == own) continue;
    Pair& pair = pairs[{send ? own : other, send ? other : own, forward, cells.step[i], fact->seq}];
    (send ? pair.send : pair.receive) = i;
    ++(send ? pair.sends : pair.receives);
  }
  std::map<std::pair<size_t, size_t>, std::vector<Match>> listed;
  for (const auto& [key, pair] : pairs) {
    // A number is there twice, so it is not known which send belongs to which receive.
    if (pair.sends != 1 || pair.receives != 1) continue;
    const size_t from = std::get<0>(key), to = std::get<1>(key);
    listed[{std::min(from, to), std::max(from, to)}].push_back({cells.start_ns[pair.send], cells.end_ns[pair.send],
                                                                cells.start_ns[pair.receive],
                                                                cells.end_ns[pair.receive], pair.receive, from < to});
  }
  std::set<std::pair<size_t, size_t>> tied;
  for (auto& [pair, list] : listed) {
    sort_stably(list, {}, &Match::recv_end_ns);
    matches.ties.push_back({pair.first, pair.second, TieKind::kMessages, {}, std::move(list), -1});
    tied.insert(pair);
  }
  return tied;
}

void add_by_hand(const Trace& trace, const std::vector<ByHand>& by_hand, Matches& matches) {
  for (const ByHand& hand : by_hand) {
    const size_t a = part_of_rank(trace, std::min(hand.rank_a, hand.rank_b));
    const size_t b = part_of_rank(trace, std::max(hand.rank_a, hand.rank_b));
    if (a >= trace.parts.size() || b >= trace.parts.size() || a == b) continue;
    const auto starts = [&](size_t p) {
      std::vector<int64_t> found;
      const Part& part = trace.parts[p];
      for (size_t i = 0; i < part.slices.size(); ++i)
        if (trace.names.text(part.slices.name_id[i]) == hand.name) found.push_back(part.slices.start_ns[i]);
      if (found.empty())
        for (const StepCells& step : matches.steps_of_part[p])
          for (size_t i = step.begin; i < step.end; ++i)
            if (cell_label(trace.cells.at(i), false) == hand.name) found.push_back(trace.cells.start_ns[i]);
      std::ranges::sort(found);
      return found;
    };
    const std::vector<int64_t> at_a = starts(a), at_b = starts(b);
    Tie tie{a, b, TieKind::kOperator, {}, {}, -1};
    for (uint32_t k = 0; k < std::min(at_a.size(), at_b.size()); ++k) {
      tie.listed.push_back({at_a[k], at_a[k], at_b[k], at_b[k], k, true});
      tie.listed.push_back({at_b[k], at_b[k], at_a[k], at_a[k], k, false});
    }
    if (!tie.listed.empty()) matches.ties.push_back(std::move(tie));
  }
}

}  // namespace stageline::align
