// Gives a Frame as an Arrow stream without Python: any thread may release arrays, also after the interpreter's end.
#pragma once

#include <memory>

#include "arrow_abi.h"
#include "frame.h"

namespace stageline::python {

// Both fill `out`, whose release() the consumer calls. A stream hands out the frame's batches in order, each array with
// a share in what it looks into.
void fill_schema(const Frame& frame, ArrowSchema* out);
void fill_stream(std::shared_ptr<const Frame> frame, ArrowArrayStream* out);

}  // namespace stageline::python
