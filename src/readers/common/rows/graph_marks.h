// Annotations of the device for nodes of CUDA graphs. A replay has no ranges of the host, so names of nodes come from
// marks (torch.cuda.graph_annotations), or from the capture if that was recorded too.
#pragma once

#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

struct GraphNames {
  int64_t of_capture = 0;  // rows that took a name of the capture
  int64_t missing = 0;     // nodes, if none of the file has a name
};
// Adds an annotation for each replay, stream and mark, from the first start to the last end of its nodes. A node
// without a mark takes the name of the innermost annotation around the k-th captured call, if it is the k-th of its
// graph, else of that call's operator; annotations around the whole capture name nothing. One capture must fit this
// graph alone, and no other graph: its calls end before the first replay, are kernels, copies and memsets as the nodes
// are, and operators that communicate launch exactly the collectives.
GraphNames add_graph_marks(FileRows& rows);

}  // namespace stageline::rows
