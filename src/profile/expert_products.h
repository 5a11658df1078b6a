// Grouped matrix products of a rank: each multiplies the tokens that were sent to the rank's experts by their weights.
//
//   inputs  [1024, 2048] [512, 2048]  [2, 2048, 8192]  [2]      1 536 tokens for two experts
//           tokens of each expert     weights of all   sizes
//
// Ascend's kernels of type GroupedMatmul have their shapes. Elsewhere the operator has them (record_shapes) whose name
// holds "grouped_mm", "GroupedGemm" or "grouped_gemm". A product of two matrices for the gradient of the weights has no
// input of three dimensions, and is none of these.
#pragma once

#include "profile/torch_view.h"

namespace stageline {

struct ExpertProduct {
  int32_t step = -1;
  bool backward = false;
  int64_t tokens = 0, start_ns = 0, kernel_ns = 0;
  std::vector<uint32_t> kernels;  // their slices
};

// Returns the tokens of a product by its input shapes, "1024,2048;512,2048;2,2048,8192;2" or "[[1536, 2048], …]": the
// first dimensions of the matrices in front of the first input of three dimensions, added up. nullopt when no input has
// three dimensions, or when the text is not a list of shapes.
std::optional<int64_t> tokens_of(std::string_view shapes);
// Returns for each name id whether operators and kernel types of that name are grouped products.
std::vector<bool> grouped_names(const StringPool& names);
// `grouped` is that of grouped_names. Returns the products in the order of their starts on the device. O(n log n) in
// the rows.
std::vector<ExpertProduct> expert_products(const TorchRun& run, const TorchRank& rank,
                                           const std::vector<bool>& grouped);

}  // namespace stageline
