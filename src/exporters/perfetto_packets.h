// Packets of Perfetto's native trace that every writer of one needs: descriptors of tracks, sequences with a clock of
// their own, heads of events. What the packets mean and which rules bite: perfetto.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "exporters/export_sink.h"
#include "exporters/proto_writer.h"

namespace stageline::perfetto {

namespace field {
constexpr uint32_t kTracePacket = 1;  // Trace
// TracePacket
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kDefaults = 59, kTrackDescriptor = 60;
// ClockSnapshot, its Clock, and TracePacketDefaults
constexpr uint32_t kClock = 1, kPrimaryClock = 2, kClockId = 1, kClockTime = 2, kClockIsIncremental = 3;
constexpr uint32_t kDefaultClockId = 58, kDefaultTrackEvent = 11;
// TrackDescriptor
constexpr uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kChildOrdering = 11,
                   kSiblingRank = 12, kSiblingMerge = 15, kProcessOrdering = 19, kThreadOrdering = 20;
constexpr uint32_t kPid = 1, kTid = 2, kThreadName = 5, kProcessName = 6;
// TrackEvent
constexpr uint32_t kCategoryIid = 3, kAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kEventName = 23,
                   kFlowId = 47, kCorrelationId = 52;
// DebugAnnotation, InternedData and its entries
constexpr uint32_t kAnnotationNameIid = 1, kUint = 3, kStringIid = 17;
constexpr uint32_t kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kAnnotationStrings = 29;
constexpr uint32_t kIid = 1, kInternedText = 2;
}  // namespace field

constexpr uint64_t kStateCleared = 1, kNeedsState = 2;          // SequenceFlags
constexpr uint64_t kBegin = 1, kEnd = 2;                        // TrackEvent.Type
constexpr uint64_t kExplicit = 3, kExplicitTop = 1, kNone = 2;  // orderings; SiblingMergeBehavior
constexpr uint64_t kRealtime = 1, kBoottime = 6, kDeltaClock = 64;
constexpr int64_t kDatedNs = 1'000'000'000'000'000'000;  // 2001: later times count from 1970

// Names a sequence keeps; a track with more of them spells the rest out. Bounds our memory.
constexpr size_t kMaxInternedNames = size_t{1} << 16;

constexpr uint64_t kStepUuid = uint64_t{1} << 32, kProcessUuid = uint64_t{2} << 32, kThreadUuid = uint64_t{3} << 32;

class PerfettoPackets {
 protected:
  explicit PerfettoPackets(ExportSink& sink) : sink_(sink) {}

  void flush() {
    sink_.write(out_.bytes());
    out_.clear();
  }
  size_t begin_packet() {
    if (out_.bytes().size() >= kPieceBytes) flush();
    return out_.begin(field::kTracePacket);
  }

  // A track descriptor around body(); `rank` is its place among its siblings.
  template <class Body>
  void track_descriptor(uint64_t uuid, size_t rank, Body body) {
    const size_t packet = begin_packet();
    const size_t descriptor = out_.begin(field::kTrackDescriptor);
    out_.number(field::kUuid, uuid);
    out_.number(field::kSiblingRank, rank);
    body();
    out_.end(descriptor);
    out_.end(packet);
  }

  // The state of a new sequence: its track and its clock. `dated`: times are since 1970.
  void open_sequence(uint64_t uuid, uint64_t start, bool dated) {
    ++sequence_;
    last_time_ = start;
    size_t packet = begin_packet();
    out_.number(field::kSequenceId, sequence_);
    out_.number(field::kSequenceFlags, kStateCleared | kNeedsState);
    const size_t defaults = out_.begin(field::kDefaults);
    out_.number(field::kDefaultClockId, kDeltaClock);
    const size_t event = out_.begin(field::kDefaultTrackEvent);
    out_.number(field::kTrackUuid, uuid);
    out_.end(event);
    out_.end(defaults);
    out_.end(packet);

    packet = begin_packet();
    out_.number(field::kSequenceId, sequence_);
    out_.number(field::kSequenceFlags, kNeedsState);
    const size_t snapshot = out_.begin(field::kClockSnapshot);
    clock(kBoottime, start, false);
    if (dated) clock(kRealtime, start, false);
    clock(kDeltaClock, start, true);
    out_.number(field::kPrimaryClock, kBoottime);
    out_.end(snapshot);
    out_.end(packet);
  }
  void clock(uint64_t id, uint64_t time, bool incremental) {
    const size_t start = out_.begin(field::kClock);
    out_.number(field::kClockId, id);
    out_.number(field::kClockTime, time);
    if (incremental) out_.number(field::kClockIsIncremental, 1);
    out_.end(start);
  }
  void intern(uint32_t kind_of_text, uint64_t iid, std::string_view text) {
    const size_t start = out_.begin(kind_of_text);
    out_.number(field::kIid, iid);
    out_.text(field::kInternedText, text);
    out_.end(start);
  }

  // The head of an event's packet, up to where its own content begins.
  size_t begin_event_packet(uint64_t time) {
    const size_t packet = begin_packet();
    out_.number(field::kTimestamp, time - last_time_);
    last_time_ = time;
    out_.number(field::kSequenceId, sequence_);
    out_.number(field::kSequenceFlags, kNeedsState);
    return packet;
  }
  void end_event(uint64_t time) {
    const size_t packet = begin_event_packet(time);
    const size_t event = out_.begin(field::kTrackEvent);
    out_.number(field::kType, kEnd);
    out_.end(event);
    out_.end(packet);
  }

  ProtoWriter out_;
  uint64_t sequence_ = 1;  // the first one used is 2; 1 is the service's own

 private:
  static constexpr size_t kPieceBytes = size_t{1} << 16;

  ExportSink& sink_;
  uint64_t last_time_ = 0;
};

}  // namespace stageline::perfetto
