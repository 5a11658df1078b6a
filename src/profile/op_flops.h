// Computes the floating-point operations of an operator from the shapes of its inputs, with torch's own list and
// formulas (torch/csrc/profiler/util.cpp, computeFlops). A trace does not contain these numbers.
//
//   aten::mm, aten::addmm       2·m·k·n           aten::bmm, aten::baddbmm   2·b·m·k·n
//   aten::conv2d                2·N·Ho·Wo·kh·kw·Cin·Cout / groups, with Cin of the input, as torch has it
//   aten::mul, aten::add        elements of the first input
#pragma once

#include "base/vocabulary.h"

namespace stageline {

bool has_flops_formula(std::string_view name);
// Takes texts as in InputFact. Returns 0 when the operator is not on the list or the shapes do not suffice; at most
// INT64_MAX. O(length).
int64_t op_flops(std::string_view name, std::string_view dims, std::string_view types, std::string_view concrete);

// The minimum work of an operator (FLOPs and bytes), from the shapes and types of its inputs.
struct OpWork {
  int64_t flops = 0, max_flops = 0;  // they differ for attention over packed sequences (attention_work.cc)
  // Counts each needed input as read once and each output as written once. It excludes memory that an operator keeps
  // for itself, such as workspaces, and attention's mask, which torch repeats in place to the shape of the scores.
  // −1: the size of an element is not known.
  int64_t min_bytes = 0;
  std::string_view type;   // of the elements, as in the trace: "c10::BFloat16"; a view into `types`
  bool is_matrix = false;  // matrix products, convolutions, attention: what tensor cores do
};

// Computes the work of torch's list above, and of operators that torch does not count:
//
//   aten::convolution[_backward], the vendors' 2·N·(places of the output, of the input if transposed)·elements of the
//                                             weight; backwards once for each of the two gradients that are asked for
//   aten::_scaled_mm, aten::_int_mm           2·m·k·n; an element of FP4 holds two values of k
//   aten::_grouped_mm, aten::_scaled_grouped_mm   2·m·k·n over the rows of all groups; rows beyond the last are padding
//   attention                                 attention_flops()
//
// Returns none when the operator is unknown, or when shapes or the values it needs are missing or do not fit each
// other. O(length).
bool has_work_formula(std::string_view name);
std::optional<OpWork> op_work(std::string_view name, std::string_view dims, std::string_view types,
                              std::string_view concrete);

// Returns the dimensions of each input, and none for a list of tensors, as torch.profiler's input_shapes. A size is −1
// where a damaged file has something other than a whole number of 64 bits.
std::vector<std::vector<int64_t>> input_shapes(std::string_view dims);
// Returns the same as Python prints it, "[[5, 128], [], []]"; "[]" for an empty text.
std::string shapes_text(std::string_view dims);

// FLOPs of attention, from the shapes and arguments of an operator: torch's own, and those of the package flash_attn.
//
//   forwards   2·heads·pairs·(D + Dv)          pairs of query and key that the mask leaves, over all sequences
//   backwards  2·heads·pairs·(3·D + 2·Dv)      the scores are computed anew
//
// Of packed sequences a trace has their number, their sum and the longest, but not each length, so only bounds follow.
struct AttentionWork {
  uint64_t flops = 0, max_flops = 0;  // they differ where only bounds follow
  uint64_t written = 0;               // elements
  size_t query = 0;                   // the input that is the query
  std::optional<size_t> mask;         // the input whose bytes do not follow from its shape
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
