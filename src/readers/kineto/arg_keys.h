// The arguments that Stageline keeps of an event, by Kineto's names, and how they are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "readers/kineto/event.h"

namespace stageline::kineto {

enum class ArgKey : uint8_t {
  kNone,
  kStream,
  kCorrelation,
  kExternalId,
  kBytes,
  kBandwidth,
  kWaitOnStream,
  kWaitOnRecord,
  kPythonId,
  kPythonParent,
  kSequenceNumber,
  kForwardThread,
  kCollective,
  kDtype,
  kInElements,
  kOutElements,
  kGroupSize,
  kGroup,
  kGroupDescription,
  kGroupRanks,
  kInSplit,
  kOutSplit,
  kPeer,
  kSrcRank,
  kDstRank,
  kSeq,
  kCommsId,
  kAddress,
  kMemoryBytes,  // the same "Bytes" of [memory] instants
  kTotalAllocated,
  kTotalReserved,
  kDeviceType,
  kDeviceId,
};

ArgKey arg_key(std::string_view name);
// `text` is the value as written (strings without quotes and escapes, null as "").
void set_arg(ArgKey key, std::string_view text, Event& event);

}  // namespace stageline::kineto
