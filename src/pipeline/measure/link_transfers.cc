#include "pipeline/measure/link_transfers.h"

#include "model/statistics.h"
#include "pipeline/clocks/match.h"

namespace stageline {
namespace {

// Bytes of the message that a cell stands for, as its profiler recorded them; −1: not recorded.
double message_bytes(const Trace& trace, uint32_t cell) {
  const uint32_t slice = cell < trace.cells.size() ? trace.cells.slice[cell] : kNoSlice;
  if (slice == kNoSlice) return -1;
  const auto& facts = trace.parts[trace.cells.part[cell]].collectives;
  const auto fact = std::ranges::lower_bound(facts, slice, {}, &CollectiveFact::slice);
  return fact == facts.end() || fact->slice != slice ? -1 : static_cast<double>(fact->bytes);
}

// Returns true if the graph's times are mapped ones: it keeps raw timestamps where these agree with each other.
bool stands_on_mapped(const Trace& trace, const StepGraph& graph) {
  if (trace.alignment != AlignState::kMapped) return false;
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (graph.cell[i] == kNoCell) continue;
      const int64_t raw = trace.cells.start_ns[graph.cell[i]];
      if (trace.common_ns(graph.part[i], raw) != raw) return step.start_ns + graph.start_ns[i] != raw;
    }
  return true;
}

void from_groups(const Trace& trace, const StepGraph& graph, LinkTransfers& out) {
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end;) {
      const uint32_t group = graph.group(i);
      uint32_t end = i + 1;
      while (group != kNoGroup && end < step.end && graph.group(end) == group) ++end;
      if (end - i == 2 && is_message(graph.kind[i]) && is_message(graph.kind[i + 1]) &&
          is_send(graph.kind[i]) != is_send(graph.kind[i + 1])) {
        const uint32_t send = is_send(graph.kind[i]) ? i : i + 1, recv = send == i ? i + 1 : i;
        // Sends and receives that one kernel runs together have one end, so the side that ended first gives the
        // message's end.
        const int64_t took =
            std::min(graph.ended_ns(send), graph.ended_ns(recv)) - std::max(graph.start_ns[send], graph.start_ns[recv]);
        out.messages.push_back({graph.part[send], graph.part[recv], step.step, is_of_forward(graph.kind[send]),
                                static_cast<double>(took), message_bytes(trace, graph.cell[recv]),
                                std::fabs(graph.ended_ns(send) - graph.ended_ns(recv)), graph.cell[send],
                                graph.cell[recv]});
      }
      i = end;
    }
}

// Finds sends by rank and times, since a match knows its send only by these.
class Sends {
 public:
  explicit Sends(const Cells& cells) : cells_(cells) {
    for (uint32_t i = 0; i < cells.size(); ++i)
      if (is_send(cells.kind[i])) sends_.push_back(i);
    std::ranges::sort(sends_, {}, [&](uint32_t send) { return key(send); });
  }
  // The send that ran on `part` from start_ns to end_ns; of several, the one of this micro-batch; kNoSlice: none.
  uint32_t find(int32_t part, int64_t start_ns, int64_t end_ns, int32_t micro_batch) const {
    const Key wanted = {part, start_ns, end_ns, INT32_MIN, 0};
    auto at =
        std::lower_bound(sends_.begin(), sends_.end(), wanted, [&](uint32_t a, const Key& b) { return key(a) < b; });
    uint32_t found = kNoSlice;
    for (; at != sends_.end() && cells_.part[*at] == part && cells_.start_ns[*at] == start_ns &&
           cells_.end_ns[*at] == end_ns;
         ++at)
      if (found == kNoSlice || cells_.micro_batch[*at] == micro_batch) found = *at;
    return found;
  }

 private:
  using Key = std::tuple<int32_t, int64_t, int64_t, int32_t, uint32_t>;
  Key key(uint32_t i) const { return {cells_.part[i], cells_.start_ns[i], cells_.end_ns[i], cells_.micro_batch[i], i}; }
  const Cells& cells_;
  std::vector<uint32_t> sends_;
};

void from_messages(const Trace& trace, LinkTransfers& out) {
  const align::Matches matches = align::find_matches(trace, {});
  const Sends sends(trace.cells);
  for (const align::Tie& tie : matches.ties) {
    if (tie.kind != align::TieKind::kMessages) continue;
    align::for_each_match(matches, tie, [&](const align::Match& m) {
      const auto from = static_cast<int32_t>(m.from_a ? tie.part_a : tie.part_b);
      const auto to = static_cast<int32_t>(m.from_a ? tie.part_b : tie.part_a);
      const int64_t start = std::max(trace.common_ns(from, m.send_start_ns), trace.common_ns(to, m.recv_start_ns));
      const int64_t send_end = trace.common_ns(from, m.send_end_ns), recv_end = trace.common_ns(to, m.recv_end_ns);
      if (trace.cells.step[m.tag] == kUnknown) return;
      out.messages.push_back({from, to, trace.cells.step[m.tag], is_of_forward(trace.cells.kind[m.tag]),
                              static_cast<double>(std::min(send_end, recv_end) - start), message_bytes(trace, m.tag),
                              std::fabs(send_end - recv_end),
                              sends.find(from, m.send_start_ns, m.send_end_ns, trace.cells.micro_batch[m.tag]), m.tag});
    });
  }
}

LinkTransfer gap_of(const Trace& trace, const Link& link) {
  const Cells& cells = trace.cells;
  const int32_t from = cells.part[link.from_cell], to = cells.part[link.to_cell];
  const bool forward =
      cells.kind[link.from_cell] == CellKind::kForward ||
      (cells.kind[link.from_cell] == CellKind::kForwardBackward && cells.kind[link.to_cell] == CellKind::kForward);
  const int64_t took =
      trace.common_ns(to, cells.start_ns[link.to_cell]) - trace.common_ns(from, cells.end_ns[link.from_cell]);
  return {from, to, cells.step[link.to_cell], forward, static_cast<double>(took), -1, -1, link.from_cell, link.to_cell};
}

void from_gaps(const Trace& trace, LinkTransfers& out) {
  const Cells& cells = trace.cells;
  // Since when a cell's own rank was free: the latest end of the compute cells before it.
  std::vector<int64_t> free_ns(cells.size(), INT64_MIN);
  for (size_t i = 0; i < cells.size();) {
    int64_t latest = INT64_MIN;
    const int32_t part = cells.part[i], step = cells.step[i];
    for (; i < cells.size() && cells.part[i] == part && cells.step[i] == step; ++i) {
      if (!is_compute(cells.kind[i])) continue;
      free_ns[i] = latest;
      latest = std::max(latest, trace.common_ns(part, cells.end_ns[i]));
    }
  }
  out.trace = &trace;
  for (uint32_t l = 0; l < trace.links.size(); ++l) {
    const Link& link = trace.links[l];
    const int32_t from = cells.part[link.from_cell], to = cells.part[link.to_cell];
    if (from == to || cells.step[link.to_cell] == kUnknown) continue;
    const int64_t sent = trace.common_ns(from, cells.end_ns[link.from_cell]);
    if (free_ns[link.to_cell] > sent) continue;  // its rank was still busy, so it did not wait for the message
    out.gaps.push_back(l);
  }
}

struct EdgeTransfer {
  int32_t from, to;
  double ns;
  bool operator<(const EdgeTransfer& o) const { return std::tie(from, to, ns) < std::tie(o.from, o.to, o.ns); }
};

// Returns one transfer for every matched message.
std::vector<EdgeTransfer> recorded(const Trace& trace) {
  std::vector<EdgeTransfer> out;
  if (trace.messages_are_calls || !trace.comparable() || std::ranges::none_of(trace.cells.kind, is_message)) return out;
  const align::Matches matches = align::find_matches(trace, {});
  for (const align::Tie& tie : matches.ties) {
    if (tie.kind != align::TieKind::kMessages) continue;
    const auto a = static_cast<int32_t>(tie.part_a), b = static_cast<int32_t>(tie.part_b);
    align::for_each_match(matches, tie, [&](const align::Match& m) {
      const int32_t from = m.from_a ? a : b, to = m.from_a ? b : a;
      const int64_t begins = std::max(trace.common_ns(from, m.send_start_ns), trace.common_ns(to, m.recv_start_ns));
      out.push_back({from, to, static_cast<double>(between_ns(begins, trace.common_ns(to, m.recv_end_ns)))});
    });
  }
  return out;
}

// Adds the median of every pair; `sorted` holds the transfers of one pair next to each other, ascending in time.
void add_medians(const std::vector<EdgeTransfer>& sorted, bool by_messages, std::vector<EdgeLatency>& out) {
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i;
    while (end < sorted.size() && sorted[end].from == sorted[i].from && sorted[end].to == sorted[i].to) ++end;
    const size_t n = end - i;
    const double middle = (sorted[i + (n - 1) / 2].ns + sorted[i + n / 2].ns) / 2;
    out.push_back({sorted[i].from, sorted[i].to, std::max(0.0, middle), by_messages});
    i = end;
  }
}

bool by_pair(const EdgeLatency& a, const EdgeLatency& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); }

}  // namespace

LinkTransfer LinkTransfers::at(size_t i) const {
  return evidence == LinkEvidence::kGaps ? gap_of(*trace, trace->links[gaps[i]]) : messages[i];
}

LinkTransfers find_transfers(const Trace& trace, const StepGraph& graph) {
  LinkTransfers out;
  if (graph.source == GraphSource::kOperations) {
    out.mapped = stands_on_mapped(trace, graph);
    from_groups(trace, graph, out);
  } else {
    out.mapped = trace.alignment == AlignState::kMapped;
    const bool recorded = !trace.messages_are_calls && std::ranges::any_of(trace.cells.kind, is_message);
    if (recorded) from_messages(trace, out);
    if (out.messages.empty()) {
      from_gaps(trace, out);
      out.evidence = out.gaps.empty() ? LinkEvidence::kNone : LinkEvidence::kGaps;
      return out;
    }
  }
  out.evidence = out.messages.empty() ? LinkEvidence::kNone : LinkEvidence::kMessages;
  return out;
}

EdgeLatencies::EdgeLatencies(const Trace& trace, std::vector<GapSample> samples) {
  std::vector<EdgeTransfer> values = recorded(trace);
  std::sort(values.begin(), values.end());
  add_medians(values, true, edges_);
  values.clear();
  for (const GapSample& sample : samples) values.push_back({sample.from, sample.to, sample.median_ns});
  std::sort(values.begin(), values.end());
  add_medians(values, false, edges_);
  // A pair that has both keeps the value of its messages: it was added first, and the sort is stable.
  sort_stably(edges_, by_pair);
  edges_.erase(std::unique(edges_.begin(), edges_.end(),
                           [](const EdgeLatency& a, const EdgeLatency& b) { return a.from == b.from && a.to == b.to; }),
               edges_.end());
  auto all = mapped<double>(edges_, &EdgeLatency::ns);
  if (!all.empty()) median_ns_ = median_of(std::move(all));
}

const EdgeLatency* EdgeLatencies::find(int32_t from, int32_t to) const {
  const auto at = std::lower_bound(edges_.begin(), edges_.end(), EdgeLatency{from, to}, by_pair);
  return at != edges_.end() && at->from == from && at->to == to ? &*at : nullptr;
}

double EdgeLatencies::of(int32_t from, int32_t to) const {
  const EdgeLatency* edge = find(from, to);
  return edge ? edge->ns : median_ns_;
}

}  // namespace stageline
