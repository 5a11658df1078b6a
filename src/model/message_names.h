// Distinguishes messages (sends, receives and batches of them) from collectives by name: "send", "recv", "receive",
// "batchSendRecv", "hcom_receive__377_0_1", "ncclDevKernel_SendRecv". A message concerns two ranks, whereas all members
// of a group wait for a collective.
#pragma once

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

// Explains how Ascend names communication operations: hcom_allReduce__377_4_1 has the type hcom_allReduce_, belongs to
// the group with the number 377, and is operation 4 of that group (specs: docs/formats/ascend.md).

// Returns the operation's type as the profiler's own column has it: "hcom_allReduce__377_4_1" → "hcom_allReduce_".
// Other names come back unchanged.
inline std::string hccl_type(std::string_view name) {
  const size_t at = name.find("__");
  return std::string(at == std::string_view::npos ? name : name.substr(0, at + 1));
}

// Returns the 64-bit number of a group: two polynomial hashes of the code points of its name, with prime 29 in the high
// half and 131 in the low half.
inline uint64_t hccl_group_hash(std::string_view name) {
  uint32_t high = 0, low = 0;
  for (size_t i = 0; i < name.size();) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    uint32_t point = more == 0 ? byte : byte & (0x3fu >> more);
    ++i;
    for (int k = 0; k < more && i < name.size(); ++k, ++i)
      point = point << 6 | (static_cast<unsigned char>(name[i]) & 0x3f);
    high = high * 29 + point;
    low = low * 131 + point;
  }
  return uint64_t{high} << 32 | low;
}
// The group's number in decimal, as the profiler's sums write it after "@".
inline std::string hccl_group_digits(std::string_view name) { return std::to_string(hccl_group_hash(name)); }
// The last three digits of the group's number, which names of operations contain.
inline std::string hccl_group_id(std::string_view name) {
  const std::string digits = hccl_group_digits(name);
  return digits.size() > 3 ? digits.substr(digits.size() - 3) : digits;
}

}  // namespace stageline
