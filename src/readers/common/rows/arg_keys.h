// The arguments that Stageline keeps of an event, by Kineto's names, and how they are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "readers/common/rows/event.h"

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
  kInputDims,
  kInputTypes,
  kConcreteInputs,
  kBlocksPerSm,
  kWarpsPerSm,
  kOccupancy,
  kRegisters,
  kSharedMemory,
  kGrid,
  kBlock,
  kCallStack,
  kModuleHierarchy,
  kPythonModule,
};

ArgKey arg_key(std::string_view name);
// Arguments that are kept as text when they are arrays; arrays and objects of all others are passed over.
bool keeps_array(ArgKey key);
// `text` is the value as written (strings without quotes and escapes, arrays with their brackets, null as "").
void set_arg(ArgKey key, std::string_view text, Event& event);

}  // namespace stageline::kineto
