// The facts about a run that stand at the head of every machine-readable output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct MetaEntry {
  std::string key;
  bool is_text;
  std::string text;
  int64_t integer = 0;
};

// format, description, machines, ranks, stages, replicas, steps, chunks, micro_batches, cells,
// slices, start_ns, end_ns, clock ("shared", "unaligned", "per_rank"), steps_laid_end_to_end (0/1),
// stageline_version. No date: same input, same bytes.
std::vector<MetaEntry> run_meta(const Trace& trace);

}  // namespace stageline
