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

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/string_pool.h"
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

  std::vector<uint32_t> parent;           // enclosing slice of the thread; of device work the owning operator
  std::vector<uint32_t> correlation;      // CUPTI's number; kNoCorrelation
  std::vector<uint32_t> partner;          // device work: its launch; a launch: its last device work; kNoSliceIndex
  std::vector<uint32_t> args_offset_low;  // decompressed position of the event in Part::files, low 32 bits
  std::vector<uint8_t> args_offset_high;  // and the 8 above
  std::vector<uint16_t> stream_id;        // into Part::streams; 0: the event names no stream
  std::vector<uint16_t> step;             // into Part::steps, 1-based; 0: outside every step
  std::vector<uint8_t> category_id;       // into Trace::categories
  std::vector<uint8_t> kernel_class;      // a KernelClass, and kJoinedBit

  static constexpr uint8_t kJoinedBit = 0x80;  // made of a B and an E (or b and e) event

  size_t size() const { return start_ns.size(); }
  bool has_facts() const { return !category_id.empty() || start_ns.empty(); }
  int64_t end_ns(size_t i) const { return start_ns[i] + dur_ns[i]; }
  KernelClass class_of(size_t i) const { return static_cast<KernelClass>(kernel_class[i] & 0x7f); }
  bool is_joined(size_t i) const { return (kernel_class[i] & kJoinedBit) != 0; }
  int64_t args_offset(size_t i) const {
    return static_cast<int64_t>(args_offset_high[i]) << 32 | static_cast<int64_t>(args_offset_low[i]);
  }
};
inline constexpr size_t kBytesPerSlice = 47;

enum class LaneKind : uint8_t { kOther, kHostThread, kDeviceStream };

struct Lane {
  std::string name;           // "compute stream", "pp-comm", …
  size_t begin = 0, end = 0;  // slices [begin, end) of the part
  LaneKind kind = LaneKind::kOther;
  std::string
      pid = {},
      tid = {};  // NOLINT(readability-redundant-member-init): Chrome JSON: as the events say, "" for other sources
};

struct SourceRef {  // one file of a part, in the order of reading
  std::string path;
  int64_t first_offset = 0;  // position of its first byte on the part's axis of decompressed bytes
  uint32_t first_index = 0;  // file_index of its first event
  int64_t size_bytes = 0;    // as it was when read: a file that changed since is refused
  int64_t modified_ns = 0;
};

struct ProfilerStep {  // ProfilerStep#N of the host
  int64_t number = 0;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = kNoSliceIndex;
};

enum class SliceLinkKind : uint8_t { kForwardBackward, kFlow };
struct SliceLink {  // flow arrows that no column says already
  uint32_t from = 0, to = 0;
  SliceLinkKind kind = SliceLinkKind::kFlow;
};

struct CounterSeries {
  std::string name;  // "GPU 0 Counters / sm__active"
  std::vector<int64_t> time_ns;
  std::vector<double> value;
};

struct Mark {  // an instant
  int64_t time_ns = 0;
  StringId name = 0;
  uint32_t lane = 0;
  uint32_t file_index = 0;
};

struct MetaField {  // a top-level member of the JSON, or a row of an Ascend database's META_DATA, as written
  std::string key, json;
};

// One step of one rank as its own profiler summed it up (Ascend's analysis.db or step_trace_time.csv); −1: not said.
struct StepSummary {
  int64_t step = -1;  // −1: the profile has no steps
  int64_t computing_ns = -1, communication_ns = -1, overlapped_ns = -1, communication_not_overlapped_ns = -1;
  int64_t free_ns = -1, stage_ns = -1, bubble_ns = -1, not_overlapped_without_receive_ns = -1, preparing_ns = -1;
};

// One communication operation on one link as the profiler summed it up (CommAnalyzerMatrix, communication_matrix.json).
struct LinkSummary {
  int64_t step = -1;
  std::string op, group, type, transport;  // "hcom_allReduce__377_4_1", …, "collective" or "p2p", "HCCS"
  int32_t src_rank = -1, dst_rank = -1;    // global
  double bytes = 0;
  int64_t transit_ns = 0;
};

// One step of one host as XProf's step graph splits it (XPlane alone): what its instants were spent on, in picoseconds.
struct XlaStep {
  int64_t number = -1;
  std::string name;  // "train 0"
  int64_t step_ps = 0;
  int64_t device_compute_ps = 0, device_to_device_ps = 0, collectives_ps = 0, host_compute_ps = 0, host_prepare_ps = 0,
          input_ps = 0, output_ps = 0, compile_ps = 0, other_ps = 0;
};

struct Part {
  int32_t rank = 0;            // global rank
  int32_t machine = kUnknown;  // index of the machine in natural order of the machines' names
  int32_t device = kUnknown;   // index within the machine
  int32_t stage = kUnknown;    // pipeline stage
  int32_t dp = kUnknown;       // data-parallel index
  std::string machine_name;    // folder or host name, may be empty
  std::string source;          // the file it was read from
  ClockMap clock_map;          // of a trace whose clocks were aligned
  std::vector<Lane> lanes;
  Slices slices;

  // Profiler traces only; sparse facts are ordered by slice.
  std::vector<SourceRef> files;
  std::vector<int64_t> streams = {-1};  // stream_id → what the event said
  std::vector<ProfilerStep> steps;      // by start
  std::vector<CopyFact> copies;
  std::vector<SyncFact> syncs;
  std::vector<CollectiveFact> collectives;
  std::vector<OperatorFact> operators;
  std::vector<PythonFact> python_parents;
  std::vector<InputFact> inputs;
  std::vector<KernelFact> kernels;
  std::vector<StackFact> stacks;
  std::vector<ModuleFact> modules;
  std::vector<OwnerFact> launch_owners;
  std::vector<RangeFact> ranges;
  std::vector<TransferFact> transfers;
  std::vector<TaskFact> tasks;
  std::vector<GraphNodeFact> graph_nodes;
  std::vector<MemoryRecord> memory;
  std::vector<SliceLink> slice_links;
  std::vector<CounterSeries> counters;
  std::vector<Mark> marks;
  std::vector<MetaField> metadata;
  std::vector<StepSummary> step_summaries;
  std::vector<LinkSummary> link_summaries;
  std::vector<XlaStep> xla_steps;        // of the host, at the first of its ranks
  AllocatorSnapshot allocator;           // of snapshots alone
  std::vector<FlightCall> flight_calls;  // of flight recorders alone, which have no other facts
  std::vector<int64_t> reader_numbers;   // of a rank read apart: what RankReading::settle needs and no column says
  int64_t base_time_ns = 0;              // baseTimeNanoseconds: start_ns counts from the epoch, the file from here
  int64_t event_count = 0;               // entries of traceEvents, of every kind
  bool fractional_time = false;          // some event has a fractional or no ts (HTA then rounds every event)

  // Appends a lane from unordered columns and puts it in order. Returns the permutation:
  // new slice index (within the part) of each given row.
  std::vector<uint32_t> add_lane(std::string name, const Slices& rows);
};

// Which cell has to wait for which: "F3 of stage 0 → F3 of stage 1".
struct Link {
  uint32_t from_cell, to_cell;
};

enum class ClockState : uint8_t {
  kShared,         // all parts are stamped by one clock
  kUnaligned,      // several clocks, trusted as they are
  kPerRank,        // every rank counts from its own zero: ranks cannot be compared
  kPartlyAligned,  // as kAligned, but nothing ties some ranks to the others
  kAligned,        // the columns hold times of one clock: AlignState::kDrawn
};

std::string_view clock_name(ClockState clock);  // "shared", "unaligned", "per-rank", "partly-aligned", "aligned"

enum class AlignState : uint8_t {
  kRaw,     // stamps as recorded, no maps
  kMapped,  // stamps as recorded, and Part::clock_map leads to common time
  kDrawn,   // the columns hold common time: a copy that is drawn (DrawnRun), never what was recorded
};

struct CategoryInfo {
  std::string text;  // as the source spells it; "" for events without one
  Category kind = Category::kOther;
};
inline constexpr size_t kMaxCategories = 255;  // ids above are shared by "(more categories)"

// Which slices analyses look at; readers fill whole parts, whatever was asked.
struct SliceFilter {
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;  // ProfilerStep numbers
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;         // from the first slice of the run
  std::vector<int32_t> ranks;                             // sorted; empty: all
  // Times and steps; ranks choose parts, not slices.
  bool any() const {
    return first_step != INT64_MIN || last_step != INT64_MAX || from_ns != INT64_MIN || to_ns != INT64_MAX;
  }
};

// Whose devices these are, where that decides what their names and numbers mean.
enum class DeviceFamily : uint8_t {
  kUnsaid,  // GPUs and whatever else Kineto's categories fit
  kNpu,     // Ascend: HCCL's names, levels of recording, cube and vector cores
};

struct Trace {
  Trace() = default;
  // libstdc++'s deque allocates when moved from, so these may throw.
  Trace(Trace&&) = default;             // NOLINT(performance-noexcept-move-constructor)
  Trace& operator=(Trace&&) = default;  // NOLINT(performance-noexcept-move-constructor)
  Trace& operator=(const Trace&) = delete;
  ~Trace() = default;
  // Everything once more, under the same ids: as much memory again, so it is asked for by name.
  Trace copy() const { return *this; }

  std::string format;       // name of the reader
  std::string writer;       // the program that wrote it, where that is neither torch nor a framework of pipelines
  std::string description;  // "2 machines × 4 workerlogs", for people
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
  bool steps_laid_end_to_end = false;  // the source restarts its time at every step
  // Chunk numbers tell pieces of one forward or backward apart (Paddle's overlap mode cuts them into
  // slices), not virtual stages.
  bool chunks_are_pieces = false;
  // Cells of messages are calls of the host, which may return before the message is through (isend, irecv): they say
  // who sends what, not when it arrived.
  bool messages_are_calls = false;
  // Sequence numbers of sends and receives count on each rank apart: the third receive of two ranks are two messages.
  bool numbers_messages_per_rank = false;
  DeviceFamily device_family = DeviceFamily::kUnsaid;
  // Of the pipelines side by side (Part::dp) as many work on parts of the same micro-batches; the rest are replicas.
  int32_t context_parallel = 1;
  int32_t pipeline_stages = 0;  // of the whole run, whatever ranks were filtered out; 0: places are guesses

  size_t slice_count() const;
  int32_t machine_count() const;
  std::string_view slice_name(const Cell& cell) const;  // "" for a cell without source slice

  // A stamp of a part as a time that all parts share, as far as anybody knows.
  int64_t common_ns(int32_t part, int64_t stamp_ns) const {
    return alignment == AlignState::kMapped ? parts[static_cast<size_t>(part)].clock_map.common_ns(stamp_ns) : stamp_ns;
  }
  // Times of different ranks mean something beside each other.
  bool comparable() const { return clock != ClockState::kPerRank || alignment != AlignState::kRaw; }
  // A cell, and its start and end, by times that all parts share; of a trace whose clocks are not mapped its own.
  int64_t common_start_ns(size_t cell) const { return common_ns(cells.part[cell], cells.start_ns[cell]); }
  int64_t common_end_ns(size_t cell) const { return common_ns(cells.part[cell], cells.end_ns[cell]); }
  Cell common_cell(size_t cell) const;
  Cells common_cells() const;  // all, in the same order: a copy of 37 B a cell
  // How far the clocks that were measured may be off; −1: unknown, or none was.
  int64_t alignment_half_ns() const;

 private:
  Trace(const Trace&) = default;
};

// What alignment came to, for outputs to say in their own words.
struct ClockSummary {
  std::vector<ClockEvidence> by;  // what clocks were measured by, the best first; empty: nothing was aligned
  std::vector<int32_t> untied;    // ranks that are not on the clock of most others, where others are on one
  int64_t half_ns = -1;           // bound of the worst offset; −1: some have none
  double error_ns = -1;           // its likely error; −1: unknown
};
ClockSummary clock_summary(const Trace& trace);
// "messages", "compute gaps and collectives".
std::string evidence_list(const std::vector<ClockEvidence>& evidence);

// Trace-wide sizes, computed from the cells. kUnknown entries do not count.
struct Extent {
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of all cells; 0,0 without cells
  int32_t stage_count = 0, dp_count = 0, step_count = 0;
  int32_t chunk_count = 0, micro_batch_count = 0;  // highest value + 1
};
Extent extent_of(const Trace& trace);

// "F3", "B1", and with several chunks "F3.c1": what people call a cell.
std::string cell_label(const Cell& cell, bool with_chunk);

// Keeps only the given ranks and steps; empty lists keep everything. Parts without cells stay
// unless excluded by `ranks`. Links are dropped (they are filled after filtering).
void filter_trace(Trace& trace, const std::vector<int32_t>& ranks, int64_t first_step, int64_t last_step);

}  // namespace stageline
