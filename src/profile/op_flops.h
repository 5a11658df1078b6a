// Computes the floating-point operations of an operator from the shapes of its inputs, with torch's own list and
// formulas (torch/csrc/profiler/util.cpp, computeFlops). A trace does not contain these numbers.
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
// Takes texts as in InputFact. Returns 0 when the operator is not on the list or the shapes do not tell; at most
// INT64_MAX. O(length).
int64_t op_flops(std::string_view name, std::string_view dims, std::string_view types, std::string_view concrete);

// Returns the dimensions of each input, and none for a list of tensors, as torch.profiler's input_shapes. A size is −1
// where a damaged file has something that is no whole number of 64 bits.
std::vector<std::vector<int64_t>> input_shapes(std::string_view dims);
// Returns the same as Python prints it, "[[5, 128], [], []]"; "[]" for an empty text.
std::string shapes_text(std::string_view dims);

}  // namespace stageline
