// Makes slices and facts of one rank from the rows of trace_view.json.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "readers/ascend/part_builder.h"
#include "readers/ascend/text_groups.h"
#include "readers/ascend/text_operations.h"
#include "readers/ascend/text_trace.h"

namespace stageline::ascend {

struct KernelAt {
  uint32_t row = 0, name = 0;  // ids of the builder
};
using RowsByStart = std::unordered_map<int64_t, std::vector<KernelAt>>;

// Adds everything but operations. These go to `operations`, because the sums know their groups. `kernels` (optional)
// receives the kernels' rows in order of start. Which call launched an operation, and which transfers belong to it, is
// added by link_operations() after add_operations() has given every operation a row.
struct OperationLinks {
  struct Transfer {
    size_t operation = 0;  // index into `operations`
    uint32_t row = 0;      // row of the builder
    size_t fact = 0;       // index into the builder's transfers
  };
  std::vector<std::pair<size_t, uint32_t>> launches, owners;  // operation → row of the builder
  std::vector<Transfer> transfers;
};
OperationLinks add_trace_slices(const TextTrace& trace, const ProcessGroups& groups, PartBuilder& builder,
                                std::vector<OperationRow>& operations, RowsByStart* kernels);
void link_operations(const OperationLinks& links, const std::vector<OperationRow>& operations, PartBuilder& builder);

}  // namespace stageline::ascend
