// Rows of trace_view.json as slices and facts of one rank.
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
  uint32_t row = 0, name = 0;  // of the builder
};
using RowsByStart = std::unordered_map<int64_t, std::vector<KernelAt>>;

// Adds everything but operations, which go to `operations`: the sums know their groups. `kernels` (optional) learns
// where kernels stand, by start. What launched an operation and which transfers are its own is told by
// link_operations, once add_operations gave every one a row.
struct OperationLinks {
  struct Transfer {
    size_t operation = 0;  // of `operations`
    uint32_t row = 0;      // of the builder
    size_t fact = 0;       // of the builder's transfers
  };
  std::vector<std::pair<size_t, uint32_t>> launches, owners;  // operation → row of the builder
  std::vector<Transfer> transfers;
};
OperationLinks add_trace_slices(const TextTrace& trace, const ProcessGroups& groups, PartBuilder& builder,
                                std::vector<OperationRow>& operations, RowsByStart* kernels);
void link_operations(const OperationLinks& links, const std::vector<OperationRow>& operations, PartBuilder& builder);

}  // namespace stageline::ascend
