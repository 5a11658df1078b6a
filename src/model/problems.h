// The problems that model reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(reader, conflicting_ranks, kWarning);
PROBLEM(reader, dp_inferred, kInfo);
PROBLEM(reader, duplicate_cells, kWarning);
PROBLEM(reader, message_micro_batches, kInfo);
PROBLEM(reader, micro_batches_numbered, kInfo);
PROBLEM(reader, micro_batches_unknown, kWarning);
PROBLEM(reader, no_steps, kInfo);
PROBLEM(reader, ranks_inferred, kInfo);
PROBLEM(reader, steps_laid_end_to_end, kInfo);
PROBLEM(reader, steps_missing, kWarning);
PROBLEM(reader, steps_numbered, kWarning);
PROBLEM(reader, without_rank, kLoss);

}  // namespace stageline::problem
