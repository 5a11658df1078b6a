// Measures the time of each operation in other replicas, and its usual time. What-if scenarios are built from these
// numbers.
#include "base/parallel.h"
#include "diagnosis/what_if/what_if.h"
#include "model/statistics.h"

namespace stageline {
namespace {

// Kinds of work that a device does alone, so that a faster device does them faster.
bool works(CellKind kind) { return is_compute(kind) || kind == CellKind::kOptimizer; }

// An operation together with its sort keys. A comparison that looked them up in the graph would read ten columns in
// random order, some twenty times for each operation of ten thousand ranks.
struct PlacedOp {
  int32_t stage, chunk, micro_batch;
  uint16_t type;
  int32_t dp;
  uint32_t op;
  bool is_like(const PlacedOp& other) const {  // whether it is the same work, of any replica
    return stage == other.stage && type == other.type && chunk == other.chunk && micro_batch == other.micro_batch;
  }
  bool operator<(const PlacedOp& other) const {
    return std::tie(stage, type, chunk, micro_batch, dp, op) <
           std::tie(other.stage, other.type, other.chunk, other.micro_batch, other.dp, other.op);
  }
};

// Finds the ranks at both ends of messages.
class MessageEnds {
 public:
  MessageEnds(const Trace& trace, const StepGraph& graph) : graph_(graph) {
    for (uint32_t p = 0; p < trace.parts.size(); ++p) {
      part_of_.try_emplace({trace.parts[p].dp, trace.parts[p].stage}, static_cast<int32_t>(p));
      last_stage_ = std::max(last_stage_, trace.parts[p].stage);
    }
  }

  // The receiver, the sender, and the kind of a message; a sender that was not recorded is the neighbouring stage of
  // the same replica.
  std::tuple<int32_t, int32_t, CellKind> of(uint32_t op) const {
    int32_t from = kUnknown, to = graph_.part[op];
    CellKind kind = graph_.kind[op];
    if (graph_.group(op) != kNoGroup) {
      const GraphGroup& group = graph_.groups[graph_.group(op)];
      for (uint32_t other = group.begin; other < group.end; ++other)
        if (is_receive(graph_.kind[other])) to = graph_.part[other], kind = graph_.kind[other];
        else from = graph_.part[other];
    } else if (graph_.cell[op] == kNoCell && !graph_.waits(op).empty()) {
      from = graph_.part[graph_.waits(op).front()];
    }
    if (from == kUnknown) from = neighbour(op, kind == CellKind::kRecvForward ? -1 : 1);
    return {to, from, kind};
  }

 private:
  int32_t neighbour(uint32_t op, int32_t by) const {
    const int32_t stage = graph_.stage(op) + by;
    return value_at(part_of_, {graph_.dp(op), stage < 0 ? last_stage_ : stage > last_stage_ ? 0 : stage}, kUnknown);
  }

  const StepGraph& graph_;
  std::map<std::pair<int32_t, int32_t>, int32_t> part_of_;  // key: replica and stage
  int32_t last_stage_ = 0;
};

// Holds the messages of a receiver from a sender in one direction.
struct OneLink {
  int32_t receiver = 0, sender = kUnknown;
  bool across = false;  // of two machines
  double ns = 0;
  int64_t count = 0;
  double mean() const { return count > 0 ? ns / count : 0; }
};

// An unrecorded message includes the delay of a late receiver. If messages from several senders are all longer, the
// least excess among them is the receiver's and not a link's. `usual_ns`: of links within and across machines.
std::map<int32_t, double> receiver_delays(const std::vector<OneLink>& links, const double (&usual_ns)[2]) {
  std::map<int32_t, std::set<int32_t>> senders;
  std::map<int32_t, double> min_ns;
  for (const OneLink& link : links) {
    if (link.sender != kUnknown) senders[link.receiver].insert(link.sender);
    const double excess_ns = std::max(0.0, link.mean() - usual_ns[link.across]);
    const auto [least, fresh] = min_ns.try_emplace(link.receiver, excess_ns);
    least->second = std::min(least->second, excess_ns);
  }
  std::erase_if(min_ns, [&](const auto& entry) { return senders[entry.first].size() < 2; });
  return min_ns;
}

}  // namespace

// Compares cells with the same cells of other replicas: same step, stage, type, chunk and micro-batch.
void WhatIf::measure_others() {
  others_ns_.assign(graph_->size(), kNaN);
  if (graph_->dp_count < 2) return;
  parallel_for(graph_->steps.size(), [&](size_t s) {
    std::vector<PlacedOp> ops;
    for (uint32_t op = graph_->steps[s].begin; op < graph_->steps[s].end; ++op)
      if (works(graph_->kind[op]) && graph_->stage(op) >= 0 && graph_->dp(op) >= 0)
        ops.push_back(
            {graph_->stage(op), graph_->chunk[op], graph_->micro_batch[op], graph_->type[op], graph_->dp(op), op});
    std::sort(ops.begin(), ops.end());
    for (size_t begin = 0; begin < ops.size();) {
      size_t end = begin;
      double sum = 0;
      for (; end < ops.size() && ops[end].is_like(ops[begin]); ++end) sum += graph_->dur_ns[ops[end].op];
      for (size_t i = begin; i < end;) {  // a replica's tensor-parallel ranks are left out of its mean together
        size_t last = i;
        double own = 0;
        for (; last < end && ops[last].dp == ops[i].dp; ++last) own += graph_->dur_ns[ops[last].op];
        const size_t others = (end - begin) - (last - i);
        for (; i < last; ++i)
          if (others > 0) others_ns_[ops[i].op] = (sum - own) / others;
      }
      begin = end;
    }
  });
}

void WhatIf::measure_usual() {
  using Key = std::tuple<int32_t, uint16_t, int32_t>;  // part, type, chunk
  std::map<Key, uint32_t> number;
  std::vector<int64_t> count;
  usual_ns_.clear();
  place_of_.resize(graph_->size(), 0);
  Key before;
  uint32_t own = 0;
  for (size_t s = 0; s < graph_->steps.size(); ++s)
    for (size_t op = graph_->steps[s].begin; op < graph_->steps[s].end; ++op) {
      if (!is_compute(graph_->kind[op])) continue;
      const Key key(graph_->part[op], graph_->type[op], graph_->chunk[op]);
      if (count.empty() || key != before) {
        own = number.try_emplace(key, static_cast<uint32_t>(count.size())).first->second;
        if (own == count.size()) count.push_back(0), usual_ns_.push_back(0);
      }
      before = key;
      place_of_[op] = own;
      if (!counts_[s]) continue;
      usual_ns_[own] += graph_->dur_ns[op];
      ++count[own];
    }
  for (size_t i = 0; i < count.size(); ++i) usual_ns_[i] = count[i] > 0 ? usual_ns_[i] / count[i] : kNaN;
}

// A link is a receiver and a sender in one direction; its class is whether both are on one machine.
void WhatIf::measure_links(const Trace& trace) {
  const MessageEnds ends(trace, *graph_);
  std::map<std::tuple<int32_t, int32_t, CellKind>, uint32_t> index;
  std::vector<OneLink> links;
  size_t step = 0;
  for (uint32_t op = 0; op < graph_->size(); ++op) {
    while (op >= graph_->steps[step].end) ++step;
    if (!is_message(graph_->kind[op])) continue;
    const auto [to, from, kind] = ends.of(op);
    const auto [at, fresh] = index.try_emplace({to, from, kind}, static_cast<uint32_t>(links.size()));
    if (fresh) links.push_back({to, from, from != kUnknown && trace.parts[from].machine != trace.parts[to].machine});
    place_of_[op] = at->second;
    if (!is_receive(graph_->kind[op]) || !counts_[step]) continue;
    links[at->second].ns += graph_->dur_ns[op];
    ++links[at->second].count;
  }
  std::vector<double> means[2];
  for (const OneLink& link : links)
    if (link.count > 0) means[link.across].push_back(link.mean());
  const double median[2] = {median_of(means[0]), median_of(means[1])};
  std::map<int32_t, double> late_ns;
  if (graph_->source == GraphSource::kComputeCells && !graph_->messages_recorded)
    late_ns = receiver_delays(links, median);
  link_factor_.assign(links.size(), 1);
  for (size_t i = 0; i < links.size(); ++i) {
    const double usual = median[links[i].across] + value_at(late_ns, links[i].receiver), mean = links[i].mean();
    if (mean > usual && mean > 0) link_factor_[i] = static_cast<float>(usual / mean);
  }
}

}  // namespace stageline
