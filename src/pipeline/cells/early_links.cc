#include "pipeline/cells/early_links.h"

#include <algorithm>

#include "base/parallel.h"

namespace stageline {

EarlyLinks early_links(const Trace& trace, int64_t beyond_ns) {
  const std::vector<Link>& links = trace.links;
  const Cells& cells = trace.cells;
  std::vector<EarlyLinks> stretches((links.size() + kStretch - 1) / kStretch);
  parallel_for(stretches.size(), [&](size_t s) {
    EarlyLinks& own = stretches[s];
    for (size_t l = s * kStretch; l < std::min(links.size(), (s + 1) * kStretch); ++l) {
      const Link& link = links[l];
      const int64_t early = trace.common_ns(cells.part[link.from_cell], cells.end_ns[link.from_cell]) -
                            trace.common_ns(cells.part[link.to_cell], cells.start_ns[link.to_cell]);
      if (early <= beyond_ns) continue;
      if (own.count++ == 0) own.first = &link;
      own.worst_ns = std::max(own.worst_ns, early);
    }
  });
  EarlyLinks all;
  for (const EarlyLinks& own : stretches) {
    if (!all.first) all.first = own.first;
    all.count += own.count;
    all.worst_ns = std::max(all.worst_ns, own.worst_ns);
  }
  return all;
}

}  // namespace stageline
