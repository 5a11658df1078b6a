// Trace: what was recorded, one Part per rank, columns of slices, and the Cells read from them.
//
//   Trace ── names        every text once
//         ├─ parts[]      one per rank: identity, lanes, slices (start, duration, name, file index, …)
//         │               and the sparse facts of profiler traces (model/slice_facts.h)
//         ├─ cells        step, part, kind, chunk, micro-batch, start, end → source slice
//         ├─ links[]      cell → cell arrows (filled by the pipeline layer, read by exporters)
//         └─ diagnostics  what was flawed, with places
//
// A lane is a range of its part's slices; within a lane slices are ordered by start, then longer
// first, then file order.
#pragma once

#include "base/diagnostics.h"
#include "model/allocator.h"
#include "model/cells.h"
#include "model/clock_map.h"
#include "model/flight.h"
#include "model/slice_facts.h"

namespace stageline {

// Columns of 24 B a slice that every trace has, and 23 B more that Chrome-trace JSON fills
// (all or none of them): 47 B in all, kBytesPerSlice.
struct Slices {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> dur_ns;
  std::vector<StringId> name_id;
  std::vector<uint32_t> file_index;  // position in the source's own order

  std::vector<uint32_t> parent;  // the enclosing slice of the thread; for device work, the operator that owns it
  // CUPTI's number, which a launch and its device work share; kNoCorrelation when there is none.
  std::vector<uint32_t> correlation;
  // For device work its launch; for a launch the last work it launched; else kNoSliceIndex.
  std::vector<uint32_t> partner;
  // Holds the low 32 bits of the position of the event's text in Part::files, decompressed.
  std::vector<uint32_t> args_offset_low;
  std::vector<uint8_t> args_offset_high;  // and the 8 bits above
  std::vector<uint16_t> stream_id;        // index into Part::streams; 0 when the event names no stream
  std::vector<uint16_t> step;             // index + 1 into Part::steps; 0 outside every step
  std::vector<uint8_t> category_id;       // index into Trace::categories
  std::vector<uint8_t> kernel_class;      // a KernelClass in the low bits, and kJoinedBit

  static constexpr uint8_t kJoinedBit = 0x80;  // the slice was made of two events: B and E, or b and e

  size_t size() const { return start_ns.size(); }
  bool has_facts() const { return !category_id.empty() || start_ns.empty(); }
  int64_t end_ns(size_t i) const { return start_ns[i] + dur_ns[i]; }
  KernelClass class_of(size_t i) const { return static_cast<KernelClass>(kernel_class[i] & 0x7f); }
  bool is_joined(size_t i) const { return (kernel_class[i] & kJoinedBit) != 0; }
  int64_t args_offset(size_t i) const { return static_cast<int64_t>(args_offset_high[i]) << 32 | args_offset_low[i]; }
};
inline constexpr size_t kBytesPerSlice = 47;

enum class LaneKind : uint8_t { kOther, kHostThread, kDeviceStream };

struct Lane {
  std::string name;           // "compute stream", "pp-comm", …
  size_t begin = 0, end = 0;  // slices [begin, end) of the part
  LaneKind kind = LaneKind::kOther;
  std::string pid, tid;  // Chrome JSON: as the events say, "" for other sources
};

struct SourceRef {  // one file of a part; files are kept in the order of reading
  std::string path;
  int64_t first_offset = 0;  // position of its first byte, counting the decompressed bytes of all files of the part
  uint32_t first_index = 0;  // Slices::file_index of its first event
  int64_t size_bytes = 0;    // its size when it was read; a file that has changed since is refused
  int64_t modified_ns = 0;
};

struct ProfilerStep {  // ProfilerStep#N of the host
  int64_t number = 0;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = kNoSliceIndex;
};

enum class SliceLinkKind : uint8_t { kForwardBackward, kFlow };
struct SliceLink {  // a flow arrow that no column expresses
  uint32_t from = 0, to = 0;
  SliceLinkKind kind = SliceLinkKind::kFlow;
};

struct CounterSeries {
  std::string name;  // "GPU 0 Counters / sm__active"
  std::vector<int64_t> time_ns;
  std::vector<double> value;
};

struct Mark {  // an event without duration
  int64_t time_ns = 0;
  StringId name = 0;
  uint32_t lane = 0;
  uint32_t file_index = 0;
};

struct MetaField {  // a top-level member of the JSON, or a row of META_DATA in an Ascend database, as written
  std::string key, json;
};

// One step of one rank as its own profiler summed it up (Ascend's analysis.db or step_trace_time.csv); −1 where it does
// not say.
struct StepSummary {
  int64_t step = -1;  // −1 when the profile has no steps
  int64_t computing_ns = -1, communication_ns = -1, overlapped_ns = -1, communication_not_overlapped_ns = -1;
  int64_t free_ns = -1, stage_ns = -1, bubble_ns = -1, not_overlapped_without_receive_ns = -1, preparing_ns = -1;
};

// One communication operation on one link as the profiler summed it up (CommAnalyzerMatrix, communication_matrix.json).
struct LinkSummary {
  int64_t step = -1;
  std::string op, group, type, transport;  // "hcom_allReduce__377_4_1", …, "collective" or "p2p", "HCCS"
  int32_t src_rank = -1, dst_rank = -1;    // global ranks
  double bytes = 0;
  int64_t transit_ns = 0;
};

// One step of one host as XProf's step graph splits it (XPlane only): what the step's time was spent on, in
// picoseconds.
struct XlaStep {
  int64_t number = -1;
  std::string name;  // "train 0"
  int64_t step_ps = 0;
  int64_t device_compute_ps = 0, device_to_device_ps = 0, collectives_ps = 0, host_compute_ps = 0, host_prepare_ps = 0,
          input_ps = 0, output_ps = 0, compile_ps = 0, other_ps = 0;
};

// A request as the server that answered it measured it; −1 for what it did not measure.
struct ServedRequest {
  std::string id;
  int64_t start_ns = 0, end_ns = 0;  // arrival to last token
  int64_t queue_ns = -1, prefill_ns = -1, decode_ns = -1;
  int64_t first_token_ns = -1;  // from the arrival
  int64_t prompt_tokens = -1, cached_tokens = -1, completion_tokens = -1;
};

// What one layer's router sent from this rank to each expert in a step.
struct RouterLoad {
  std::string block;  // "decoder", "mtp"
  int64_t layer = 0, step = 0;
  int64_t tokens = 0, top_k = 0;
  std::vector<int64_t> rows;  // of each expert
};

struct Part : SliceFacts {
  int32_t rank = 0;            // global rank
  int32_t machine = kUnknown;  // index of the machine in natural order of the machines' names
  int32_t device = kUnknown;   // index within the machine
  int32_t stage = kUnknown;    // pipeline stage
  int32_t dp = kUnknown;       // data-parallel index
  bool rank_given = false;     // the rank is the user's (ReadOptions::file_ranks), whatever the file says
  std::string machine_name;    // folder or host name, may be empty
  std::string source;          // the file it was read from
  ClockMap clock_map;          // filled when the clocks of the run have been aligned
  std::vector<Lane> lanes;
  Slices slices;

  // The following are filled for profiler traces only; sparse facts are ordered by slice.
  std::vector<SourceRef> files;
  std::vector<int64_t> streams = {-1};  // indexed by stream_id: the number that the events gave
  std::vector<ProfilerStep> steps;      // ordered by start
  std::vector<PythonFact> python_parents;
  std::vector<ModuleFact> modules;
  std::vector<OwnerFact> launch_owners;
  std::vector<GraphNodeFact> graph_nodes;
  std::vector<MemoryRecord> memory;
  std::vector<SliceLink> slice_links;
  std::vector<CounterSeries> counters;
  std::vector<Mark> marks;
  std::vector<MetaField> metadata;
  std::vector<StepSummary> step_summaries;
  std::vector<LinkSummary> link_summaries;
  std::vector<XlaStep> xla_steps;        // for the whole host; kept with the first of its ranks
  std::vector<ServedRequest> requests;   // in the order of their arrival
  AllocatorSnapshot allocator;           // filled from memory snapshots only
  std::vector<RouterLoad> router_loads;  // filled from traces of routers only, ordered by (block, layer, step)
  std::vector<FlightCall> flight_calls;  // filled from flight recorders only, which have no other facts
  // For ranks that are read one by one: what RankReading::settle needs and no column holds.
  std::vector<int64_t> reader_numbers;
  int64_t base_time_ns = 0;  // baseTimeNanoseconds: times in the file count from here, start_ns counts from the epoch
  int64_t event_count = 0;   // entries of traceEvents, of every kind
  bool fractional_time = false;  // some event has a fractional ts or none; HTA then rounds every event
  // When several recordings of one rank were joined (a repeating profiler schedule writes one file per cycle): the
  // start of each except the first, in order. The time between the previous event and such a start was not recorded.
  std::vector<int64_t> later_recordings_ns;

  // Returns true when a recording ended and another started within (from_ns, to_ns]: that time is not idle time.
  bool recorded_anew(int64_t from_ns, int64_t to_ns) const {
    const auto next = std::upper_bound(later_recordings_ns.begin(), later_recordings_ns.end(), from_ns);
    return next != later_recordings_ns.end() && *next <= to_ns;
  }

  // Appends a lane from columns in any order and puts it in order. Returns for each given row its new slice index
  // within the part.
  std::vector<uint32_t> add_lane(std::string name, const Slices& rows);
};

// One cell waits for another: "F3 of stage 0 → F3 of stage 1".
struct Link {
  uint32_t from_cell, to_cell;
};

enum class ClockState : uint8_t {
  kShared,         // all parts are stamped by one clock
  kUnaligned,      // there are several clocks, and their timestamps are trusted as they are
  kPerRank,        // every rank counts from its own zero, so ranks cannot be compared
  kPartlyAligned,  // as kAligned, but nothing connects some of the ranks to the others
  kAligned,        // the columns hold times of one clock (AlignState::kDrawn)
};

std::string_view clock_name(ClockState clock);  // "shared", "unaligned", "per-rank", "partly-aligned", "aligned"

enum class AlignState : uint8_t {
  kRaw,     // timestamps as recorded, and no maps
  kMapped,  // timestamps as recorded, and Part::clock_map turns them into common time
  kDrawn,   // the columns hold common time: a copy made for drawing (DrawnRun), never the recording itself
};

struct CategoryInfo {
  std::string text;  // spelled as in the source; "" for events without one
  Category kind = Category::kOther;
};
inline constexpr size_t kMaxCategories = 255;  // categories beyond this number share one entry, "(more categories)"

// The slices that analyses read. Readers always fill whole parts.
struct SliceFilter {
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;  // ProfilerStep numbers
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;         // counted from the first slice of the run
  std::vector<int32_t> ranks;                             // sorted; when empty, all ranks
  // Returns true where times or steps are restricted; ranks choose parts, not slices.
  bool any() const {
    return first_step != INT64_MIN || last_step != INT64_MAX || from_ns != INT64_MIN || to_ns != INT64_MAX;
  }
};

// The family of the devices, where it decides what names and numbers mean.
enum class DeviceFamily : uint8_t {
  kUnstated,  // GPUs, and whatever else fits Kineto's categories
  kNpu,       // Ascend, with HCCL's names, its levels of recording, and cube and vector cores
};

struct Trace {
  Trace() = default;
  // libstdc++'s deque allocates when moved from, so these may throw.
  Trace(Trace&&) = default;             // NOLINT(performance-noexcept-move-constructor)
  Trace& operator=(Trace&&) = default;  // NOLINT(performance-noexcept-move-constructor)
  Trace& operator=(const Trace&) = delete;
  ~Trace() = default;
  // Returns a copy under the same ids. It takes as much memory again, so a copy is made only by this name.
  Trace copy() const { return *this; }

  std::string format;       // name of the reader
  std::string writer;       // the program that wrote it, when that is neither torch nor a framework with pipelines
  std::string description;  // for people: "2 machines × 4 workerlogs"
  StringPool names;
  std::vector<CategoryInfo> categories;
  std::vector<Part> parts;  // ordered by rank
  std::vector<FlightGroup> flight_groups;
  SliceFilter slice_filter;
  Cells cells;
  std::vector<Link> links;
  Diagnostics diagnostics;
  ClockState clock = ClockState::kUnaligned;
  AlignState alignment = AlignState::kRaw;
  std::vector<int32_t> lossy_steps;    // ascending: steps of which rows could not be used
  bool steps_laid_end_to_end = false;  // the source restarts its time at every step
  // Chunk numbers distinguish the pieces of one forward or backward (Paddle's overlap mode cuts them into slices); they
  // are not virtual stages.
  bool chunks_are_pieces = false;
  // Cells of messages are calls of the host, which may return before the message is complete (isend, irecv). They
  // record the sender and the receiver, but not the time of arrival.
  bool messages_are_calls = false;
  // Sequence numbers of sends and receives count on each rank by itself, so number 3 on two ranks is not one message.
  bool numbers_messages_per_rank = false;
  DeviceFamily device_family = DeviceFamily::kUnstated;
  // This number of neighbouring pipelines (Part::dp) work on parts of the same micro-batches; the others are replicas.
  int32_t context_parallel = 1;
  // Stages of the whole run, whatever ranks were filtered out; 0 when the places of ranks are guesses.
  int32_t pipeline_stages = 0;
  // Pipelines side by side in the whole run where ranks were filtered out; 0: none were.
  int32_t pipelines = 0;

  size_t slice_count() const;
  int32_t machine_count() const;
  std::string_view slice_name(const Cell& cell) const;  // "" for a cell without source slice

  // Returns a timestamp of a part as common time, which all parts share; unmapped clocks are taken as they are.
  int64_t common_ns(int32_t part, int64_t stamp_ns) const {
    return alignment == AlignState::kMapped ? parts[part].clock_map.common_ns(stamp_ns) : stamp_ns;
  }
  // Returns true where times of different ranks can be compared.
  bool comparable() const { return clock != ClockState::kPerRank || alignment != AlignState::kRaw; }
  // A cell, its start and its end in common time; where clocks are not mapped these are the recorded ones.
  int64_t common_start_ns(size_t cell) const { return common_ns(cells.part[cell], cells.start_ns[cell]); }
  int64_t common_end_ns(size_t cell) const { return common_ns(cells.part[cell], cells.end_ns[cell]); }
  Cell common_cell(size_t cell) const;
  Cells common_cells() const;  // all cells in the same order; the copy takes 37 B a cell
  // Returns the bound of the worst measured offset; −1 when some have no bound or nothing was measured.
  int64_t alignment_half_ns() const;

 private:
  Trace(const Trace&) = default;
};

// Holds the result of aligning the clocks; each output words it differently.
struct ClockSummary {
  // The kinds of evidence for the clocks, the best first; empty when nothing was aligned.
  std::vector<ClockEvidence> by;
  // Ranks that nothing connects to the clock that most ranks share; empty where no ranks share one.
  std::vector<int32_t> untied;
  int64_t half_ns = -1;  // bound of the worst offset; −1 when some have none
  double error_ns = -1;  // likely error of that offset; −1 when unknown
};
ClockSummary clock_summary(const Trace& trace);
// Returns the list in words: "messages", "compute gaps and collectives".
Text evidence_list(const std::vector<ClockEvidence>& evidence);

// Sizes of the whole trace, computed from its cells. Cells whose number is kUnknown do not count.
struct Extent {
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of all cells; 0 and 0 without cells
  int32_t stage_count = 0, dp_count = 0, step_count = 0;
  int32_t chunk_count = 0, micro_batch_count = 0;  // highest value + 1
};
Extent extent_of(const Trace& trace);

// Returns what people call a cell: "F3", "B1", and with several chunks "F3.c1".
std::string cell_label(const Cell& cell, bool with_chunk);

// Gives a trace of the same run what another says of the run as a whole.
void take_facts(Trace& trace, const Trace& one);
// Keeps only the given ranks and steps; empty lists keep everything. Parts without cells stay unless `ranks` excludes
// them. Links are dropped, since they are made after filtering.
void filter_trace(Trace& trace, const std::vector<int32_t>& ranks, int64_t first_step, int64_t last_step);

}  // namespace stageline
