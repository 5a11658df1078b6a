// Reads one Perfetto file: packets in, rows out.
//
//   packets ─▶ state of sequences ─▶ events: rows, a log of begins and ends, counters, flows, device work
//        end of the file: pair ─▶ states ─▶ flows ─▶ tracks become lanes ─▶ parts (ranks) ─▶ FileRows
//
// Rows bear a track's number for a thread until the tracks' names are all known. Times are on the trace's clock, moved
// to the real time of day where a snapshot says how.
#pragma once

#include "base/perfetto_fields.h"
#include "base/progress.h"
#include "model/source_limits.h"
#include "readers/perfetto/annotations.h"
#include "readers/perfetto/packets.h"
#include "readers/perfetto/slice_log.h"
#include "readers/perfetto/tracks.h"

namespace stageline::pftrace {

// A cell of our own export, and its row's times and name.
struct CellRow {
  OwnCell cell;
  int64_t start_ns = 0, dur_ns = 0;
  uint32_t file_index = 0;
  std::string name;
  std::string process;  // the machine, as the export calls it
};

// Holds the rows of one part.
struct RankRows {
  rows::FileRows rows;
  int64_t rank = -1;  // −1: the file does not say
  std::string machine;
  int64_t device_rows = 0;
};

struct FileResult {
  std::string path;
  std::vector<RankRows> ranks;
  std::vector<CellRow> cells;
  Diagnostics notes;
  int64_t shift_ns = 0;     // to add to every time
  bool is_dated = false;    // times then count from 1970
  bool by_process = false;  // ranks are processes with devices of their own
  bool is_own = false;      // process names give ranks, as our exporter writes them
  std::string clocks;       // what our exporter says of them, and of the run; "" otherwise
  int64_t packets = 0, paired_by_index = 0;
  size_t marks = 0, counters = 0;
};

// Errors: kNotFound, kIo; kBadInput when there is nothing in it that can be shown.
// `size_bytes`: of the file, as a hint.
Result<FileResult> read_file(const std::string& path, int64_t size_bytes, Progress* progress);

struct Packet {
  uint64_t timestamp = 0, clock = 0, machine = 0, flags = 0;
  uint32_t sequence = 0, payload = 0;
  bool has_time = false, has_clock = false, has_sequence = false, dropped = false, is_first = false;
  std::string_view body, interned, defaults;
  int64_t offset = 0;
};
struct TrackEvent {
  uint64_t type = 0;
  std::optional<uint64_t> track, counter;
  std::optional<double> counter_double;
  uint32_t name = 0;
  uint16_t category = 0;
  std::optional<int64_t> delta_us, absolute_us, thread_time_us, thread_instructions;
  std::string_view legacy;
  std::vector<std::string_view> annotations, gpu_correlations;
  struct FlowId {
    uint64_t id;
    bool ends;
  };
  std::vector<FlowId> flows;
  std::vector<uint64_t> extra_tracks, extra_double_tracks;
  std::vector<int64_t> extra_values;
  std::vector<double> extra_doubles;
  bool is_plain = true;  // nothing was set but type, track, name, category and annotations
  void clear();
};

class FileReader {
 public:
  // `book` holds snapshots of an earlier reading of the same file; null at first.
  FileReader(std::string path, const ClockBook* book);
  Status read(int64_t size_bytes, Progress* progress);
  // A timestamp came before the snapshots that its clock needs: read again with clocks().
  bool wants_clocks() const { return late_clocks_ && !has_book_; }
  const ClockBook& clocks() const { return clocks_; }
  Result<FileResult> finish();

 private:
  struct Legacy {
    char phase = 0;
    uint32_t name = 0;
    bool binds_enclosing = false;
    int64_t duration_us = 0, pid = kNoNumber, tid = kNoNumber;
    uint64_t id = 0;
    std::optional<uint64_t> bind_id;
    char id_kind = 'u';
    std::string_view scope;
  };
  static constexpr uint32_t kMaxTracks = uint32_t{1} << 31;
  struct FlowPoint {
    uint64_t id;
    int64_t time;
    uint32_t at;  // a row, or the number of an end in the log
    bool at_end, ends;
  };
  struct Sample {
    uint32_t track;
    int64_t time;
    double value;
  };
  struct StateChange {
    uint32_t track, name;
    int64_t time;
    uint16_t category;
    uint32_t file_index;
    int64_t offset;
  };

  // plain_events.cc
  // Reads a packet that is one event of numbers alone, as nearly all are; false, and nothing is done, where it is not.
  bool plain_event(std::string_view bytes, int64_t offset);

  // file_reader.cc
  // Reads the fields of a packet, and the packets in it where it is compressed. Returns false where it is damaged.
  bool read_fields(std::string_view bytes, bool nested, Packet& p);
  void packet(std::string_view bytes, int64_t offset, bool nested);
  void compressed(std::string_view bytes, bool zstd, int64_t offset);
  void payload(const Packet& p, Sequence& s);
  Sequence& sequence_of(uint32_t id) {
    return last_sequence_ && last_sequence_->id == id ? *last_sequence_ : find_sequence(id);
  }
  Sequence& find_sequence(uint32_t id);
  void intern(std::string_view data, Sequence& s);
  void read_defaults(std::string_view data, Sequence& s);
  void snapshot(const Packet& p, Sequence& s);
  void gpu_info(std::string_view bytes);
  // Computes a packet's timestamp on the trace's clock. Returns false, and reports it, if it has none that can be used.
  bool time_of(const Packet& p, Sequence& s, int64_t& out);
  void bad_time(int64_t offset);
  void unknown_clock(int64_t offset);
  uint32_t text_id(std::string_view text);
  uint16_t category_id(std::string_view text);
  void mark_used(uint32_t track) {
    if (track >= has_rows_.size()) has_rows_.resize(track + size_t{1});
    has_rows_[track] = 1;
  }
  void lose(const Problem& problem, int64_t offset, const Args& args = {}) {
    notes_.add(problem, args, {path_, 0, offset});
  }

  // track_events.cc
  void track_event(const Packet& p, Sequence& s);
  void event_read(const Packet& p, Sequence& s);  // what event_ says is done
  uint32_t track_of_event(const Packet& p, const Sequence& s);
  // Adds the row of a slice that begins, and returns it, or kNoRow; notes that one ends, and returns the end's number.
  uint32_t begin_slice(const Packet& p, const Sequence& s, int64_t time, uint32_t track);
  uint32_t end_slice(const Packet& p, const Sequence& s, int64_t time, uint32_t track);
  bool scan_event(std::string_view body, const Sequence& s, TrackEvent& e);
  // Reads the legacy part of the current event, and its name where it has none.
  Legacy read_legacy(const Sequence& s);
  void legacy_event(const Packet& p, Sequence& s, int64_t time, uint32_t track);
  uint32_t begin_row(const Packet& p, const Sequence& s, int64_t time, int64_t dur, uint32_t track, uint32_t name);
  void too_many_rows(int64_t offset);
  void annotate(uint32_t row, const Sequence& s);
  void instant(const Packet& p, const Sequence& s, int64_t time, uint32_t track, uint32_t name);
  void event_counters(Sequence& s, int64_t time, uint32_t track);
  void count(Sequence& s, uint32_t track, int64_t time, int64_t value);
  void add_flows(uint32_t at, bool at_end, int64_t time);

  // gpu_events.cc
  struct GpuStage;
  bool read_gpu_stage(const Packet& p, Sequence& s, GpuStage& out);
  void gpu_extra_data(std::string_view bytes);
  void gpu_specifications(std::string_view bytes);
  void gpu_stage(const Packet& p, Sequence& s);
  void gpu_counter(const Packet& p, Sequence& s);
  void gpu_launch(std::string_view bytes, const Sequence& s);
  uint32_t gpu_track(int64_t gpu, uint64_t queue, std::string_view queue_name, int64_t stream);

  // finish_file.cc
  void settle_states();
  void settle_flows();
  void link_gpu_work();
  void settle_lanes();
  void settle_counters(FileResult& out);
  std::map<int64_t, std::string> named_ranks() const;
  std::map<int64_t, std::set<int64_t>> devices_of_processes() const;
  std::vector<int32_t> choose_parts(FileResult& out);
  void split(FileResult& out);

  std::string path_;
  bool has_book_ = false, late_clocks_ = false;
  Diagnostics notes_;
  rows::RowBuilder builder_;
  Annotations annotations_;
  ClockBook clocks_;
  Tracks tracks_;
  SliceLog log_{builder_.rows()};
  std::unordered_map<uint32_t, std::unique_ptr<Sequence>> sequences_;
  Sequence* last_sequence_ = nullptr;
  std::vector<uint8_t> has_rows_;  // by track
  uint64_t trace_clock_ = 0;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  int64_t packets_ = 0, ends_ = 0;
  int64_t unpacked_ = 0;  // bytes of compressed packets, for the limit on all of them
  bool clockless_ = false;

  TrackEvent event_;
  rows::Event facts_;
  OwnCell own_;
  uint16_t sync_category_ = 0, overhead_category_ = 0, kernel_category_ = 0, copy_category_ = 0;
  std::vector<std::pair<uint32_t, OwnCell>> own_cells_;  // by row
  std::vector<FlowPoint> flows_;
  struct LegacyFlow {
    uint64_t id;
    int64_t time;
    uint32_t track;
    char phase;
    bool binds_enclosing;
  };
  std::vector<LegacyFlow> legacy_flows_;
  std::vector<Sample> samples_;
  std::vector<StateChange> states_;
  std::vector<std::pair<uint64_t, uint32_t>> gpu_events_;   // event_id → row
  std::vector<std::pair<uint64_t, uint32_t>> submissions_;  // event_id → the row of the call
  std::vector<std::pair<uint64_t, uint32_t>> waits_;        // event_id → the row that waits for it
  std::unordered_map<uint32_t, int64_t> row_pid_;           // of device rows: their process, by track
  struct SpecLists {
    std::vector<std::string> queues, stages;
  } old_specs_;
  CounterSet old_counters_;
  std::unordered_map<uint32_t, size_t> looks_back_;  // counter track → its last sample
  std::vector<MetaField> metadata_;
  rows::ChunkRows rows_;
};

// Work for every event is defined here, so that the walk over plain events needs no calls for it.

// Clocks 64 to 127 are a sequence's own.
inline uint64_t clock_key(uint64_t clock, uint32_t sequence) {
  const bool own = clock >= perfetto::kFirstSequenceClock && clock < perfetto::kFirstCustomClock;
  return own ? (uint64_t{sequence} + 1) << 32 | clock : clock;
}

inline bool FileReader::time_of(const Packet& p, Sequence& s, int64_t& out) {
  int64_t ns = p.timestamp;
  const uint64_t trace_clock = trace_clock_ == 0 ? perfetto::kBoottime : trace_clock_;
  const uint64_t clock = p.has_clock ? p.clock : s.default_clock;
  bool good = p.timestamp <= INT64_MAX;
  if (good && clock != 0 && clock != trace_clock) {
    if (clock >= perfetto::kFirstSequenceClock && clock < perfetto::kFirstCustomClock)
      for (SequenceClock& own : s.clocks) {
        if (own.id != clock) continue;
        good = !__builtin_mul_overflow(ns, own.unit, &ns) &&
               !(own.is_incremental && __builtin_add_overflow(ns, own.last, &ns));
        if (good && own.is_incremental) own.last = ns;
        break;
      }
    if (good && !clocks_.convert(clock_key(clock, s.id), ns, trace_clock, s.leg)) unknown_clock(p.offset);
  }
  if (!good || ns < 0 || ns > kMaxTimeNs) {
    bad_time(p.offset);
    return false;
  }
  first_ns_ = std::min(first_ns_, ns);
  last_ns_ = std::max(last_ns_, ns);
  out = ns;
  return true;
}

inline uint32_t FileReader::track_of_event(const Packet& p, const Sequence& s) {
  const uint64_t machine = p.machine * 0x9e3779b97f4a7c15ull;
  if (event_.track.value_or(0) != 0) return tracks_.of_uuid(*event_.track ^ machine);
  if (!event_.track && s.has_default_track) return tracks_.of_uuid(s.default_track ^ machine);
  if (s.thread_track != UINT32_MAX) return s.thread_track;
  return event_.track ? tracks_.of_uuid(0) : tracks_.of_sequence(s.id);
}

// Events are read in the order of the file; what they say of their slice becomes facts of its row at once.
inline uint32_t FileReader::begin_row(const Packet& p, const Sequence& s, int64_t time, int64_t dur, uint32_t track,
                                      uint32_t name) {
  mark_used(track);
  const uint32_t number =
      builder_.add_row(time, dur, p.offset, name, track, static_cast<uint16_t>(event_.category & 0x7fff));
  if (number == kNoRow) {
    too_many_rows(p.offset);
    return number;
  }
  if (!event_.annotations.empty()) annotate(number, s);
  return number;
}

inline uint32_t FileReader::begin_slice(const Packet& p, const Sequence& s, int64_t time, uint32_t track) {
  const uint32_t row = begin_row(p, s, time, 0, track, event_.name);
  if (row != kNoRow) log_.begin(time, track, row, s.id, (p.flags & perfetto::kNeedsState) != 0);
  return row;
}

inline uint32_t FileReader::end_slice(const Packet& p, const Sequence& s, int64_t time, uint32_t track) {
  ++ends_;
  builder_.skip_entry();
  return log_.end(time, track, s.id, (p.flags & perfetto::kNeedsState) != 0);
}

}  // namespace stageline::pftrace
