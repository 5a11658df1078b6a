// Reads the bytes that moved between ranks, by kind of link. The source is the tasks of communication operations
// (Ascend, Level1 and up), else the profiler's own sums of them, else messages with both ends known (any framework).
#pragma once

#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {

enum class TransferSource : uint8_t { kNone, kTasks, kSummaries, kMessages };
std::string_view transfer_source_text(TransferSource source);  // for people: "tasks of operations", …

// One transfer. Its texts live as long as the trace.
struct Transfer {
  int32_t src = -1, dst = -1;
  int64_t bytes = 0, time_ns = 0;
  int64_t count = 1;                 // a summary stands for several
  std::string_view transport, link;  // "SDMA", "HCCS"; empty when unknown
  std::string_view group, kind;      // the communicator; "allReduce"
  int32_t step = -1;
  int64_t number = -1;   // number of its operation in the group; −1: unknown
  bool message = false;  // part of a send, receive or batch of them, which both ends may record
  uint32_t op = kNoSliceIndex;

  double gbps() const { return share_or_zero(bytes, time_ns); }  // GB/s
};

// Returns true for a task that waits for another rank or signals to it, and does not move data.
bool is_wait_task(std::string_view task);

// The transfers of one rank, from the best source that it has. O(slices + transfers).
struct RankTransfers {
  TransferSource source = TransferSource::kNone;
  std::vector<Transfer> list;
};

// Returns the transfers of all ranks, computed in parallel. A message that both ends recorded is returned once, as its
// sender recorded it. O(n log n).
std::vector<RankTransfers> all_transfers(const TorchRun& run);

}  // namespace stageline
