// Readable names of C++ kernels: "elementwise_kernel<4> · AddFunctor" instead of hundreds of characters. The report
// page shortens names by the same rules. (short_kernel_name of model/slice_facts.h does it as HTA does.)
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// Returns the name without "void", at::native::, template arguments and parameters. Names of generic kernels keep the
// functor that identifies them. Names that are not C++ signatures are returned as they are. Takes O(length).
std::string kernel_label(std::string_view name);

}  // namespace stageline
