// FLOPs of attention, from the shapes and arguments of an operator: torch's own, and those of the package flash_attn.
//
//   forwards   2·heads·pairs·(D + Dv)          pairs of query and key that the mask leaves, over all sequences
//   backwards  2·heads·pairs·(3·D + 2·Dv)      the scores are computed anew
//
// Of packed sequences a trace has their number, their sum and the longest, but not each length, so only bounds follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stageline {

struct AttentionWork {
  uint64_t flops = 0, max_flops = 0;  // they differ where only bounds follow
  uint64_t written = 0;               // elements
  size_t query = 0;                   // the input that is the query
  std::optional<size_t> mask = {};    // the input whose bytes do not follow from its shape
};

bool is_attention(std::string_view name);
// Returns none where a size or an argument is missing or does not fit the others. `shapes` and `values` are those of
// the inputs. O(1).
std::optional<AttentionWork> attention_work(std::string_view name, const std::vector<std::vector<int64_t>>& shapes,
                                            const std::vector<std::string_view>& values);

// Returns a · b up to a ceiling, because shapes of damaged files may be anything; 0 where b is negative.
constexpr uint64_t product_or_limit(uint64_t a, int64_t b) {
  uint64_t product = 0;
  if (b < 0) return 0;
  return __builtin_mul_overflow(a, static_cast<uint64_t>(b), &product) ? UINT64_MAX : product;
}

}  // namespace stageline
