// The kinds of rows that profilers of GPUs have, in Kineto's words: a PartBuilder is made with kKinds, and its rows are
// added with these constants.
#pragma once

#include "readers/common/part_builder.h"

namespace stageline::gpu_rows {

#define ROW_KIND(kind, ...) kind,
enum Kind : uint8_t {
#include "readers/common/row_kinds.def"
};

#define ROW_KIND(kind, text, category) {text, Category::category, KernelClass::kNone},
inline constexpr RowCategory kKinds[] = {
#include "readers/common/row_kinds.def"
};

}  // namespace stageline::gpu_rows
