// The settings of a recording, from slr_config and the environment, resolved once at slr_init. docs/howto/record.md
// describes each.
#pragma once

#include <cstdint>

#include "stageline_record.h"

namespace slr {

struct Settings {
  char dir[1024];
  char job[128];
  char host[65];
  int32_t rank, world, stage, dp_rank, pp, tp, dp, vp;
  uint32_t memory_mb, flush_ms, rotate_mb, rotate_s, keep_files, ring_kb;
  double max_overhead;            // share of the time that recording may take
  int64_t first_step, stop_step;  // STAGELINE_STEPS; first_step < 0: all
  bool records_in_child;          // STAGELINE_FORK=1
  bool graphs;                    // STAGELINE_GRAPHS=1
};

// The caller's structure may be of an older version; fields beyond its size count as not given.
Settings resolve_settings(const slr_config* config);

}  // namespace slr
