// Writes the packets of Perfetto's native trace that every writer needs: descriptors of tracks, sequences with a clock,
// and heads of events. The packets and their rules are explained in perfetto.cc.
#pragma once

#include "base/perfetto_fields.h"
#include "exporters/export_sink.h"
#include "exporters/proto_writer.h"
#include "model/lost_work.h"
#include "model/torch_facts.h"

namespace stageline::perfetto {

constexpr uint64_t kExplicit = 3, kExplicitTop = 1, kNone = 2;  // orderings; SiblingMergeBehavior
constexpr uint64_t kDeltaClock = kFirstSequenceClock;
constexpr int64_t kDatedNs = 1'000'000'000'000'000'000;  // in 2001; times later than this are taken to count from 1970

// Limit of names that one sequence keeps, which bounds our memory. A track with more names writes the others out in
// full.
constexpr size_t kMaxInternedNames = size_t{1} << 16;

constexpr uint64_t kStepUuid = uint64_t{1} << 32, kProcessUuid = uint64_t{2} << 32, kThreadUuid = uint64_t{3} << 32;

class PerfettoPackets {
 protected:
  static std::string run_facts(const Trace& trace) {
    std::string facts(trace.clock == ClockState::kPerRank  ? kClocksPerRank
                      : trace.clock == ClockState::kShared ? kClocksShared
                                                           : kClocksUnaligned);
    if (trace.device_family == DeviceFamily::kNpu) facts += std::string("\n") + std::string(kNpuFact);
    for (const Part& part : trace.parts)
      if (const std::string device = device_json(part); !device.empty())
        facts += "\n" + std::string(kDeviceFact) + "\t" + std::to_string(part.rank) + "\t" +
                 std::to_string(part.device) + "\t" + device;
    for (const Part& part : trace.parts)
      if (kernels_are_missing(part)) facts += "\n" + std::string(kNoKernelsFact) + "\t" + std::to_string(part.rank);
    std::string prefix = trace.format + ".";
    std::ranges::replace(prefix, '-', '_');
    for (const Diagnostic& d : trace.diagnostics.items())
      if (d.name.starts_with(prefix))
        facts += "\n" + std::string(kProblemFact) + "\t" + d.name + "\t" +
                 std::to_string(static_cast<int>(d.severity)) + "\t" + std::to_string(d.count) + "\t" + d.message.en +
                 "\t" + d.message.zh;
    return facts;
  }

  explicit PerfettoPackets(ExportSink& sink) : sink_(sink) {}

  void flush() {
    sink_.write(out_.bytes());
    out_.clear();
  }
  size_t begin_packet() {
    if (out_.bytes().size() >= kPieceBytes) flush();
    return out_.begin(kTracePacket);
  }

  // Writes the root of all tracks, Uuid 0. It says that tracks are sorted by rank, not by running time or name. It also
  // holds what no track shows, in lines that our own reader understands. These are how far times of different ranks can
  // be compared, the devices, ranks whose kernels were in no file, and the reader's problems.
  void write_root(const Trace& trace) {
    const size_t packet = begin_packet();
    const size_t root = out_.begin(packet::kTrackDescriptor);
    out_.number(descriptor::kUuid, 0);
    out_.number(descriptor::kChildOrdering, kExplicit);
    out_.text(descriptor::kDescription, valid_utf8(run_facts(trace)));
    out_.number(descriptor::kProcessOrdering, kExplicitTop);
    out_.number(descriptor::kThreadOrdering, kExplicitTop);
    out_.end(root);
    out_.end(packet);
  }

  // Writes a track descriptor around body(). `rank` is the track's place among its siblings.
  template <class Body> void track_descriptor(uint64_t uuid, size_t rank, Body body) {
    const size_t packet = begin_packet();
    const size_t descriptor = out_.begin(packet::kTrackDescriptor);
    out_.number(descriptor::kUuid, uuid);
    out_.number(descriptor::kSiblingRank, rank);
    body();
    out_.end(descriptor);
    out_.end(packet);
  }

  // Writes the state of a new sequence: its track and its clock. `dated` is true when times count from 1970.
  void open_sequence(uint64_t uuid, uint64_t start, bool dated) {
    ++sequence_;
    last_time_ = start;
    size_t packet = begin_packet();
    out_.number(packet::kSequenceId, sequence_);
    out_.number(packet::kSequenceFlags, kStateCleared | kNeedsState);
    const size_t defaults = out_.begin(packet::kDefaults);
    out_.number(packet_defaults::kClockId, kDeltaClock);
    const size_t event = out_.begin(packet_defaults::kTrackEvent);
    out_.number(track_event::kTrackUuid, uuid);
    out_.end(event);
    out_.end(defaults);
    out_.end(packet);

    packet = begin_packet();
    out_.number(packet::kSequenceId, sequence_);
    out_.number(packet::kSequenceFlags, kNeedsState);
    const size_t snapshot = out_.begin(packet::kClockSnapshot);
    clock(kBoottime, start, false);
    if (dated) clock(kRealtime, start, false);
    clock(kDeltaClock, start, true);
    out_.number(clock_snapshot::kPrimaryClock, kBoottime);
    out_.end(snapshot);
    out_.end(packet);
  }
  void clock(uint64_t id, uint64_t time, bool incremental) {
    const size_t start = out_.begin(clock_snapshot::kClock);
    out_.number(clock_field::kId, id);
    out_.number(clock_field::kTime, time);
    if (incremental) out_.number(clock_field::kIsIncremental, 1);
    out_.end(start);
  }
  void intern(uint32_t kind_of_text, uint64_t iid, std::string_view text) {
    const size_t start = out_.begin(kind_of_text);
    out_.number(interned_entry::kIid, iid);
    out_.text(interned_entry::kText, text);
    out_.end(start);
  }

  // Writes the head of an event's packet, up to where the event's own content begins.
  size_t begin_event_packet(uint64_t time) {
    const size_t packet = begin_packet();
    out_.number(packet::kTimestamp, time - last_time_);
    last_time_ = time;
    out_.number(packet::kSequenceId, sequence_);
    out_.number(packet::kSequenceFlags, kNeedsState);
    return packet;
  }
  void end_event(uint64_t time) {
    const size_t packet = begin_event_packet(time);
    const size_t event = out_.begin(packet::kTrackEvent);
    out_.number(track_event::kType, kEnd);
    out_.end(event);
    out_.end(packet);
  }

  ProtoWriter out_;
  uint64_t sequence_ = 1;  // the first number used is 2, because 1 is the number of Perfetto's own service

 private:
  static constexpr size_t kPieceBytes = size_t{1} << 16;

  ExportSink& sink_;
  uint64_t last_time_ = 0;
};

}  // namespace stageline::perfetto

namespace stageline {

// The numbers that a file has given away already, so that the tracks, sequences and arrows of both writers get
// different ones.
struct PerfettoNumbers {
  uint64_t pid = 0, tid = 0, sequence = 1, flow = 0, sibling = 0;
  int64_t first_ns = INT64_MAX;  // time at which the file begins
  bool any = false;
};
// Writes the slices of a profiler trace, where there are no pipeline cells or in addition to them: one process for each
// rank and one thread for each lane, with names and categories. Arrows lead from launches to their last device work,
// and both have a number, "correlation". Slices that overlap on a lane without nesting go to further threads, at most
// kMaxRowsPerLane for each lane. Other arguments are not written; they stay in the source. The memory used is that of
// one lane's slices that did not nest. O(slices), times the number of threads of a lane.
void write_profiler_slices(const Trace& trace, ExportSink& sink, const PerfettoNumbers& taken = {});

// Returns true when a trace has slices of a profiler besides those that its cells were read from.
bool has_profiler_slices(const Trace& trace);
// Returns the first start of any slice, or INT64_MAX when there are no slices.
int64_t first_slice_ns(const Trace& trace);

}  // namespace stageline
