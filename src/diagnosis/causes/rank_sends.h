// Compute cells that began when a send of their own rank ended, because the rank waits for its sends. Part of causes.
//
//   cell   ▐▐▐▐                ▐▐▐▐      both inputs were there at the first bar's end; the cell began with the send's
//   end send       └──────────────┘          a send that does not block would end anywhere
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "diagnosis/causes/suspect.h"

namespace stageline {

// Minimum delay of a late worker's median cell, and of a cell that waited for a send, as a share of the median cell.
inline constexpr double kLateWorker = 0.05;

struct RankSends {
  struct Blocked {
    double ns = 0;         // the part of the operation's delay during which a send of its rank was under way
    bool forward = false;  // that was sent
  };
  std::map<uint32_t, Blocked> blocked;  // by operation
  int64_t count = 0;
  double ns = 0;

  double blocked_by(uint32_t op) const {
    const auto at = blocked.find(op);
    return at == blocked.end() ? 0 : at->second.ns;
  }
};

// Null where ranks do not wait for their sends, or where sends were not recorded. `cell_ns` is the time of the median
// compute cell. O(cells log sends).
std::shared_ptr<const RankSends> find_rank_sends(const CauseScene& scene, double cell_ns);

}  // namespace stageline
