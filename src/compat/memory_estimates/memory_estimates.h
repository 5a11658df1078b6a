// The bytes of a layout by the formulas of other tools, for comparison with the planner's: Megatron-LM's
// theoretical_memory_usage, Megatron-Bridge's, Primus' projection, DeepSpeed's estimator, and the table of arXiv
// 2205.05198. Each is that tool's definition with its known omissions (docs/reference/plan.md), none is corrected.
#pragma once

#include "plan/bytes.h"

namespace stageline::memory_estimates {

struct Input {
  int32_t chunks = 1, micro_batches = 1;
  double world = 0;
  bool distributed = true;  // optimizer states are sharded
};

struct Estimate {
  std::string tool;
  std::vector<std::pair<std::string, double>> bytes;  // by the name of what the tool prints
};
std::vector<Estimate> estimates(const plan::Model& model, const plan::Layout& layout, const Input& input);

// Bytes of the first stage's activations by Table 2 of arXiv 2205.05198. `mode`: none, sp, selective, sp+selective,
// full.
double paper_activations(const plan::Model& model, const plan::Layout& layout, int32_t chunks, std::string_view mode);

}  // namespace stageline::memory_estimates
