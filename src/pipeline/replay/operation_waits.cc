// Finds the waits of recorded operations by the rules of the what-if paper's artifact (its README, and §3 of the
// paper). The rules use only names, order of start and virtual stages.
//
//   compute    after the compute before it on its rank; forward after its receive, backward after its receive (of a
//              split backward its first half, the input gradients, receives and sends; the paper's jobs have none);
//              the first forward of a chunk after that chunk's (last) gathering of parameters
//   receive    after the compute before the one that it feeds
//   send       after the compute that made it
//   messages   after the message of the same type before it on its rank; the first backward messages after the
//              second-last compute before the first backward
//   the end    last compute → gc → layer-norm gradients → embedding gradients → gradient reduce-scatters → clip →
//              optimizer; where separate-grads-all-reduce shows that gradients are reduced behind the backwards, each
//              reduce-scatter follows the last backward of its chunk instead
//   groups     the k-th send with the k-th receive on the other side; data-parallel collectives over replicas;
//              embedding gradients over first and last stage; clip over all
//
// Some operations were recorded but not launched: receives that start after the last compute they could feed, and sends
// that end before the first compute they could carry. They belong to no message.
#include "base/parallel.h"
#include "pipeline/replay/problems.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {
namespace {

#define WAIT_OP(op, ...) op,
enum WaitOp : uint8_t {
#include "pipeline/replay/wait_ops.def"
  kNoOp
};
constexpr size_t kOps = kNoOp;

struct OpName {
  const char* name;
  bool communicates;
};
#define WAIT_OP(op, name, communicates) {name, communicates},
constexpr OpName kNames[] = {
#include "pipeline/replay/wait_ops.def"
};

WaitOp op_of(std::string_view name) {
  const std::string word = dashed(trim(name));
  for (size_t i = 0; i < kOps; ++i)
    if (word == kNames[i].name) return static_cast<WaitOp>(i);
  return kNoOp;
}

// The operations of one rank in one step, by type, in order of start. Numbers are positions in the draft.
struct Rank {
  int32_t stage = 0;
  std::array<std::vector<uint32_t>, kOps> of;  // input gradients count as backwards
  std::vector<uint32_t> compute;               // forwards and backwards, whole or split
};

// A key under which operations meet; those with equal keys are one group.
struct Meeting {
  WaitOp type;       // for messages the type of the send
  int64_t place;     // for messages the sender's virtual stage; for collectives the stage, or −1 for all stages
  uint64_t number;   // for messages the micro-batch, otherwise how many came before
  uint64_t replica;  // 0 for collectives over replicas
  uint32_t op;
  auto key() const { return std::tie(type, place, number, replica); }
};

// Finds the waits of one pipeline (replica) in one step.
class ReplicaWaits {
 public:
  ReplicaWaits(StepDraft& draft, std::vector<Rank>& ranks, uint64_t replica, bool over_replicas, bool behind,
               LaunchRule rule, int32_t stages, std::vector<uint8_t>& fed, std::vector<Meeting>& meetings)
      : draft_(draft), ranks_(ranks), replica_(replica), over_replicas_(over_replicas), behind_(behind), rule_(rule),
        stages_(stages), fed_(fed), meetings_(meetings) {
    for (const Rank& rank : ranks_)
      for (const uint32_t op : rank.compute) chunks_ = std::max(chunks_, draft_.ops[op].chunk + 1);
  }

  void add() {
    // Where receives were posted at the same moment, the first to end comes first; any other order would make waits go
    // in a circle.
    for (Rank& rank : ranks_)
      for (const WaitOp type : {kSendF, kRecvF, kSendB, kRecvB})
        sort_stably(rank.of[type], {}, [&](uint32_t a) { return std::tuple(op(a).start_ns, op(a).end_ns); });
    for (const Rank& rank : ranks_) {
      messages_of(rank, kF, kSendF, true);
      messages_of(rank, kF, kRecvF, false);
      messages_of(rank, kB, kSendB, true);
      messages_of(rank, kB, kRecvB, false);
      chain(rank.compute);
      for (const WaitOp type : {kSendF, kRecvF, kSendB, kRecvB}) chain(rank.of[type]);
      first_backward_messages(rank);
      if (over_replicas_) parameters_and_gradients(rank);
      end_of_step(rank);
      collectives(rank);
      if (rule_ == LaunchRule::kInOrder) launches(rank);
    }
  }

 private:
  const DraftOp& op(uint32_t i) const { return draft_.ops[i]; }

  void chain(const std::vector<uint32_t>& ops) {
    for (size_t k = 1; k < ops.size(); ++k) draft_.wait(ops[k], ops[k - 1]);
  }

  void meet(WaitOp type, int64_t place, uint64_t number, uint64_t replica, uint32_t member) {
    meetings_.push_back({type, place, number, replica, member});
  }

  // Returns the virtual stage of a compute: where in the model its chunk is.
  int64_t place(const Rank& rank, uint32_t compute) const {
    return int64_t{std::max(op(compute).chunk, 0)} * stages_ + rank.stage;
  }

  // Searches from place `next` on. For a receive it returns the first compute that starts no earlier than the receive
  // ends, for a send the last compute that ended before the send began.
  size_t by_time(const std::vector<uint32_t>& work, size_t next, uint32_t message, bool sends) const {
    if (!sends) {
      while (next < work.size() && op(work[next]).start_ns + kSameNs < op(message).end_ns) ++next;
      return next;
    }
    while (next + 1 < work.size() && op(work[next + 1]).end_ns <= op(message).start_ns + kSameNs) ++next;
    return next;
  }

  // The places of computes by chunk and micro-batch, in ascending order.
  using Name = std::pair<int32_t, int32_t>;
  Name name_of(uint32_t i) const { return {chunks_ == 1 ? 0 : std::max(op(i).chunk, 0), op(i).micro_batch}; }
  std::vector<std::pair<Name, size_t>> by_name(const std::vector<uint32_t>& work) const {
    std::vector<std::pair<Name, size_t>> places;
    for (size_t i = 0; i < work.size(); ++i) places.emplace_back(name_of(work[i]), i);
    std::ranges::sort(places);
    return places;
  }
  static size_t place_of(const std::vector<std::pair<Name, size_t>>& places, Name name) {
    const auto at = std::ranges::lower_bound(places, std::pair(name, size_t{0}));
    return at != places.end() && at->first == name ? at->second : places.size();
  }

  // Returns true when messages say which work they belong to: they give their micro-batch, with several chunks also
  // their own rank's chunk, and each belongs to different work. Where the chunk they give is counted on another rank,
  // the times do not fit that work.
  bool named(const std::vector<uint32_t>& work, const std::vector<std::pair<Name, size_t>>& places,
             const std::vector<uint32_t>& messages, bool sends) const {
    if (chunks_ == 1)
      return std::ranges::all_of(messages,
                                 [&](uint32_t m) { return op(m).micro_batch != kUnknown && op(m).chunk <= 0; });
    std::vector<uint8_t> taken(work.size(), 0);
    return std::ranges::all_of(messages, [&](uint32_t m) {
      const size_t at = place_of(places, name_of(m));
      if (op(m).micro_batch == kUnknown || at == places.size() || std::exchange(taken[at], uint8_t{1})) return false;
      return sends ? op(work[at]).end_ns <= op(m).end_ns + kSameNs : op(work[at]).start_ns + kSameNs >= op(m).end_ns;
    });
  }

  void messages_of(const Rank& rank, WaitOp compute, WaitOp message, bool sends) {
    const std::vector<uint32_t>& work = rank.of[compute];
    const std::vector<uint32_t>& all = rank.of[message];
    if (work.empty() || all.empty()) return;
    int64_t last_start = INT64_MIN, first_end = INT64_MAX;
    for (const uint32_t c : work) {
      last_start = std::max(last_start, op(c).start_ns);
      first_end = std::min(first_end, op(c).end_ns);
    }
    std::vector<uint32_t> launched;
    for (const uint32_t m : all)
      if (sends ? op(m).end_ns >= first_end - kSameNs : op(m).start_ns <= last_start + kSameNs) launched.push_back(m);
    // With several chunks, the first receive may be missing on the first stage, where the first chunk receives nothing.
    size_t next = !sends && chunks_ > 1 && launched.size() + 1 == work.size() ? 1 : 0;
    // Messages that say which work they belong to are matched by that, in whatever order they came.
    const auto places = by_name(work);
    const bool is_named = named(work, places, launched, sends);
    // If some messages are missing, the times identify the ones that exist.
    const bool gaps = launched.size() + next != work.size();
    uint64_t count = 0;
    const int64_t towards = (compute == kF) == sends ? 1 : -1;
    for (const uint32_t m : launched) {
      if (is_named) next = place_of(places, name_of(m));
      else if (gaps) next = by_time(work, next, m, sends);
      if (next >= work.size()) {
        if (is_named) continue;
        break;
      }
      const uint32_t c = work[next];
      if (sends) {
        draft_.wait(m, c);
      } else {
        draft_.wait(c, m);
        fed_[c] = 1;
        // This does not hold for a message that was over before that compute ended.
        if (next > 0 && (!is_named || op(work[next - 1]).end_ns <= op(m).end_ns + kSameNs))
          draft_.wait(m, work[next - 1]);
      }
      ++next;
      const int64_t peer = place(rank, c) + towards;
      if (peer < 0 || peer >= int64_t{chunks_} * stages_) continue;  // the ends of the model have no neighbour
      // Both sides name a message by its sender. Without micro-batches the order is used.
      const int32_t micro_batch = op(c).micro_batch;
      const uint64_t number =
          micro_batch == kUnknown ? uint64_t{1} << 32 | count++ : static_cast<uint64_t>(micro_batch);
      meet(compute == kF ? kSendF : kSendB, sends ? place(rank, c) : peer, number, replica_, m);
    }
  }

  void first_backward_messages(const Rank& rank) {
    const auto first = std::ranges::find_if(rank.compute, [&](uint32_t c) { return op(c).kind != CellKind::kForward; });
    if (first == rank.compute.end() || first - rank.compute.begin() < 2) return;
    const uint32_t before = *(first - 2);
    for (const WaitOp type : {kRecvB, kSendB})
      if (!rank.of[type].empty()) draft_.wait(rank.of[type].front(), before);
  }

  void parameters_and_gradients(const Rank& rank) {
    std::vector<uint32_t> both = rank.of[kParams];
    both.insert(both.end(), rank.of[kGrads].begin(), rank.of[kGrads].end());
    sort_stably(both, {}, [&](uint32_t a) { return op(a).start_ns; });
    chain(both);
    std::vector<uint32_t> first_forward(chunks_, UINT32_MAX), last_backward = first_forward;
    for (const uint32_t c : rank.of[kF]) {
      uint32_t& first = first_forward[std::max(op(c).chunk, 0)];
      if (first == UINT32_MAX) first = c;
    }
    for (const uint32_t c : rank.compute) {
      if (op(c).kind == CellKind::kForward) continue;
      uint32_t& last = last_backward[std::max(op(c).chunk, 0)];
      if (last == UINT32_MAX || op(c).end_ns > op(last).end_ns) last = c;
    }
    const auto once = [&](std::vector<uint32_t>& slots, uint32_t collective) {
      const int32_t chunk = std::max(op(collective).chunk, 0);
      return chunk < chunks_ ? std::exchange(slots[chunk], UINT32_MAX) : UINT32_MAX;
    };
    for (auto it = rank.of[kParams].rbegin(); it != rank.of[kParams].rend(); ++it)
      if (const uint32_t forward = once(first_forward, *it); forward != UINT32_MAX) draft_.wait(forward, *it);
    if (!behind_) return;
    for (const uint32_t g : rank.of[kGrads])
      if (const uint32_t backward = once(last_backward, g); backward != UINT32_MAX) draft_.wait(g, backward);
  }

  void end_of_step(const Rank& rank) {
    std::vector<uint32_t> last;
    for (const uint32_t c : rank.compute)
      if (last.empty() || op(c).end_ns > op(last[0]).end_ns) last = {c};
    const auto then = [&](const std::vector<uint32_t>& ops) {
      for (const uint32_t o : ops) {
        for (const uint32_t l : last) draft_.wait(o, l);
        last = {o};
      }
    };
    then(rank.of[kGc]);
    const bool in_line = over_replicas_ && !behind_;
    if (over_replicas_ && behind_ && !rank.of[kGrads].empty()) last.push_back(rank.of[kGrads].back());
    then(rank.of[kLayerNorm]);
    then(rank.of[kEmbedding]);
    if (in_line) then(rank.of[kGrads]);
    if (over_replicas_) then(rank.of[kSeparate]);
    then(rank.of[kClip]);
    then(rank.of[kOptimize]);
  }

  // Whatever communicates follows the compute of its rank that ended last before it started, to within the error of a
  // stamp.
  void launches(const Rank& rank) {
    std::vector<uint32_t> by_end = rank.compute, others;
    sort_stably(by_end, {}, [&](uint32_t a) { return op(a).end_ns; });
    for (size_t type = kSendF; type < kOps; ++type)
      others.insert(others.end(), rank.of[type].begin(), rank.of[type].end());
    sort_stably(others, {}, [&](uint32_t a) { return op(a).start_ns; });
    size_t next = 0;
    for (const uint32_t o : others) {
      while (next < by_end.size() && op(by_end[next]).end_ns <= op(o).start_ns + kSameNs) ++next;
      if (next > 0) draft_.wait(o, by_end[next - 1]);
    }
  }

  void collectives(const Rank& rank) {
    const auto all = [&](WaitOp type, int64_t stage, uint64_t replica) {
      for (size_t k = 0; k < rank.of[type].size(); ++k) meet(type, stage, k, replica, rank.of[type][k]);
    };
    if (over_replicas_)
      for (const WaitOp type : {kParams, kGrads, kSeparate}) all(type, rank.stage, 0);
    all(kClip, -1, 0);
    if (rank.stage == 0 || rank.stage == stages_ - 1) all(kEmbedding, -1, replica_);
  }

  StepDraft& draft_;
  std::vector<Rank>& ranks_;
  uint64_t replica_;  // 1, 2, …
  bool over_replicas_, behind_;
  LaunchRule rule_;
  int32_t stages_, chunks_ = 1;
  std::vector<uint8_t>& fed_;  // for each operation: whether it is a compute with a receive of its own
  std::vector<Meeting>& meetings_;
};

void form_groups(StepDraft& draft, std::vector<Meeting>& meetings) {
  draft.group.assign(draft.ops.size(), kNoGroup);
  std::ranges::sort(meetings, {}, [](const Meeting& a) { return std::tuple(a.key(), a.op); });
  for (size_t i = 0; i < meetings.size();) {
    size_t j = i;
    while (j < meetings.size() && meetings[j].key() == meetings[i].key()) ++j;
    if (j - i > 1) {
      for (size_t k = i; k < j; ++k) draft.group[meetings[k].op] = draft.group_count;
      ++draft.group_count;
    }
    i = j;
  }
}

// Work whose receive was not recorded waits for the work that made its input, according to trace.links.
void follow_links(const Trace& trace, const Cells& cells, const StepRange& range, const std::vector<uint8_t>& fed,
                  StepDraft& draft) {
  const auto first = std::ranges::lower_bound(trace.links, range.begin, {}, &Link::from_cell);
  const auto op_of = [&](uint32_t cell) -> uint32_t {  // operations are in the order of cells
    const auto at = std::ranges::lower_bound(draft.ops, cell, {}, &DraftOp::cell);
    return at == draft.ops.end() || at->cell != cell ? UINT32_MAX : static_cast<uint32_t>(at - draft.ops.begin());
  };
  for (auto link = first; link != trace.links.end() && link->from_cell < range.end; ++link) {
    if (link->to_cell < range.begin || link->to_cell >= range.end || !is_compute(cells.kind[link->to_cell])) continue;
    const uint32_t to = op_of(link->to_cell);
    if (to == UINT32_MAX || fed[to]) continue;
    if (const uint32_t from = op_of(link->from_cell); from != UINT32_MAX) draft.wait(to, from);
  }
}

// Returns true where chunks do not all lie from the first stage to the last, as the rules assume. Then the model turns
// round at the last stage, so that what leaves a chunk there enters the next chunk on the same rank, or some chunks run
// backwards.
bool turns_round(const Trace& trace) {
  const Cells& cells = trace.cells;
  return std::ranges::any_of(trace.links, [&](const Link& link) {
    const auto from = link.from_cell, to = link.to_cell;
    if (from >= cells.size() || to >= cells.size()) return false;
    if (cells.kind[from] != CellKind::kForward || cells.kind[to] != CellKind::kForward) return false;
    const int32_t stage = trace.parts[cells.part[from]].stage;
    if (cells.part[from] == cells.part[to]) return stage > 0 && cells.chunk[to] == cells.chunk[from] + 1;
    return cells.chunk[to] == cells.chunk[from] && trace.parts[cells.part[to]].stage < stage;
  });
}

// The operations of a run by the names of the artifact: which each cell is, and how many of each there are.
struct NamedCells {
  std::vector<WaitOp> op;  // for each cell; kNoOp: none
  std::array<int64_t, kOps> count{};
  int64_t unknown = 0;        // cells with other names, or without a place
  bool work_unknown = false;  // some of them are compute cells
  int32_t stages = 1;
};

NamedCells name_cells(const Trace& trace, const std::vector<WaitOp>& by_name) {
  const Cells& cells = trace.cells;
  NamedCells named;
  named.op.assign(cells.size(), kNoOp);
  for (size_t i = 0; i < cells.size(); ++i) {
    const Part& part = trace.parts[cells.part[i]];
    if (cells.step[i] == kUnknown || part.stage == kUnknown || cells.slice[i] == kNoSlice) {
      ++named.unknown;
      continue;
    }
    const WaitOp op = named.op[i] = by_name[part.slices.name_id[cells.slice[i]]];
    if (op == kNoOp) {
      ++named.unknown;
      named.work_unknown = named.work_unknown || is_compute(cells.kind[i]);
    } else {
      ++named.count[op];
    }
    named.stages = std::max(named.stages, part.stage + 1);
  }
  return named;
}

// Returns whether the waits of all operations follow from their names.
bool waits_are_known(const Trace& trace, const NamedCells& named) {
  // If some of the work is left out, a replay would be of another step; this happens with overlapped pairs and with
  // names of another framework.
  if (named.work_unknown || turns_round(trace)) return false;
  // One stage has no messages. Any other trace with these names but no messages is a table made for the artifact or the
  // like.
  const bool messages = named.count[kSendF] > 0 && named.count[kRecvF] > 0;
  const bool collectives = named.count[kParams] + named.count[kGrads] + named.count[kClip] > 0;
  return named.count[kF] > 0 && (messages || (named.stages == 1 && collectives));
}

// Adds the types of the operations that occur, and returns for each operation the index of its type.
std::array<uint16_t, kOps> add_types(const Cells& cells, const NamedCells& named, std::vector<GraphType>& types) {
  std::array<uint16_t, kOps> type{};
  for (size_t t = 0; t < kOps; ++t) {
    if (named.count[t] == 0) continue;
    type[t] = static_cast<uint16_t>(types.size());
    const auto first = std::ranges::find(named.op, static_cast<WaitOp>(t));
    types.push_back({kNames[t].name, cells.kind[first - named.op.begin()], kNames[t].communicates});
  }
  return type;
}

// Returns for each part the number of its pipeline, from 1: replicas and tensor-parallel peers are pipelines of their
// own.
std::vector<uint64_t> pipeline_numbers(const Trace& trace) {
  const std::vector<int32_t> position = peer_positions(trace);
  std::map<std::pair<int32_t, int32_t>, uint64_t> numbers;  // (dp, position) → 1, 2, …
  std::vector<uint64_t> of_part;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    of_part.push_back(numbers.try_emplace({trace.parts[p].dp, position[p]}, numbers.size() + 1).first->second);
  return of_part;
}

}  // namespace

std::vector<StepDraft> draft_operations(const Trace& trace, bool mapped, LaunchRule rule, std::vector<GraphType>& types,
                                        Diagnostics& notes) {
  std::vector<WaitOp> by_name(trace.names.size(), kNoOp);
  for (StringId id = 0; id < by_name.size(); ++id) by_name[id] = op_of(trace.names.text(id));
  if (std::ranges::find(by_name, kF) == by_name.end()) return {};
  const Cells& cells = trace.cells;
  const NamedCells named = name_cells(trace, by_name);
  const std::vector<WaitOp>& op = named.op;
  if (!waits_are_known(trace, named)) return {};
  const std::array<uint16_t, kOps> type = add_types(cells, named, types);
  notes.add(problem::graph_operations_left_out, {}, named.unknown);
  const std::vector<uint64_t> pipeline_of = pipeline_numbers(trace);
  const bool over_replicas =
      named.count[kParams] + named.count[kGrads] > 0 ||
      std::ranges::any_of(trace.parts, [&](const Part& part) { return part.dp != trace.parts.front().dp; });
  const bool behind = named.count[kSeparate] > 0;

  std::vector<StepRange> ranges = step_ranges(cells);
  std::erase_if(ranges, [](const StepRange& r) { return r.step == kUnknown; });
  std::vector<StepDraft> drafts(ranges.size());
  parallel_for(ranges.size(), [&](size_t s) {
    StepDraft& draft = drafts[s];
    draft.step = ranges[s].step;
    std::map<uint64_t, std::vector<Rank>> pipelines;
    int32_t part = -1;
    Rank* rank = nullptr;
    for (uint32_t i = ranges[s].begin; i < ranges[s].end; ++i) {
      if (op[i] == kNoOp) continue;
      if (cells.part[i] != part) {
        part = cells.part[i];
        std::vector<Rank>& ranks = pipelines[pipeline_of[part]];
        rank = &ranks.emplace_back();
        rank->stage = trace.parts[part].stage;
      }
      const auto number = static_cast<uint32_t>(draft.ops.size());
      draft.ops.push_back({i, type[op[i]], cells.kind[i], part, cells.chunk[i], cells.micro_batch[i],
                           mapped ? trace.common_ns(part, cells.start_ns[i]) : cells.start_ns[i],
                           mapped ? trace.common_ns(part, cells.end_ns[i]) : cells.end_ns[i]});
      rank->of[op[i] == kI ? kB : op[i]].push_back(number);
      if (op[i] <= kW) rank->compute.push_back(number);
    }
    std::vector<Meeting> meetings;
    std::vector<uint8_t> fed(draft.ops.size(), 0);
    for (auto& [number, ranks] : pipelines)
      ReplicaWaits(draft, ranks, number, over_replicas, behind, rule, named.stages, fed, meetings).add();
    form_groups(draft, meetings);
    follow_links(trace, cells, ranges[s], fed, draft);
  });
  std::erase_if(drafts, [](const StepDraft& d) { return d.ops.empty(); });
  if (named.count[kClip] > 0) return drafts;
  const auto gradients = static_cast<uint16_t>(types.size());
  bool together = false;
  for (StepDraft& draft : drafts)
    together |= gradients_together(draft, gradients, mapped ? same_moment_ns(trace) : kSameNs);
  if (together) types.push_back(gradients_type());
  return drafts;
}

}  // namespace stageline
