// Compute cells that began when a send of their own rank ended, because the rank waits for its sends. Part of causes.
//
//   cell   ▐▐▐▐                ▐▐▐▐      both inputs were there at the first bar's end; the cell began with the send's
//   end send       └──────────────┘          a send that does not block would end anywhere
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "diagnosis/causes/suspect.h"

namespace stageline {

struct OwnSends {
  // For each operation, the part of its delay during which a send of its rank was under way.
  std::map<uint32_t, double> blocked_ns;
  int64_t count = 0, ranks = 0;
  double ns = 0;

  double blocked_by(uint32_t op) const {
    const auto at = blocked_ns.find(op);
    return at == blocked_ns.end() ? 0 : at->second;
  }
};

// Null where ranks do not wait for their sends, or where nobody recorded sends. `cell_ns` is the time of the median
// compute cell. O(cells log sends).
std::shared_ptr<const OwnSends> find_own_sends(const CauseScene& scene, double cell_ns);

}  // namespace stageline
