// The facts about a run that every machine-readable output has at its head.
#pragma once

#include "model/trace.h"

namespace stageline {

struct MetaEntry {
  std::string key;
  bool is_text;
  std::string text;
  int64_t integer = 0;
};

// Returns the entries format, description, machines, ranks, stages, replicas, steps, chunks, micro_batches, cells,
// slices, start_ns, end_ns, clock ("shared", "unaligned", "per_rank"), steps_laid_end_to_end (0 or 1) and
// stageline_version. There is no date, so that the same input gives the same bytes.
std::vector<MetaEntry> run_meta(const Trace& trace);

}  // namespace stageline
