// Splits as frameworks write them: Megatron's layout string and torchtitan's default, read and written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline::plan {

// The parts of one virtual stage.
struct LayoutStage {
  bool embedding = false, loss = false;
  int32_t layers = 0, mtp = 0;
  bool operator==(const LayoutStage&) const = default;
};

// Reads `--pipeline-model-parallel-layout`: E, t, m, L; | begins the next virtual stage; x*N and (…)*N repeat; commas
// are ignored, parentheses do not nest. Stages are in the order of the model: all ranks of chunk 0, then chunk 1.
// Errors: kUsage with what Megatron refuses.
Result<std::vector<LayoutStage>> parse_megatron_layout(std::string_view text, int32_t pp, int32_t layers, int32_t mtp);

// The shortest form: x*N from three on, and one (…|)*N for repeated stages.
std::string write_megatron_layout(const std::vector<int32_t>& layers, int32_t mtp = 0);

// torchtitan's split of `layers` over `stages` when the first and the last have that many fewer.
std::vector<int32_t> torchtitan_default(int32_t stages, int32_t layers, int32_t first_less, int32_t last_less);

}  // namespace stageline::plan
