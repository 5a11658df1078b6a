// Field numbers of Perfetto's trace format, by message: perfetto_fields.def. The exporter writes them and the reader
// reads them.
#pragma once

#include "base/vocabulary.h"

namespace stageline::perfetto {

constexpr uint32_t kTracePacket = 1;  // field of Trace

#define PROTO_FIELDS "base/perfetto_fields.def"
#include "base/proto_fields.def"

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
