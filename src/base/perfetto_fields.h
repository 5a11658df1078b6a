// Field numbers of Perfetto's trace format, grouped by message. The exporter writes them and the reader reads them.
// Source: perfetto/protos/perfetto/trace/{trace_packet,clock_snapshot,gpu/*,interned_data/*,track_event/*}.proto.
#pragma once

#include <cstdint>
#include <string_view>

namespace stageline::perfetto {

constexpr uint32_t kTracePacket = 1;  // field of Trace

namespace packet {  // TracePacket
enum : uint32_t {
  kFtraceEvents = 1,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kStateCleared = 41,  // older form of a flag
  kPreviousDropped = 42,
  kThreadDescriptor = 44,
  kSystemInfo = 45,
  kCompressed = 50,
  kGpuCounter = 52,
  kGpuStage = 53,
  kClockId = 58,
  kDefaults = 59,
  kTrackDescriptor = 60,
  kMachineId = 98,
  kRemoteClockSync = 107,
  kGpuInfo = 128,
  kZstdCompressed = 133
};
}
namespace packet_defaults {  // TracePacketDefaults
enum : uint32_t { kTrackEvent = 11, kClockId = 58 };
}
namespace clock_snapshot {
enum : uint32_t { kClock = 1, kPrimaryClock = 2 };
}
namespace clock_field {  // ClockSnapshot.Clock
enum : uint32_t { kId = 1, kTime = 2, kIsIncremental = 3, kUnitNs = 4 };
}
namespace descriptor {  // TrackDescriptor
enum : uint32_t {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kThread = 4,
  kParentUuid = 5,
  kCounter = 8,
  kStaticName = 10,
  kChildOrdering = 11,
  kSiblingRank = 12,
  kAtraceName = 13,
  kDescription = 14,
  kSiblingMerge = 15,
  kProcessOrdering = 19,
  kThreadOrdering = 20
};
}
namespace process_field {  // ProcessDescriptor
enum : uint32_t { kPid = 1, kCommand = 2, kName = 6 };
}
namespace thread_field {  // ThreadDescriptor
enum : uint32_t { kPid = 1, kTid = 2, kName = 5, kReferenceTimeUs = 6 };
}
namespace counter_field {  // CounterDescriptor
enum : uint32_t { kType = 1, kUnit = 3, kMultiplier = 4, kIsIncremental = 5, kUnitName = 6 };
}
namespace track_event {  // TrackEvent, and of TrackEventDefaults the numbers of its tracks
enum : uint32_t {
  kDeltaUs = 1,
  kCategoryIid = 3,
  kAnnotation = 4,
  kLegacy = 6,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kExtraValues = 12,
  kAbsoluteUs = 16,
  kThreadTimeUs = 17,
  kThreadInstructions = 20,
  kCategory = 22,
  kName = 23,
  kCounterValue = 30,
  kExtraCounterTracks = 31,
  kOldFlowId = 36,
  kOldTerminatingFlowId = 42,
  kDoubleCounterValue = 44,
  kExtraDoubleTracks = 45,
  kExtraDoubleValues = 46,
  kFlowId = 47,
  kTerminatingFlowId = 48,
  kCorrelationId = 52,
  kGpuCorrelation = 3000
};
}
namespace legacy_event {  // TrackEvent.LegacyEvent
enum : uint32_t {
  kNameIid = 1,
  kPhase = 2,
  kDurationUs = 3,
  kUnscopedId = 6,
  kScope = 7,
  kBindId = 8,
  kLocalId = 10,
  kGlobalId = 11,
  kBindToEnclosing = 12,
  kPidOverride = 18,
  kTidOverride = 19
};
}
namespace annotation {  // DebugAnnotation
enum : uint32_t {
  kNameIid = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kDouble = 5,
  kText = 6,
  kPointer = 7,
  kNested = 8,
  kLegacyJson = 9,
  kName = 10,
  kDictEntry = 11,
  kArrayValue = 12,
  kTextIid = 17
};
}
namespace interned {  // InternedData
enum : uint32_t {
  kCategories = 1,
  kEventNames = 2,
  kAnnotationNames = 3,
  kGraphicsContexts = 23,
  kGpuSpecifications = 24,
  kAnnotationTexts = 29,
  kCounterDescriptors = 47,
  kComputeKernels = 1000,
  kComputeArgNames = 1001
};
}
namespace interned_entry {  // all of its entries begin so
enum : uint32_t { kIid = 1, kText = 2, kDemangled = 3, kSpecDescription = 3, kContextPid = 2, kCounterGpu = 3 };
}
namespace gpu_stage {  // GpuRenderStageEvent
enum : uint32_t {
  kEventId = 1,
  kDuration = 2,
  kOldQueue = 3,
  kOldStage = 4,
  kContext = 5,
  kExtraData = 6,
  kSpecifications = 7,
  kGpuId = 11,
  kQueueIid = 13,
  kStageIid = 14,
  kName = 17,
  kWaitIds = 18,
  kKernelIid = 19,
  kNameIid = 20,
  kLaunch = 21
};
}
namespace gpu_launch {  // ComputeKernelLaunch and what is inside
enum : uint32_t { kGrid = 1, kWorkgroup = 2, kArg = 3 };
enum : uint32_t { kArgNameIid = 1, kArgName = 2, kArgInt = 3, kArgUint = 4 };
}  // namespace gpu_launch
namespace gpu_specs {  // GpuRenderStageEvent.Specifications
enum : uint32_t { kQueue = 2, kStage = 3, kName = 1 };
}
namespace gpu_counter {  // GpuCounterEvent, and its counters
enum : uint32_t { kDescriptor = 1, kCounter = 2, kGpuId = 3, kDescriptorIid = 4 };
enum : uint32_t { kCounterId = 1, kCounterInt = 2, kCounterDouble = 3 };
enum : uint32_t { kSpec = 1, kSpecName = 2, kSpecDirection = 11 };
}  // namespace gpu_counter

constexpr uint64_t kStateCleared = 1, kNeedsState = 2;                                           // SequenceFlags
constexpr uint64_t kUnstated = 0, kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4, kState = 5;  // TrackEvent.Type
constexpr uint64_t kRealtime = 1, kBoottime = 6;                                                 // BuiltinClock
constexpr uint64_t kFirstSequenceClock = 64, kFirstCustomClock = 128;  // ids between the two are clocks of one sequence

// Stageline's exporter describes the clocks with one of these in the root of all tracks. Further lines follow: each
// begins with one of the words below and has its values behind tabs.
constexpr std::string_view kOwnExport = "Stageline's export: ";
constexpr std::string_view kClocksShared = "Stageline's export: all ranks on one clock";
constexpr std::string_view kClocksUnaligned = "Stageline's export: each rank on its own clock of the same epoch";
constexpr std::string_view kClocksPerRank = "Stageline's export: each rank counts from a zero of its own";
constexpr std::string_view kNpuFact = "devices: npu";
constexpr std::string_view kDeviceFact = "device";                 // rank, number, JSON
constexpr std::string_view kNoKernelsFact = "kernels in no file";  // rank
constexpr std::string_view kProblemFact = "problem";               // name, severity, count, English, Chinese

}  // namespace stageline::perfetto
