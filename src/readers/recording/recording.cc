// Reads recordings of libstageline_record: docs/formats/recording.md.
//
//   files ──chunks──▶ rows ──by recording──▶ clocks ──▶ ops ──▶ parts, lanes, cells
//   (chunks.h)       (rows.h, hot_file.cc)   (clocks.h)
#include "base/json_writer.h"
#include "model/intervals.h"
#include "readers/common/range_message.h"
#include "readers/common/ranks.h"
#include "readers/recording/clocks.h"
#include "readers/recording/problems.h"
#include "readers/recording/recordings.h"

namespace stageline::recording {
namespace {

// By enum slr_kind of stageline_record.h.
constexpr CellKind kKinds[] = {CellKind::kOther,        CellKind::kForward,     CellKind::kBackward,
                               CellKind::kInputGrad,    CellKind::kWeightGrad,  CellKind::kForwardBackward,
                               CellKind::kSendForward,  CellKind::kRecvForward, CellKind::kSendBackward,
                               CellKind::kRecvBackward, CellKind::kCollective,  CellKind::kOptimizer,
                               CellKind::kOther};
constexpr uint8_t kLoadKind = 12;

// The problem of each reason for a drop, in the order of enum slr_drop.
constexpr Problem kDrops[] = {
    problem::recording_ring_full, problem::recording_no_ring,           problem::recording_too_deep,
    problem::recording_reentrant, problem::recording_bad_handle,        problem::recording_capture,
    problem::recording_no_event,  problem::recording_device_refused,    problem::recording_bad_device_time,
    problem::recording_guard,     problem::recording_unfinished_device, problem::recording_one_queue,
    problem::recording_names,     problem::recording_kernels,
};

class Maker {
 public:
  explicit Maker(Trace& trace) : trace_(trace), facts_(trace), kernels_(trace) {}

  void add(Recording& recording, int32_t rank) {
    const auto file = static_cast<uint32_t>(paths_.size());
    paths_.push_back(recording.paths.empty() ? recording.hot_path : recording.paths[0]);
    const Clocks clocks(
        recording.content.snapshots, recording.content.anchors,
        recording.meta.ticks_per_second ? recording.meta.ticks_per_second : recording.content.head.ticks_per_second,
        recording.meta.start_realtime_ns ? recording.meta.start_realtime_ns : recording.content.head.start_realtime_ns);
    report_losses(recording, clocks, paths_.back());
    Reading from{recording, clocks, rank, file, name_lanes(recording), {}, INT64_MIN};
    facts_.add_lanes(recording.content, rank);
    kernels_.add_lanes(recording.content, rank, from.lane_of, lane_names_);
    for (const Row& row : recording.content.rows)
      if (row.type == RecordType::kOpenRange) recording.open.push_back(row);
      else take(from, row, index_++);
    for (const Row& row : recording.open) take_open(from, row, index_++);
    trace_.diagnostics.add(problem::recording_unfinished, {paths_.back()}, recording.open.size());
  }

  std::vector<Op> ops;
  const std::vector<std::string>& paths() const { return paths_; }
  const std::vector<std::string>& lanes() const { return lane_names_; }

  void append_steps() { kernels_.append_steps(ops); }
  void fill_facts() {
    facts_.fill();
    kernels_.fill();
  }

  // Marks and counters are added once there are parts.
  void add_series() {
    for (const auto& [rank, marks] : marks_) {
      Part* part = part_of(rank);
      if (!part) continue;
      for (const auto& [mark, lane] : marks) {
        const auto at = std::ranges::find(part->lanes, lane_names_[lane], &Lane::name);
        if (at == part->lanes.end()) continue;
        part->marks.push_back(mark);
        part->marks.back().lane = static_cast<uint32_t>(at - part->lanes.begin());
      }
    }
    for (auto& [rank, series] : counters_) {
      Part* part = part_of(rank);
      if (!part) continue;
      for (auto& [name, values] : series) {
        sort_stably(values, [](const auto& a, const auto& b) { return a.first < b.first; });
        CounterSeries out;
        out.name = name;
        for (const auto& [time_ns, value] : values) {
          out.time_ns.push_back(time_ns);
          out.value.push_back(value);
        }
        part->counters.push_back(std::move(out));
      }
    }
  }

 private:
  // The recording that is being read.
  struct Reading {
    const Recording& recording;
    const Clocks& clocks;
    int32_t rank;
    uint32_t file;
    std::map<uint16_t, uint32_t> lane_of;  // its lanes → places in lane_names_
    std::map<uint32_t, StringId> name_of;  // its names by number and kind
    int64_t last_ns;                       // the latest end so far

    const LaneRow* lane(const Row& row) const {  // nullptr: it describes none
      const auto at = recording.content.lanes.find(row.lane);
      return at == recording.content.lanes.end() ? nullptr : &at->second;
    }
  };

  void report_losses(const Recording& recording, const Clocks& clocks, const std::string& path) {
    Diagnostics& d = trace_.diagnostics;
    for (size_t i = 0; i < std::size(kDrops); ++i) d.add(kDrops[i], {path}, recording.content.drops[i]);
    d.add(problem::recording_lost_records, {path}, recording.lost_slots);
    d.add(problem::recording_bad_chunk, {path}, recording.content.bad_chunks);
    d.add(problem::recording_newer, {path}, recording.content.unknown_chunks);
    d.add(problem::recording_bad_clock, {path}, clocks.bad_readings);
    d.add(problem::recording_clock_step, {path}, clocks.clock_steps);
    if (!recording.meta.kernels.empty() && recording.meta.kernels != "recorded")
      d.add(problem::recording_kernels_end, Args().set("kernels", recording.meta.kernels), {path});
    if (recording.content.begins_late) d.add(problem::recording_newest_only, {path});
    const bool cut = recording.content.memory_lost || recording.hot_path.empty();
    if (!recording.content.ended || recording.content.memory_lost)
      d.add(cut ? problem::recording_cut : problem::recording_not_closed, {path});
  }

  // Maps the recording's lane numbers to indices of lane_names_. Lanes with the same name on one rank are kept apart; a
  // thread's launches are put on the thread's own lane, within its ranges.
  std::map<uint16_t, uint32_t> name_lanes(const Recording& recording) {
    domain_of_.clear();
    std::map<uint16_t, uint32_t> places;
    std::map<std::string, int> used;
    std::map<uint32_t, uint32_t> of_thread;
    const auto name_lane = [&](uint16_t id, const LaneRow& lane) {
      std::string name = lane.name;
      if (lane.device_kind == 0 || lane.device_kind == kLaunchLane) {  // in "python 4711" the number is not a rank's
        const size_t digits = name.find_last_not_of("0123456789");
        if (digits != std::string::npos && digits + 1 < name.size() && name[digits] == ' ' && digits > 0)
          name.resize(digits);
      }
      if (name.empty()) name = "lane";
      domain_of_[id] = name;
      const int count = ++used[name];
      if (count > 1) name += " (" + std::to_string(count) + ")";
      return places[id] = lane_place(name);
    };
    for (const auto& [id, lane] : recording.content.lanes) {
      if (lane.device_kind == kLaunchLane) continue;
      const uint32_t place = name_lane(id, lane);
      if (lane.device_kind == 0) of_thread.try_emplace(lane.thread, place);
    }
    for (const auto& [id, lane] : recording.content.lanes) {
      if (lane.device_kind != kLaunchLane) continue;
      const auto thread = of_thread.find(lane.thread);
      if (thread == of_thread.end()) name_lane(id, lane);
      else places[id] = thread->second;
    }
    return places;
  }

  uint32_t lane_place(const std::string& name) {
    const auto [at, is_new] = lane_index_.try_emplace(name, static_cast<uint32_t>(lane_names_.size()));
    if (is_new) lane_names_.push_back(name);
    return at->second;
  }

  StringId name_id(Reading& from, const Row& row, const char* suffix = "") {
    const uint32_t key = uint32_t{row.name} << 8 | row.kind;
    const auto known = from.name_of.find(key);
    if (*suffix == '\0' && known != from.name_of.end()) return known->second;
    const StringId id = trace_.names.intern(name_of_row(from.recording.content, row) + suffix);
    if (*suffix == '\0') from.name_of[key] = id;
    return id;
  }

  static std::string name_of_row(const Content& content, const Row& row) {
    const auto text = content.names.find(row.name);
    if (row.name != 0 && text != content.names.end()) return row.kind == 0 ? short_name(text->second) : text->second;
    if (row.kind == kLoadKind) return "load";
    if (row.kind != 0 && row.kind < std::size(kKinds)) return std::string(kind_name(kKinds[row.kind]));
    return row.name != 0 ? "(name lost)" : "(no name)";
  }

  // From a text in braces (mstx, some NVTX) returns the name that it contains.
  static std::string short_name(const std::string& text) {
    if (!text.starts_with('{')) return text;
    std::string parsed_name = parse_range_message(text).name;
    return parsed_name.empty() ? text : parsed_name;
  }

  uint32_t lane_for(const Reading& from, const Row& row) {
    const auto at = from.lane_of.find(row.lane);
    const uint32_t place = at == from.lane_of.end() ? lane_place("other threads") : at->second;
    // Host times on a device's lane would be taken for the device's, so they get a lane of their own.
    const LaneRow* lane = from.lane(row);
    if (row.host_instead && lane && lane->device_kind != 0 && lane->device_kind != kLaunchLane)
      return lane_place(lane_names_[place] + " (host times)");
    return place;
  }

  Op op_of(const Reading& from, const Row& row, int64_t start_ns, int64_t end_ns, uint32_t index) {
    Op op;
    op.start_ns = start_ns;
    op.end_ns = end_ns;
    op.lane = lane_for(from, row);
    op.rank = from.rank;
    op.stage = row.stage >= 0 ? row.stage : from.recording.meta.stage;
    op.dp = from.recording.meta.dp_rank;
    op.step = row.step;
    op.kind = row.kind < std::size(kKinds) ? kKinds[row.kind] : CellKind::kOther;
    op.is_cell = op.kind != CellKind::kOther || row.kind == kLoadKind;  // a wait for data fills the time between steps
    op.chunk = row.chunk >= 0 ? std::min<int32_t>(row.chunk, kMaxChunkNumber - 1) : is_compute(op.kind) ? 0 : kUnknown;
    op.micro_batch = row.micro_batch < kMaxMicroBatchNumber ? row.micro_batch : kUnknown;
    op.file = from.file;
    op.file_index = index;
    return op;
  }

  // Returns when a row starts and ends on the host's clock; nullopt where no reading says it.
  static std::optional<Interval> times_of(const Reading& from, const Row& row) {
    Interval times;
    if (row.device_times) {
      const LaneRow* lane = from.lane(row);
      const uint8_t clock = lane ? lane->clock : 0;
      if (!from.clocks.knows_device(clock)) return std::nullopt;
      times = {from.clocks.device_ns(clock, row.start), from.clocks.device_ns(clock, row.end)};
    } else {
      times.start = from.clocks.host_ns(row.start);
      times.end = row.type == RecordType::kRange ? from.clocks.host_ns(row.end) : times.start;
    }
    return sane_interval(times.start, times.end) ? std::optional(times) : std::nullopt;
  }

  void take(Reading& from, const Row& row, uint32_t index) {
    const std::optional<Interval> times = times_of(from, row);
    if (!times) return lose(from);
    from.last_ns = std::max(from.last_ns, times->end);
    switch (row.type) {
      case RecordType::kRange: return take_range(from, row, *times, index);
      case RecordType::kStep: return take_step(from, row, times->start, index);
      case RecordType::kInstant:
        return marks_[from.rank].push_back({{times->start, name_id(from, row), 0, index}, lane_for(from, row)});
      case RecordType::kCounter: {
        double value;
        std::memcpy(&value, &row.end, sizeof value);
        counters_[from.rank][std::string(trace_.names.text(name_id(from, row)))].emplace_back(times->start, value);
        return;
      }
      default: return;
    }
  }

  void take_range(Reading& from, const Row& row, const Interval& times, uint32_t index) {
    const StringId name = name_id(from, row);
    Op op = op_of(from, row, times.start, times.end, index);
    op.name_id = name;
    const LaneRow* lane = from.lane(row);
    const auto text = from.recording.content.names.find(row.name);
    const auto domain = domain_of_.find(row.lane);
    facts_.add(op, row, lane,
               text == from.recording.content.names.end() ? std::string_view() : std::string_view(text->second),
               domain == domain_of_.end() ? std::string_view() : std::string_view(domain->second));
    kernels_.add(op, row, lane);
    ops.push_back(op);
  }

  void take_step(const Reading& from, const Row& row, int64_t start_ns, uint32_t index) {
    if (row.end < 0 || row.end > kMaxStepNumber) return;
    Op op = op_of(from, row, start_ns, start_ns, index);
    op.step = static_cast<int32_t>(row.end);
    op.is_cell = false;
    kernels_.add_step(op);
  }

  void take_open(Reading& from, const Row& row, uint32_t index) {
    const int64_t start = from.clocks.host_ns(row.start);
    if (!sane_interval(start, start)) return lose(from);
    const StringId name = name_id(from, row, " (unfinished)");
    Op op = op_of(from, row, start, std::max(start, from.last_ns), index);
    op.name_id = name;
    op.is_cell = false;
    ops.push_back(op);
  }

  void lose(const Reading& from) { trace_.diagnostics.add(problem::recording_bad_time, {paths_[from.file]}); }

  Part* part_of(int32_t rank) { return first_with(trace_.parts, rank, &Part::rank); }

  Trace& trace_;
  FactMaker facts_;
  KernelMaker kernels_;
  uint32_t index_ = 0;                         // counts ranges over all recordings
  std::map<uint16_t, std::string> domain_of_;  // lane of the present recording → its name
  std::vector<std::string> paths_, lane_names_;
  std::map<std::string, uint32_t> lane_index_;
  std::map<int32_t, std::vector<std::pair<Mark, uint32_t>>> marks_;
  std::map<int32_t, std::map<std::string, std::vector<std::pair<int64_t, double>>>> counters_;
};

// If there are several recordings of one rank, keeps those of the newest one's job; the others are separate runs.
void keep_one_run(std::vector<Recording>& recordings, Diagnostics& diagnostics) {
  std::vector<Recording> kept;
  for (size_t i = 0; i < recordings.size();) {
    size_t end = i + 1;
    while (end < recordings.size() && recordings[end].meta.rank == recordings[i].meta.rank &&
           recordings[i].meta.rank >= 0)
      ++end;
    const std::string job = recordings[end - 1].meta.job;
    for (size_t k = i; k < end; ++k)
      if (k + 1 == end || (!job.empty() && recordings[k].meta.job == job)) kept.push_back(std::move(recordings[k]));
      else
        diagnostics.add(problem::recording_other_run,
                        {recordings[k].paths.empty() ? recordings[k].hot_path : recordings[k].paths[0]});
    i = end;
  }
  recordings = std::move(kept);
}

// Hosts and devices of ranks, as their recordings name them.
struct Machines {
  std::map<int32_t, std::string> hosts, uuids;
  std::map<int32_t, int32_t> devices;  // by the rank's first device lane

  void add(const Recording& recording, int32_t rank) {
    hosts[rank] = recording.meta.host;
    if (!recording.meta.devices.empty()) uuids[rank] = recording.meta.devices;
    for (const auto& [id, lane] : recording.content.lanes)
      if (lane.device_kind != 0 && lane.device_kind != kCommunicatorLane && lane.device_kind != kLaunchLane &&
          lane.device >= 0)
        devices.try_emplace(rank, lane.device);
  }
  void describe(Part& part) const {
    if (const auto host = hosts.find(part.rank); host != hosts.end()) part.machine_name = host->second;
    if (const auto device = devices.find(part.rank); device != devices.end()) part.device = device->second;
    if (const auto uuid = uuids.find(part.rank); uuid != uuids.end()) {
      part.metadata.push_back({"device_uuid", ""});
      append_json_string(part.metadata.back().json, uuid->second);
    }
  }
};

}  // namespace

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  size_t looked = 0;
  for (size_t i = 0; i < source.files.size() && looked < kSniffedFiles; ++i) {
    const std::string& path = source.files[i].path;
    const bool named = path.find(".slrec") != std::string::npos || path.ends_with(".slhot");
    if (!named && !source.files[i].given) continue;
    ++looked;
    const std::string_view head = source.head(i);
    if (head.starts_with(kFileMagic) || is_hot_file(head)) return Match::kCertain;
    if (named && is_cold(head)) return Match::kCertain;
  }
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "recording";
  trace.clock = ClockState::kUnaligned;
  if (options.progress)
    for (const SourceFile& file : source.files)
      if (file.path.find(".slrec") != std::string::npos) options.progress->expect(file.size_bytes);
  std::vector<Recording> recordings =
      read_recordings(source, options.progress, trace.diagnostics, options.newest_bytes);
  keep_one_run(recordings, trace.diagnostics);
  std::set<int32_t> ranks = mapped<std::set>(recordings, [&](const Recording& r) { return r.meta.rank; });
  int32_t next_rank = 0;
  Maker maker(trace);
  Machines machines;
  size_t rows = 0;
  for (Recording& r : recordings) {
    int32_t rank = r.meta.rank;
    if (rank < 0) {
      while (ranks.contains(next_rank)) ++next_rank;
      rank = next_rank++;
      trace.diagnostics.add(problem::recording_rank_unknown, {r.paths.empty() ? r.hot_path : r.paths[0]});
    }
    machines.add(r, rank);
    rows += r.content.rows.size();
    maker.add(r, rank);
  }
  if (maker.ops.empty()) return no_such_input(rows > 0 ? "recording.only_marks" : "recording.empty", source);
  if (maker.ops.size() > kMaxOps)
    return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxOps) + " ranges", "read fewer ranks at once",
                      {source.roots[0]});
  resolve_ranks(maker.ops, "recording", trace.diagnostics);
  settle_steps(maker.ops, "recording", "range", trace);
  const size_t range_count = maker.ops.size();
  maker.append_steps();
  build_parts(maker.ops, maker.lanes(), maker.paths(), trace);
  for (Part& part : trace.parts) machines.describe(part);
  const auto of_world =
      std::ranges::find_if(recordings, [](const Recording& recording) { return recording.meta.world > 0; });
  if (of_world != recordings.end() && !trace.parts.empty())
    trace.parts[0].metadata.push_back({"world_size", std::to_string(of_world->meta.world)});
  number_machines(trace);
  maker.fill_facts();
  maker.add_series();
  trace.description = std::to_string(trace.parts.size()) + (trace.parts.size() == 1 ? " rank, " : " ranks, ") +
                      std::to_string(range_count) + " ranges";
  return trace;
}

}  // namespace stageline::recording
