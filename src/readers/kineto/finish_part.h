// From rows in file order to a Part: lanes in order, and every fact that many questions need.
#pragma once

#include "model/trace.h"
#include "readers/kineto/file_rows.h"
#include "readers/relate_slices.h"

namespace stageline::kineto {

// Builds the part with the file's own name and category ids; several files can do so at once. `base_ns` is
// added to every time. Frees `rows` as it goes.
FileNames build_part(FileRows rows, int64_t base_ns, Part& part);

}  // namespace stageline::kineto
