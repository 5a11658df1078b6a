#include "base/json_members.h"
#include "model/message_names.h"
#include "profile/same_calls.h"
#include "profile/tb_run.h"

namespace stageline {

TbRankWork tb_work(const TbRun& run, const TbRank& rank) {
  TbRankWork out{.rank = rank.rank.rank, .steps = rank.steps};
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
  sort_stably(calls, {}, &TbCollective::start_ns);
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

struct RankCall {
  size_t rank;
  TbCollective* at;
};

// Fills transfer_ns of one collective. On one clock, a rank waits until the last one comes. Where that is the shortest
// call, all leave together.
void find_transfer(const std::vector<RankCall>& one, bool one_clock) {
  const auto start = [](const RankCall& call) { return call.at->start_ns; };
  const RankCall& last = *std::ranges::max_element(one, {}, start);
  const RankCall& shortest = *std::ranges::min_element(one, {}, [](const RankCall& call) { return call.at->dur_ns; });
  const bool by_start = one_clock && start(last) > start(shortest);
  const int64_t shortest_ns = shortest.at->dur_ns;
  for (const RankCall& call : one) {
    const int64_t dur_ns = call.at->dur_ns;
    call.at->transfer_ns = by_start ? dur_ns - std::min(dur_ns, start(last) - start(call)) : shortest_ns;
    call.at->last = (by_start ? last : shortest).rank;
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
  std::vector<RankCall> calls;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (TbCollective& call : ranks[r]) calls.push_back({r, &call});
  each_same(
      calls, [](const RankCall& call) { return call.at->kind(); }, [](const RankCall& call) { return call.rank; },
      [&](const SameCalls<RankCall>& same) {
        const TbCollective& first = *same[0][0].at;
        const bool unequal = same.size() > 1 && !first.one_end && first.by_order() && !equally_many(same);
        each_instance(same, [&](const std::vector<RankCall>& one) {
          const bool found = one.size() > 1 && !first.one_end && !unequal;
          (found ? join.joined : unequal ? join.unequal : join.alone) += std::ssize(one);
          if (found) find_transfer(one, one_clock);
        });
      });
  return join;
}

}  // namespace stageline
