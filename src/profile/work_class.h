// Classes of computation: attention, matmul, convolution, layout (casts, copies, transpositions), other.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Returns the class of a kernel: by its type (of Ascend) or its name, else by the operator that launched it; "other".
// The words are in work_classes.def.
std::string_view work_class(std::string_view kernel, std::string_view op);

}  // namespace stageline
