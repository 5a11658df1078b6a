// Floating-point operations of an operator by the shapes of its inputs: torch's own list and formulas
// (torch/csrc/profiler/util.cpp, computeFlops), which a trace does not carry.
//
//   aten::mm, aten::addmm       2·m·k·n           aten::bmm, aten::baddbmm   2·b·m·k·n
//   aten::conv2d                2·N·Ho·Wo·kh·kw·Cin·Cout / groups, with Cin of the input, as torch has it
//   aten::mul, aten::add        elements of the first input
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

bool has_flops_formula(std::string_view name);
// Texts as InputFact has them. 0: not on the list, or the shapes do not say. At most INT64_MAX. O(length).
int64_t op_flops(std::string_view name, std::string_view dims, std::string_view types, std::string_view concrete);

// Dimensions of each input; of a list of tensors none, as torch.profiler's input_shapes has them. -1 where a damaged
// file has what is no whole number of 64 bits.
std::vector<std::vector<int64_t>> input_shapes(std::string_view dims);
// The same as Python prints it: "[[5, 128], [], []]"; "[]" of an empty text.
std::string shapes_text(std::string_view dims);

}  // namespace stageline
