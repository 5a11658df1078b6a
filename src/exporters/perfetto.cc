// Perfetto's native trace, a protobuf format written without a protobuf library (proto_writer.h).
//
// A file is a series of TracePackets. Each track is one packet sequence. A sequence has its own state, which is written
// once. It is the track of its events, the names used so far, and a private clock (id 64) that counts from event to
// event. So an event costs only a few bytes:
//
//   track descriptors      root, steps, processes, threads, with the order to show them in
//   sequence 2             defaults | clock: 64 = 0 at start | BEGIN F0 | END | BEGIN B0 | END …
//   sequence 3             …
//
// Three rules are easy to break (docs/exporters/perfetto.md). The first packet of a sequence must clear its state, or
// the whole sequence is skipped without a message. An END must stand before the BEGIN of the same time, or the second
// slice nests in the first. Times may be in any order between sequences, but not within one. Field numbers:
// perfetto/protos/perfetto/trace/{trace_packet,track_event/*}.proto.
#include "exporters/exporter.h"
#include "exporters/link_index.h"
#include "exporters/perfetto_packets.h"
#include "exporters/slice_names.h"

namespace stageline {
using namespace perfetto;
namespace {

// Names of annotations; the index is iid − 1.
constexpr std::array<std::string_view, 9> kAnnotations = {"kind", "step", "stage",  "chunk",    "micro_batch",
                                                          "rank", "dp",   "dur_ns", "operation"};
enum Annotation : uint64_t { kKind = 1, kStep, kStage, kChunk, kMicroBatch, kRank, kDp, kDurNs, kOperation };
constexpr uint64_t kStepCategory = kCellKindCount + 1;  // category ids: kind + 1, and then this one

class PerfettoWriter : PerfettoPackets {
 public:
  PerfettoWriter(const ExportInput& input, ExportSink& sink)
      : PerfettoPackets(sink), trace_(input.trace), layout_(lay_out_tracks(input.trace)),
        names_(input.trace, layout_.extent.chunk_count > 1), links_(input.trace, layout_),
        // Perfetto's times are unsigned. A trace that begins before its zero is shifted to begin at zero.
        with_slices_(has_profiler_slices(input.trace)),
        first_ns_(with_slices_ ? std::min(layout_.extent.start_ns, first_slice_ns(input.trace))
                               : layout_.extent.start_ns),
        shift_ns_(first_ns_ < 0 ? 0 - static_cast<uint64_t>(first_ns_) : 0) {}

  void write() {
    write_tracks();
    write_steps();
    for (const Track& track : layout_.tracks) write_track(track);
    flush();
  }

  // Returns the numbers that this writer has used.
  PerfettoNumbers taken() const {
    PerfettoNumbers n{.pid = layout_.step_pid,
                      .sequence = sequence_,
                      .flow = trace_.links.size(),
                      .sibling = layout_.step_tracks.size() + layout_.processes.size(),
                      .first_ns = first_ns_,
                      .any = true};
    for (const StepTrack& track : layout_.step_tracks) n.tid = std::max<uint64_t>(n.tid, track.tid);
    for (const Track& track : layout_.tracks) n.tid = std::max<uint64_t>(n.tid, track.tid);
    return n;
  }

 private:
  uint64_t shown_time(int64_t ns) const { return ns + shift_ns_; }

  void write_tracks() {
    write_root(trace_);
    size_t rank = 0;
    for (size_t row = 0; row < layout_.step_tracks.size(); ++row)
      track_descriptor(kStepUuid + row, rank++, [&] {
        out_.text(descriptor::kName, layout_.step_tracks[row].name);
        out_.number(descriptor::kSiblingMerge, kNone);
      });
    size_t thread_rank = 0;
    for (const Process& process : layout_.processes) {
      track_descriptor(kProcessUuid + process.pid, rank++, [&] {
        out_.number(descriptor::kChildOrdering, kExplicit);
        const size_t inner = out_.begin(descriptor::kProcess);
        out_.number(process_field::kPid, process.pid);
        out_.text(process_field::kName, process.name);
        out_.end(inner);
      });
      for (size_t t = process.begin; t < process.end; ++t) {
        const Track& track = layout_.tracks[t];
        track_descriptor(kThreadUuid + track.tid, thread_rank++, [&] {
          out_.number(descriptor::kParentUuid, kProcessUuid + process.pid);
          out_.number(descriptor::kSiblingMerge, kNone);
          const size_t inner = out_.begin(descriptor::kThread);
          out_.number(process_field::kPid, track.pid);
          out_.number(thread_field::kTid, track.tid);
          out_.text(thread_field::kName, track.name);
          out_.end(inner);
        });
      }
    }
  }

  // Begins a sequence with the texts that every track uses.
  void begin_sequence(uint64_t uuid, uint64_t start) {
    interned_.clear();
    operations_.clear();
    operations_.emplace(std::string_view(), 0);
    // Times that count from 1970 (taken to be those after 2001) can be shown as dates.
    open_sequence(uuid, start, shift_ns_ == 0 && layout_.extent.start_ns > kDatedNs);
    const size_t packet = begin_packet();
    out_.number(packet::kSequenceId, sequence_);
    out_.number(packet::kSequenceFlags, kNeedsState);
    const size_t interned = out_.begin(packet::kInternedData);
    for (uint64_t k = 0; k < kCellKindCount; ++k) {
      intern(interned::kCategories, k + 1, kind_name(static_cast<CellKind>(k)));
      intern(interned::kAnnotationTexts, k + 1, kind_code(static_cast<CellKind>(k)));
    }
    intern(interned::kCategories, kStepCategory, "step");
    for (uint64_t a = 0; a < kAnnotations.size(); ++a) intern(interned::kAnnotationNames, a + 1, kAnnotations[a]);
    out_.end(interned);
    out_.end(packet);
  }
  void annotate(Annotation name, uint32_t value_field, uint64_t value) {
    const size_t start = out_.begin(track_event::kAnnotation);
    out_.number(annotation::kNameIid, name);
    out_.number(value_field, value);
    out_.end(start);
  }
  void annotate_known(Annotation name, int32_t value) {
    if (value != kUnknown) annotate(name, annotation::kUint, static_cast<uint32_t>(value));
  }

  void write_steps() {
    for (size_t row = 0; row < layout_.step_tracks.size(); ++row) {
      bool begun = false;
      for (const StepSlice& step : layout_.steps) {
        if (step.row != row) continue;
        if (!begun) begin_sequence(kStepUuid + row, shown_time(step.start_ns));
        begun = true;
        const size_t packet = begin_event_packet(shown_time(step.start_ns));
        const size_t event = out_.begin(packet::kTrackEvent);
        out_.number(track_event::kType, kBegin);
        out_.number(track_event::kCategoryIid, kStepCategory);
        out_.text(track_event::kName, step_name(step.step, step.end_ns - step.start_ns));
        annotate_known(kStep, step.step);
        out_.end(event);
        out_.end(packet);
        end_event(shown_time(step.end_ns));
      }
    }
  }

  void write_track(const Track& track) {
    begin_sequence(kThreadUuid + track.tid, shown_time(trace_.cells.start_ns[layout_.cells[track.begin]]));
    for (size_t i = track.begin; i < track.end; ++i) write_cell(layout_.cells[i], trace_.parts[track.part]);
  }

  // Returns the name of the cell within its sequence as a 64-bit key; 0 when the numbers are too large for that.
  uint64_t name_key(size_t cell) const {
    const Cells& cells = trace_.cells;
    const uint64_t duration = names_.duration_code(cell);
    if (duration >= uint64_t{1} << 24) return 0;
    // The kind is part of the key because the unit depends on it.
    const uint64_t kind = static_cast<uint64_t>(cells.kind[cell]) << 24;
    if (names_.has_own_name(cell)) {
      const Part& part = trace_.parts[cells.part[cell]];
      return uint64_t{1} << 63 | uint64_t{part.slices.name_id[cells.slice[cell]]} << 28 | kind | duration;
    }
    const uint64_t micro_batch = int64_t{cells.micro_batch[cell]} + 1;
    const uint64_t chunk = int64_t{cells.chunk[cell]} + 1;
    if (micro_batch >> 22 != 0 || chunk >> 11 != 0) return 0;
    return uint64_t{1} << 62 | micro_batch << 39 | chunk << 28 | kind | duration;
  }

  // Returns the name that a source of operations gave this one, if the event shows another ("F3"); else "". These names
  // show which operations wait for which.
  std::string_view operation_of(size_t cell) const {
    const Cells& cells = trace_.cells;
    if (with_slices_ || cells.slice[cell] == kNoSlice || names_.has_own_name(cell)) return {};
    const std::string_view name = trace_.slice_name(cells.at(cell));
    return name == kind_name(cells.kind[cell]) ? std::string_view() : name;
  }

  // Returns an id that is the same for all work on one micro-batch, and for nothing else: the viewer highlights such
  // slices together.
  uint64_t correlation_id(size_t cell) const {
    const Cells& cells = trace_.cells;
    const Part& part = trace_.parts[cells.part[cell]];
    const uint64_t dp_count = std::max(layout_.extent.dp_count, 1);
    const uint64_t replica = cells.step[cell] * dp_count + std::max(part.dp, 0);
    return replica * layout_.extent.micro_batch_count + cells.micro_batch[cell] + 1;
  }

  void write_cell(uint32_t cell, const Part& part) {
    const Cells& cells = trace_.cells;
    const uint64_t start = shown_time(cells.start_ns[cell]), end = shown_time(shown_end_ns(cells, cell));
    const size_t packet = begin_event_packet(start);

    const uint64_t key = name_key(cell);
    uint64_t iid = 0;
    bool is_new = false;
    if (const auto known = interned_.find(key); key != 0 && known != interned_.end()) iid = known->second;
    else if (key != 0 && interned_.size() < kMaxInternedNames)
      iid = interned_.size() + 1, is_new = interned_.emplace(key, iid).second;
    const std::string_view operation_name = operation_of(cell);
    const auto operation = operations_.try_emplace(operation_name, kCellKindCount + operations_.size() + 1);
    if (is_new || operation.second) {
      const size_t interned = out_.begin(packet::kInternedData);
      scratch_.clear();
      names_.append(scratch_, cell);
      if (is_new) intern(interned::kEventNames, iid, scratch_);
      if (operation.second) intern(interned::kAnnotationTexts, operation.first->second, valid_utf8(operation_name));
      out_.end(interned);
    }

    const size_t event = out_.begin(packet::kTrackEvent);
    out_.number(track_event::kType, kBegin);
    if (iid != 0) {
      out_.number(track_event::kNameIid, iid);
    } else {
      scratch_.clear();
      names_.append(scratch_, cell);
      out_.text(track_event::kName, scratch_);
    }
    const auto kind = static_cast<uint64_t>(cells.kind[cell]) + 1;
    out_.number(track_event::kCategoryIid, kind);
    annotate(kKind, annotation::kTextIid, kind);
    annotate_known(kStep, cells.step[cell]);
    annotate_known(kStage, part.stage);
    annotate_known(kChunk, cells.chunk[cell]);
    annotate_known(kMicroBatch, cells.micro_batch[cell]);
    annotate_known(kRank, part.rank);
    annotate_known(kDp, part.dp);
    annotate(kDurNs, annotation::kUint, end - start);
    if (!operation_name.empty()) annotate(kOperation, annotation::kTextIid, operation.first->second);
    if (cells.step[cell] != kUnknown && cells.micro_batch[cell] != kUnknown)
      out_.number(track_event::kCorrelationId, correlation_id(cell));
    // Both ends carry the same plain id, which is used for nothing else; the importer then draws the arrow from the
    // earlier end to the later one. (A terminating id would be lost if it came first in time.)
    for (const uint32_t link : links_.out_of(cell)) out_.fixed64(track_event::kFlowId, uint64_t{link} + 1);
    for (const uint32_t link : links_.into(cell)) out_.fixed64(track_event::kFlowId, uint64_t{link} + 1);
    out_.end(event);
    out_.end(packet);
    end_event(end);
  }

  const Trace& trace_;
  TrackLayout layout_;
  SliceNames names_;
  LinkIndex links_;
  bool with_slices_;
  int64_t first_ns_;
  uint64_t shift_ns_;
  std::unordered_map<uint64_t, uint64_t> interned_;            // name key → iid, in the current sequence
  std::unordered_map<std::string_view, uint64_t> operations_;  // name → iid of its text
  std::string scratch_;
};

}  // namespace

Status write_perfetto(const ExportInput& input, const std::string& path) {
  TRY(sink, ExportSink::create(path));
  if (input.trace.cells.size() > 0) {
    PerfettoWriter writer(input, *sink);
    writer.write();
    // The slices that the cells were read from are written below the cells, all of them.
    if (has_profiler_slices(input.trace)) write_profiler_slices(input.trace, *sink, writer.taken());
  } else {
    write_profiler_slices(input.trace, *sink);
  }
  return sink->commit();
}

}  // namespace stageline
