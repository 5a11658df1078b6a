// Returns the meaning of a job type of Paddle's pipeline passes: "backward_w1_reduce" is a weight gradient of chunk 1.
#pragma once

#include <string_view>

#include "model/kind.h"

namespace stageline {

struct JobType {
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;            // virtual stage on the rank, counted from 0
  bool has_micro_batch = true;  // false where the id in the line is only the default, 0
};

// Types have the forms forward[N], forward(chunkN), backward[N], backward_b[N], backward_w[N][_reduce], optimizer,
// recv_forward, send_forward, recv_backward, send_backward, lr, default. An unknown type is kOther and keeps its
// micro-batch.
JobType job_type(std::string_view text);

}  // namespace stageline
