// From rows in file order to a Part: lanes in order, and every fact that many questions need.
#pragma once

#include "model/trace.h"
#include "readers/kineto/file_rows.h"

namespace stageline::kineto {

// Moves `rows` into `part` (empty before). Names and categories become those of `trace`.
void finish_part(FileRows rows, Trace& trace, Part& part);

}  // namespace stageline::kineto
