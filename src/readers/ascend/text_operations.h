// Makes slices of communication operations, from any text export that contains them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "readers/ascend/part_builder.h"
#include "readers/ascend/text_communication.h"
#include "readers/ascend/text_groups.h"

namespace stageline::ascend {

struct OperationRow {  // a row of kernel_details.csv or trace_view.json
  std::string name;    // "hcom_allReduce__377_4_1"
  int64_t step = -1;
  int64_t start_ns = 0, dur_ns = 0;
  int64_t device = 0;
  uint32_t dtype = 0;     // id of the builder's texts
  int64_t count = -1;     // number of elements
  uint32_t row = kNoRow;  // set by add_operations(): the operation's row in the builder
};

// Makes one lane per group and one slice per operation, with a CollectiveFact each. `rows` have times that were
// measured on the device; operations that only `sums` has are added where it says when they began. The group of a row
// is the one that `sums` gives for its name, else the one whose three digits the name contains. Both ends of a message
// are known where the matrix names one link for it, or where the group has two members.
void add_operations(std::vector<OperationRow>& rows, const CommunicationSums& sums, const ProcessGroups& groups,
                    PartBuilder& builder);

}  // namespace stageline::ascend
