// Names of C++ kernels for people: "elementwise_kernel<4> · AddFunctor" instead of hundreds of characters. The report
// page shortens by the same rules (short_kernel_name of model/slice_facts.h is HTA's).
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// Without "void", at::native::, template arguments and parameters; of generic kernels with the functor that says what
// they do. Names that are no C++ signature come back as they are. Linear in the length.
std::string kernel_label(std::string_view name);

}  // namespace stageline
