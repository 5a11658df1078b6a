#include "pipeline/measure/edge_latency.h"

#include <algorithm>
#include <tuple>

#include "base/number.h"
#include "pipeline/clocks/match.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

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

EdgeLatencies::EdgeLatencies(const Trace& trace, std::vector<GapSample> samples) {
  std::vector<EdgeTransfer> values = recorded(trace);
  std::sort(values.begin(), values.end());
  add_medians(values, true, edges_);
  values.clear();
  for (const GapSample& sample : samples) values.push_back({sample.from, sample.to, sample.median_ns});
  std::sort(values.begin(), values.end());
  add_medians(values, false, edges_);
  // A pair that has both keeps the value of its messages: it was added first, and the sort is stable.
  std::ranges::stable_sort(edges_, by_pair);
  edges_.erase(std::unique(edges_.begin(), edges_.end(),
                           [](const EdgeLatency& a, const EdgeLatency& b) { return a.from == b.from && a.to == b.to; }),
               edges_.end());
  std::vector<double> all;
  for (const EdgeLatency& edge : edges_) all.push_back(edge.ns);
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
