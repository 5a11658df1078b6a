// Operations of communication, from whichever text export has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "readers/ascend/part_builder.h"
#include "readers/ascend/text_communication.h"
#include "readers/ascend/text_groups.h"

namespace stageline::ascend {

struct OperationRow {  // of kernel_details.csv or trace_view.json
  std::string name;    // "hcom_allReduce__377_4_1"
  int64_t step = -1;
  int64_t start_ns = 0, dur_ns = 0;
  int64_t device = 0;
  uint32_t dtype = 0;     // of the builder's texts
  int64_t count = -1;     // elements
  uint32_t row = kNoRow;  // filled: where it stands in the builder
};

// One lane a group, one slice an operation, with a CollectiveFact each. `rows` have the times that were measured on the
// device; operations that only `sums` knows are added where it says when they began. A row's group is what `sums` says
// of its name, else whose three digits it bears. Both ends of a message are known where the matrix names one link for
// it, or the group has two members.
void add_operations(std::vector<OperationRow>& rows, const CommunicationSums& sums, const ProcessGroups& groups,
                    PartBuilder& builder);

}  // namespace stageline::ascend
