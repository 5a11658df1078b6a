// Places of ranks that a format does not state: machines, ranks from several files, numbers of steps.
#pragma once

#include "readers/common/ops.h"

namespace stageline {

// Numbers machines in natural order of their names; does nothing unless every rank's name is known.
void number_machines(Trace& trace);

// Appends the part of `one`, a trace of one rank, with its cells, names, categories and diagnostics. Ranks must be
// joined in ascending order: then names get the same ids as when all ranks are read together, and cells only need
// sorting.
void join_rank(Trace& trace, Trace one);
// Does the same for several, in their order. Their cells are copied on all threads.
void join_ranks(Trace& trace, std::vector<Trace> ranks);

// Numbers the steps of a source without step numbers, by what repeats. In a step every rank does each forward and each
// backward once, so the third F of micro-batch 2 on a rank belongs to the third step. This holds only if all work of
// the third round comes after all work of the second.
// Expects that ranks are resolved and that no op has a step. If every (rank, kind, chunk, micro-batch) of the compute
// occurs equally often, and on every rank one round ends before the next begins, the rounds become steps 0, 1, …
// Compute and messages belong to their round, everything else to the round in which it starts. Otherwise everything is
// step 0; if work repeats, a warning ("<format>.steps_missing") reports missing steps. O(ops log ops).
void number_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Diagnostics& diagnostics);

// Expects resolved ranks. Where no op has a step, steps are numbered by what repeats, as above; then missing
// micro-batches are numbered, and steps whose clock restarts are laid end to end. `unit` is what messages call an
// operation of this source: "event", "row". Trace::lossy_steps may be in any order before.
void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace);

// Megatron's interleaved order: which chunk and micro-batch the k-th forward (backward) of a rank is.
struct InterleavedPosition {
  int32_t chunk, micro_batch;
};

// Micro-batches go in groups of `group_size` (by default the number of stages), chunk after chunk. Backwards begin with
// the last chunk. The last group has the rest. `count` is the number of forwards of the iteration over all `chunks`.
inline InterleavedPosition interleaved_position(int64_t k, int64_t count, int32_t group_size, int32_t chunks,
                                                bool forward) {
  const int64_t micro_batches = count / chunks;
  const int64_t group = k / (int64_t{group_size} * chunks);
  const int64_t in_group = k - group * group_size * chunks;
  const int64_t width = std::max<int64_t>(1, std::min<int64_t>(group_size, micro_batches - group * group_size));
  const auto chunk = static_cast<int32_t>(std::min<int64_t>(in_group / width, chunks - 1));
  const int64_t micro_batch = group * group_size + in_group % width;
  return {forward ? chunk : chunks - 1 - chunk,
          static_cast<int32_t>(std::min<int64_t>(micro_batch, kMaxMicroBatchNumber))};
}

}  // namespace stageline
