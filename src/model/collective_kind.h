// The operations of communication libraries: their many spellings, the size of a whole message, and nccl-tests' factors
// from the algorithm's rate to the bus rate. Definitions: docs/analyses/communication.md.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,   // equal parts
  kAllToAllV,  // parts of any size
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSendRecv,
  kBarrier,
  kUnknown
};

// Reads any spelling of NCCL, c10d, HCCL, RCCL and XLA: "_allgather_base", "nccl:all_reduce", "ReduceScatter", "recv".
CollectiveKind collective_kind(std::string_view name);
std::string_view collective_kind_name(CollectiveKind kind);  // "all_gather"

// Returns whether no rank can leave before all have come.
constexpr bool synchronises(CollectiveKind kind) {
  return kind <= CollectiveKind::kAllToAll || kind == CollectiveKind::kBarrier;
}
constexpr bool has_root(CollectiveKind kind) {
  return kind >= CollectiveKind::kBroadcast && kind <= CollectiveKind::kScatter;
}

// Bytes over the bus for each byte of the message, as nccl-tests counts them for n ranks; 0 for a rank alone.
double bus_factor(CollectiveKind kind, int64_t n);

// The size of the whole message: the bytes of one rank when all of it has arrived. −1 where it is unknown or does not
// fit. From the count that a call of NCCL, RCCL or HCCL was given, in bytes; it is one rank's part in some operations.
int64_t message_bytes(CollectiveKind kind, int64_t n, int64_t count_bytes);
// It follows from c10d's elements in and out. A rank that is not the root has no other side.
int64_t message_bytes(CollectiveKind kind, int64_t n, int64_t in_elements, int64_t out_elements, int64_t element_bytes);

}  // namespace stageline
