// What a job type of Paddle's pipeline passes means: "backward_w1_reduce" → weight gradient, chunk 1.
#pragma once

#include <string_view>

#include "model/kind.h"

namespace stageline {

struct JobType {
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;            // virtual stage on the rank, 0-based
  bool has_micro_batch = true;  // false where the id in the line is only the default 0
};

// Forms: forward[N], forward(chunkN), backward[N], backward_b[N], backward_w[N][_reduce],
// optimizer, recv_forward, send_forward, recv_backward, send_backward, lr, default.
// An unknown type is kOther with its micro-batch.
JobType job_type(std::string_view text);

}  // namespace stageline
