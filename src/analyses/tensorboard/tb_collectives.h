// Every collective and message of every rank, and how much of it was waiting: by joining the same one across ranks.
//
//   rank 0  ├── synchronising ──┤─ data transfer ─┤
//   rank 1            ├── sync. ─┤─ data transfer ─┤
//   rank 2                       ├─ data transfer ─┤    the shortest is all transfer
//
// No clock is compared between ranks. Definitions: docs/analyses/tb-distributed.md.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct TbCollective {  // one kernel, or one call of a library that works on the host
  // Equal on all ranks of one collective: what it is by its own numbers, else by its place among its like in the step.
  StringId comms_id = 0, group = 0, group_ranks = 0, name = 0;
  int64_t number = -1;         // "Seq"
  int64_t from = -1, to = -1;  // ranks, of a message
  int32_t step = INT32_MIN;    // without numbers
  int64_t size = -1;           // without numbers: its bytes, where these are the same on all ranks of one
  uint32_t position = 0;       // among those that agree in all above, by start

  bool message = false;  // a send, a receive or a batch of them: of two ranks, no collective

  StringId label = 0;  // what tables call it: the collective, else the annotation, else the kernel
  int64_t start_ns = 0, dur_ns = 0;
  int64_t bytes = -1;        // larger side; −1 unknown
  int64_t group_size = 0;    // 0 unknown
  bool one_end = false;      // a message that does not say which one it is: no call of another rank is its other end
  int64_t transfer_ns = -1;  // the shortest of its ranks; −1: not joined

  auto kind() const { return std::tie(comms_id, group, group_ranks, name, number, from, to, step, size); }
  bool by_order() const { return comms_id == 0 && number < 0; }
};

// By kind, then by start.
std::vector<TbCollective> tb_collectives(const TbRun& run, const TbRank& rank);

struct TbJoin {
  int64_t joined = 0;   // calls with a counterpart
  int64_t alone = 0;    // calls without
  int64_t unequal = 0;  // calls matched by order whose number differs between ranks: not joined
};
// Fills transfer_ns. O(n log ranks) in all collectives.
TbJoin join_collectives(std::vector<std::vector<TbCollective>>& ranks);

// Bytes of the tensors that an operator was given: "[[2, 3], []]" and "[\"float\", \"Scalar\"]" → 24. Types as PyTorch
// prints C++ ones; what is not known counts 0. Lists of tensors count 0 too.
int64_t input_bytes(std::string_view dims, std::string_view types);

}  // namespace stageline
