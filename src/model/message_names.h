// Distinguishes messages (sends, receives and batches of them) from collectives by name: "send", "recv", "receive",
// "batchSendRecv", "hcom_receive__377_0_1", "ncclDevKernel_SendRecv". A message concerns two ranks, whereas all members
// of a group wait for a collective.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"
#include "model/trace.h"

namespace stageline {

inline bool is_message_name(std::string_view name) {
  const std::string lower = to_lower(name);
  for (const std::string_view part : {"send", "recv", "receive"})
    if (lower.find(part) != std::string::npos) return true;
  return false;
}

// Returns whether a row of the host is a call of a communication library: "c10d::send", "gloo:recv".
inline bool is_communication_call(std::string_view name) {
  for (const std::string_view library : {"c10d::", "gloo:", "nccl:", "mpi:", "ucc:", "record_param_comms",
                                         "_c10d_functional::", "hccl:", "xccl:", "xla:"})
    if (name.starts_with(library)) return true;
  return false;
}

// Returns whether an annotation of the host is a message itself rather than a call: torch's title of a message of a
// pipeline (torch.distributed.record_comm) lasts, as "gloo:send" does, until the message is complete.
inline bool is_message_title(std::string_view name) {
  return name.starts_with("PP::fwd_") || name.starts_with("PP::bwd_");
}

// Returns whether both ends give a message the same number. Where each rank counts its own messages, that is so only in
// a group of two.
inline bool numbered_alike(const Trace& trace, const CollectiveFact& message) {
  return !trace.numbers_messages_per_rank || message.group_size == 2;
}

}  // namespace stageline
