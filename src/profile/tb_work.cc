#include "base/json_members.h"
#include "base/number.h"
#include "base/parallel.h"
#include "model/message_names.h"
#include "profile/tb_run.h"

namespace stageline {

TbRankWork tb_work(const TbRun& run, const TbRank& rank) {
  TbRankWork out;
  out.rank = rank.rank.rank;
  out.steps = rank.steps;
  const std::vector<Interval>& kernels = rank.covered(TbRole::kKernel);
  const std::vector<Interval>& compute = kernels.empty() ? rank.covered(TbRole::kCpuExec) : kernels;
  const std::vector<Interval>& talk = rank.covered(TbRole::kCommunication);
  out.communicates = !talk.empty();
  out.exposed = without(talk, compute);
  const CoveredTime computing(compute), talking(talk), both(shared_of(compute, talk));
  for (const TbStep& step : rank.steps) {
    const auto within = [&](const CoveredTime& time) { return time.within(step.start_ns, step.end_ns); };
    const int64_t overlap = within(both);
    TbOverlap o = {within(computing) - overlap, overlap, within(talking) - overlap, 0};
    o.other_ns = step.length_ns() - o.computation_ns - o.overlap_ns - o.communication_ns;
    out.overlaps.push_back(o);
  }
  out.calls = tb_collectives(run, rank);
  return out;
}

namespace {

// Divides the time of calls. When a call was matched with other ranks, its last transfer_ns are transfer and the rest
// is waiting. Of other calls nothing is known.
void split_waits(TbRankWork& rank) {
  std::vector<Interval> joined, transfer, all, messages, message_transfer, waits;
  for (const TbCollective& call : rank.calls) {
    const Interval at = {call.start_ns, call.start_ns + call.dur_ns};
    all.push_back(at);
    if (call.transfer_ns < 0) continue;
    joined.push_back(at);
    transfer.push_back({at.end - call.transfer_ns, at.end});
    if (!call.message) {
      waits.push_back({at.start, transfer.back().start});
      continue;
    }
    messages.push_back(at);
    message_transfer.push_back(transfer.back());
  }
  const CoveredTime any(union_of(std::move(all))), known(union_of(std::move(joined))),
      moving(union_of(std::move(transfer))), paired(union_of(std::move(messages))),
      paired_moving(union_of(std::move(message_transfer))),
      exposed(shared_of(rank.exposed, union_of(std::move(waits))));
  for (const TbStep& step : rank.steps) {
    const auto within = [&](const CoveredTime& time) { return time.within(step.start_ns, step.end_ns); };
    TbWait wait{.transfer_ns = within(moving)};
    wait.synchronizing_ns = within(known) - wait.transfer_ns;
    wait.unknown_ns = within(any) - within(known);
    wait.message_transfer_ns = within(paired_moving);
    wait.message_wait_ns = within(paired) - wait.message_transfer_ns;
    wait.exposed_wait_ns = within(exposed);
    rank.waits.push_back(wait);
  }
}

struct WaitFor {
  size_t rank, step;  // their indexes
  int64_t ns;
};

// The exposed waiting of a rank in collectives, and for whom. Where it waits in several at a time, it is in the first.
std::vector<WaitFor> exposed_waits(const TbRankWork& rank) {
  std::vector<const TbCollective*> calls;
  for (const TbCollective& call : rank.calls)
    if (!call.message && call.transfer_ns >= 0) calls.push_back(&call);
  std::ranges::stable_sort(calls, {}, &TbCollective::start_ns);
  const CoveredTime exposed(rank.exposed);
  std::vector<WaitFor> out;
  int64_t waited_until = INT64_MIN;
  for (const TbCollective* call : calls) {
    const int64_t begin = std::max(waited_until, call->start_ns);
    const int64_t end = call->start_ns + call->dur_ns - call->transfer_ns;
    if (end <= begin) continue;
    waited_until = end;
    const auto after = std::ranges::upper_bound(rank.steps, begin, {}, &TbStep::start_ns);
    if (after == rank.steps.begin() || begin >= std::prev(after)->end_ns) continue;
    out.push_back({call->last, static_cast<size_t>(after - rank.steps.begin() - 1), exposed.within(begin, end)});
  }
  return out;
}

void sum_step_waits(std::vector<TbRankWork>& ranks) {
  std::vector<std::vector<WaitFor>> waits(ranks.size());
  parallel_for(ranks.size(), [&](size_t k) { waits[k] = exposed_waits(ranks[k]); });
  for (size_t k = 0; k < ranks.size(); ++k) {
    for (const TbStep& step : ranks[k].steps) ranks[k].step_waits.push_back({.number = step.number});
    for (const TbCollective& call : ranks[k].calls) {
      if (call.message || call.transfer_ns < 0) continue;
      ++ranks[k].collectives;
      ranks[k].came_last += call.last == k ? 1 : 0;
    }
  }
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const WaitFor& wait : waits[k]) {
      ranks[k].step_waits[wait.step].own_ns += wait.ns;
      std::vector<TbStepWait>& last = ranks[wait.rank].step_waits;
      if (wait.step < last.size()) last[wait.step].others_ns += wait.ns;
    }
}

constexpr StringId kMessage = UINT32_MAX;  // the common name under which sends and receives are matched

// Finds the call that a communication kernel without arguments belongs to. It is the nearest call around its launch
// with arguments of a collective, else the nearest with the name of a collective. It is computed for all slices at
// once, because climbing up from every kernel would be slow in deep nesting.
class CollectiveAbove {
 public:
  CollectiveAbove(const TbRun& run, const Part& part) : run_(run), part_(part) {}

  uint32_t of(uint32_t slice) {
    if (slice == kNoSliceIndex) return kNoSliceIndex;
    if (above_.empty()) fill();
    return above_[slice];
  }

 private:
  void fill() {
    const Slices& s = part_.slices;
    above_.assign(s.size(), kNoSliceIndex);
    std::vector<bool> has_fact(s.size());
    for (const CollectiveFact& fact : part_.collectives) has_fact[fact.slice] = fact.name != 0;
    for (const Lane& lane : part_.lanes)
      for (uint32_t i = lane.begin; i < lane.end; ++i) {  // what encloses a slice of a thread stands before it
        const bool nested = lane.kind != LaneKind::kDeviceStream && s.parent[i] < i;
        const uint32_t outer = nested ? above_[s.parent[i]] : kNoSliceIndex;
        const bool named = run_.is(s.name_id[i], TbRun::kHostCollective | TbRun::kDeviceCollective);
        const bool own = has_fact[i] || (named && (outer == kNoSliceIndex || !has_fact[outer]));
        above_[i] = own ? i : outer;
      }
  }
  const TbRun& run_;
  const Part& part_;
  std::vector<uint32_t> above_;  // for each slice; empty until it is needed
};

// Returns true when all ranks of a collective of that name have the same number of bytes. Then the size separates
// groups of ranks that the trace does not distinguish.
bool sizes_agree(std::string_view name) {
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return holds("reduce") || holds("all_gather") || holds("allgather") || holds("broadcast");
}

class Collector {
 public:
  Collector(const TbRun& run, const TbRank& rank) : run_(run), rank_(rank), above_(run, *rank.rank.part) {}

  std::vector<TbCollective> all() {
    const TorchRank& rank = rank_.rank;
    for (const TorchRow& row : rank.rows) {
      const TbEvent event = run_.event(rank, row);
      if (event == TbEvent::kKernel && row.kernel == KernelClass::kCommunication) {
        add_kernel(row);
      } else if (event == TbEvent::kOperator || event == TbEvent::kAnnotation) {
        const uint8_t wanted = rank_.host_communicates ? TbRun::kHostCollective | TbRun::kDeviceCollective
                                                       : static_cast<uint8_t>(TbRun::kHostCollective);
        if (run_.is(row.name, wanted)) add(row, row.slice, nullptr);
      }
    }
    std::ranges::sort(out_, [](const TbCollective& a, const TbCollective& b) {
      return a.kind() != b.kind() ? a.kind() < b.kind() : a.start_ns < b.start_ns;
    });
    for (size_t i = 1; i < out_.size(); ++i)
      if (out_[i].kind() == out_[i - 1].kind()) out_[i].position = out_[i - 1].position + 1;
    return std::move(out_);
  }

 private:
  void add_kernel(const TorchRow& row) {
    const Part& part = *rank_.rank.part;
    const CollectiveFact* fact = fact_of(part.collectives, row.slice);
    if (fact && fact->name != 0) return add(row, kNoSliceIndex, fact);
    const uint32_t owner = part.slices.parent[row.slice], launch = part.slices.partner[row.slice];
    uint32_t around = above_.of(launch);  // an annotation is nearer to the launch than an operator around both
    if (around == kNoSliceIndex) around = above_.of(owner);
    add(row, around, around == kNoSliceIndex ? nullptr : fact_of(part.collectives, around));
  }

  // `around` is the call that the collective is named after; `fact` are its arguments, if it has any.
  void add(const TorchRow& row, uint32_t around, const CollectiveFact* fact) {
    const Part& part = *rank_.rank.part;
    TbCollective c;
    c.start_ns = row.start_ns;
    c.dur_ns = row.dur_ns;
    c.label = around != kNoSliceIndex ? part.slices.name_id[around] : row.name;
    if (fact && fact->name != 0) {
      c.label = fact->name;
      c.bytes = fact->bytes;
      c.group_size = fact->group_size;
    }
    c.name = c.label;
    if (fact) take_numbers(*fact, c);
    c.message = is_message_name(run_.torch.trace->names.text(c.label));
    if (c.bytes < 0 && around != kNoSliceIndex)
      if (const InputFact* input = fact_of(part.inputs, around)) {
        const StringPool& names = run_.torch.trace->names;
        if (const int64_t bytes = input_bytes(names.text(input->dims), names.text(input->types)); bytes > 0)
          c.bytes = bytes;
      }
    if (c.by_order()) {
      c.step = row.iteration;
      if (sizes_agree(run_.torch.trace->names.text(c.label))) c.size = c.bytes;
    }
    const bool own_numbers = run_.torch.trace->numbers_messages_per_rank;
    c.one_end = c.message && (own_numbers || (c.comms_id == 0 && c.name != kMessage));
    out_.push_back(c);
  }

  void take_numbers(const CollectiveFact& fact, TbCollective& c) const {
    c.comms_id = fact.comms_id;
    if (c.comms_id != 0) {
      c.name = 0;  // comms_id alone identifies it
      return;
    }
    c.group = fact.group;
    c.group_ranks = fact.group_ranks;
    c.number = fact.seq;
    const std::string_view name = run_.torch.trace->names.text(c.label);
    if (name == "send" || name == "recv") {
      c.name = kMessage;
      c.from = fact.src_rank >= 0 ? fact.src_rank : name == "send" ? rank_.rank.rank : -1;
      c.to = fact.dst_rank >= 0 ? fact.dst_rank : name == "recv" ? rank_.rank.rank : -1;
    }
  }

  const TbRun& run_;
  const TbRank& rank_;
  CollectiveAbove above_;
  std::vector<TbCollective> out_;
};

int64_t type_bytes(std::string_view type) {
  for (const auto& [name, size] : {std::pair<std::string_view, int64_t>{"float", 4},
                                   {"c10::Half", 2},
                                   {"c10::BFloat16", 2},
                                   {"double", 8},
                                   {"long int", 8},
                                   {"long", 8},
                                   {"int", 4},
                                   {"short int", 2},
                                   {"unsigned char", 1},
                                   {"signed char", 1},
                                   {"bool", 1}})
    if (name == type) return size;
  return type.starts_with("c10::Float8") ? 1 : 0;
}

struct Calls {  // the calls of one kind on one rank
  size_t rank, begin, end;
  int64_t count() const { return static_cast<int64_t>(end - begin); }
};

// Fills transfer_ns of the calls of one kind, of which no rank has more than `max`.
void find_transfers(std::vector<std::vector<TbCollective>>& ranks, const std::vector<Calls>& same, size_t max,
                    bool one_clock, TbJoin& join) {
  std::vector<int64_t> shortest(max, INT64_MAX), last_start(max, INT64_MIN), shortest_start(max);
  std::vector<size_t> shortest_rank(max), last_rank(max);
  std::vector<int32_t> sharing(max, 0);
  for (const Calls& calls : same)
    for (size_t i = calls.begin; i < calls.end; ++i) {
      const TbCollective& call = ranks[calls.rank][i];
      const size_t k = i - calls.begin;
      if (call.dur_ns < shortest[k])
        shortest[k] = call.dur_ns, shortest_start[k] = call.start_ns, shortest_rank[k] = calls.rank;
      if (call.start_ns > last_start[k]) last_start[k] = call.start_ns, last_rank[k] = calls.rank;
      ++sharing[k];
    }
  for (const Calls& calls : same)
    for (size_t i = calls.begin; i < calls.end; ++i) {
      const bool shared = sharing[i - calls.begin] > 1;
      // On one clock, a rank waits until the last one comes. Where that is the shortest call, all leave together.
      TbCollective& call = ranks[calls.rank][i];
      const size_t k = i - calls.begin;
      const bool by_start = one_clock && last_start[k] > shortest_start[k];
      if (shared)
        call.transfer_ns = by_start ? call.dur_ns - std::min(call.dur_ns, last_start[k] - call.start_ns) : shortest[k];
      call.last = by_start ? last_rank[k] : shortest_rank[k];
      ++(shared ? join.joined : join.alone);
    }
}

}  // namespace

TbJoin join_work(std::vector<TbRankWork>& ranks, bool one_clock) {
  std::vector<std::vector<TbCollective>> calls(ranks.size());
  for (size_t k = 0; k < ranks.size(); ++k) calls[k] = std::move(ranks[k].calls);
  const TbJoin join = join_collectives(calls, one_clock);
  for (size_t k = 0; k < ranks.size(); ++k) ranks[k].calls = std::move(calls[k]);
  parallel_for(ranks.size(), [&](size_t k) { split_waits(ranks[k]); });
  sum_step_waits(ranks);
  return join;
}

TbMeanWork TbRankWork::mean() const {
  TbMeanWork m;
  if (steps.empty()) return m;
  const auto mean = [&](const auto& of_steps, auto member) {
    const int64_t sum = sum_over<int64_t>(of_steps, [&](const auto& step) { return step.*member; });
    return std::llround(sum / static_cast<double>(steps.size()));
  };
  for (const TbStep& step : steps) m.step_ns += step.length_ns();
  m.step_ns = std::llround(m.step_ns / static_cast<double>(steps.size()));
  for (const auto part :
       {&TbOverlap::computation_ns, &TbOverlap::overlap_ns, &TbOverlap::communication_ns, &TbOverlap::other_ns})
    m.overlap.*part = mean(overlaps, part);
  for (const auto part : {&TbWait::transfer_ns, &TbWait::synchronizing_ns, &TbWait::unknown_ns,
                          &TbWait::message_transfer_ns, &TbWait::message_wait_ns, &TbWait::exposed_wait_ns})
    m.wait.*part = mean(waits, part);
  return m;
}

int64_t input_bytes(std::string_view dims, std::string_view types) {
  const std::vector<JsonMember> shapes = json_members(dims, 4096), names = json_members(types, 4096);
  int64_t sum = 0;
  for (size_t i = 0; i < shapes.size() && i < names.size(); ++i) {
    int64_t bytes = type_bytes(json_text(names[i].value));
    for (const JsonMember& side : json_members(shapes[i].value, 64)) {
      const auto size = json_integer(side.value);
      if (!size || *size < 0 || __builtin_mul_overflow(bytes, *size, &bytes)) bytes = 0;
    }
    if (__builtin_add_overflow(sum, bytes, &sum)) return 0;
  }
  return sum;
}

std::vector<TbCollective> tb_collectives(const TbRun& run, const TbRank& rank) { return Collector(run, rank).all(); }

TbJoin join_collectives(std::vector<std::vector<TbCollective>>& ranks, bool one_clock) {
  TbJoin join;
  // The lists are sorted by kind, so a merge of all lists meets the ranks of one kind together.
  std::vector<size_t> next(ranks.size(), 0);
  const auto later = [&](size_t a, size_t b) {
    const auto left = ranks[a][next[a]].kind(), right = ranks[b][next[b]].kind();
    return left != right ? left > right : a > b;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> heads(later);
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!ranks[r].empty()) heads.push(r);
  std::vector<Calls> same;
  while (!heads.empty()) {
    const TbCollective& first = ranks[heads.top()][next[heads.top()]];
    const auto kind = first.kind();
    const bool by_order = first.by_order(), one_end = first.one_end;
    same.clear();
    size_t max = 0, min = SIZE_MAX;
    while (!heads.empty() && ranks[heads.top()][next[heads.top()]].kind() == kind) {
      const size_t r = heads.top();
      heads.pop();
      Calls calls = {r, next[r], next[r]};
      while (calls.end < ranks[r].size() && ranks[r][calls.end].kind() == kind) ++calls.end;
      max = std::max(max, calls.end - calls.begin);
      min = std::min(min, calls.end - calls.begin);
      next[r] = calls.end;
      same.push_back(calls);
    }
    for (const Calls& calls : same)
      if (calls.end < ranks[calls.rank].size()) heads.push(calls.rank);
    const bool alone = same.size() < 2 || one_end;
    if (alone || (by_order && max != min)) {
      for (const Calls& calls : same) (alone ? join.alone : join.unequal) += calls.count();
      continue;
    }
    find_transfers(ranks, same, max, one_clock, join);
  }
  return join;
}

}  // namespace stageline
