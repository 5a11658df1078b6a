#include "profile/tb_collectives.h"

#include <algorithm>
#include <queue>

#include "base/json_members.h"
#include "model/message_names.h"

namespace stageline {
namespace {

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

}  // namespace

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

namespace {

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
