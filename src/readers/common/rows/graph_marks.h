// Annotations of the device for nodes of CUDA graphs. A replay has no ranges of the host, so names of nodes come from
// marks (torch.cuda.graph_annotations), or from the capture if that was recorded too.
#pragma once

#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

// Adds an annotation for each replay, stream and mark, from the first start to the last end of its nodes.
//
// The k-th node of a graph, by number, is the k-th call of its capture. A node without a mark takes the name of the
// innermost annotation around that call, else of its operator; annotations around the whole capture name nothing. This
// needs one capture that fits this graph alone, and no other graph that fits the capture: the calls end before the
// first replay, are as many kernels, copies and memsets as the nodes, in their order, and operators that communicate
// launch exactly the collectives. Returns how many rows took a name from a capture. O(rows log rows).
int64_t add_graph_marks(FileRows& rows);

}  // namespace stageline::rows
