// Splits as frameworks write them: Megatron's layout string and torchtitan's default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stageline::plan {

// `--pipeline-model-parallel-layout`, in the shortest form: x*N from three on, and one (…|)*N for repeated stages.
std::string write_megatron_layout(const std::vector<int32_t>& layers, int32_t mtp = 0);

// torchtitan's split of `layers` over `stages` when the first and the last have that many fewer.
std::vector<int32_t> torchtitan_default(int32_t stages, int32_t layers, int32_t first_less, int32_t last_less);

}  // namespace stageline::plan
