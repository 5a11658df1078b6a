#include <algorithm>

#include "pipeline/replay/theory.h"

namespace stageline {

ScheduleSequences::ScheduleSequences(const TheoryRun& theory) : theory_(theory) {
  for (const TheorySize& size : theory.sizes) places_.emplace_back(size.schedule);
}

ScheduleSequences::Sequence ScheduleSequences::of(const OrderGraph& graph, size_t first, size_t last) const {
  Sequence out;
  if (theory_.size_of.empty() || theory_.size_of[first] == kUnknown) return out;
  const int32_t size = theory_.size_of[first];
  std::vector<int32_t> place(graph.units.size());
  out.as_it_ran = true;
  for (size_t l = first; l < last; ++l) {
    if (theory_.size_of[l] != size) return {};
    int32_t before = -1;
    const RankList& list = theory_.lists.lists[l];
    for (uint32_t u = graph.list_begin[l - first]; u < graph.list_begin[l - first + 1]; ++u) {
      const uint32_t t = graph.units[u].token;
      place[u] = places_[size].find(list.stage, theory_.lists.tokens[t], t - list.begin);
      if (place[u] == kUnknown) return {};
      out.as_it_ran &= place[u] >= before;
      before = place[u];
    }
  }
  if (out.as_it_ran) {
    out.known = true;
    out.order = graph.order;
    return out;
  }
  std::vector<uint32_t> sequence(graph.units.size());
  for (uint32_t u = 0; u < sequence.size(); ++u) sequence[u] = u;
  for (size_t l = 0; l + 1 < graph.list_begin.size(); ++l)
    std::stable_sort(sequence.begin() + graph.list_begin[l], sequence.begin() + graph.list_begin[l + 1],
                     [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
  out.known = reorder(graph, sequence, out.order);
  return out;
}

}  // namespace stageline
