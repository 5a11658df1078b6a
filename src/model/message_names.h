// Distinguishes messages (sends, receives and batches of them) from collectives by name: "send", "recv", "receive",
// "batchSendRecv", "hcom_receive__377_0_1", "ncclDevKernel_SendRecv". A message concerns two ranks, whereas all members
// of a group wait for a collective.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

inline bool is_message_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const std::string_view part : {"send", "recv", "receive"})
    if (lower.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace stageline
