// Marks: pipeline work as the host saw it, whether found by names or inferred, and what is found out about them:
// stages, steps, micro-batches, messages, and when the work really ran.
#pragma once

#include "model/schedule.h"
#include "pipeline/cells/cell_rules.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

// One piece of pipeline work on the host. An overlapped forward and backward are two marks with the same times and the
// same slice.
struct CellMark {
  uint32_t part = 0;          // index of Trace::parts
  uint32_t lane = 0;          // lane of the part: the thread that the work ran on
  uint32_t slice = kNoSlice;  // the annotation, frame or operator that shows the work; a click on the cell leads there
  int64_t start_ns = 0;       // on the host's clock
  int64_t end_ns = 0;         // never before start_ns
  CellKind kind = CellKind::kOther;
  int32_t stage = kUnknown;  // virtual stage, 0 … p·v − 1, where the source names it
  int32_t chunk = kUnknown;  // the rank's chunk, where the source names that and no virtual stage
  int32_t micro_batch = kUnknown;
  int32_t step = kUnknown;  // set only where the source names a step; else ProfilerStep or repetition decides later
  bool piece = false;       // one of several slices of the same work, so it must not be counted as a micro-batch
};

// A stretch of one part that is one step according to a rule.
struct StepMark {
  int64_t start_ns = 0, end_ns = 0;
  int32_t number = kUnknown;  // kUnknown where the name does not contain it
};

struct FoundMarks {
  std::vector<CellMark> marks;               // ordered by part, then lane and start
  std::vector<std::vector<StepMark>> steps;  // for each part, the outermost ones in order of start
  std::string set;                           // name of the rule set; "" when nothing was found
  std::string example;                       // a name that matched
  int64_t names = 0, slices = 0;             // distinct names and slices that matched
  int64_t nested = 0;                        // slices that lie inside other work of their thread
  int64_t captured = 0;                      // marks of the capture of a graph, when nothing ran
  bool by_frames = false;                    // found in Python frames, not in annotations
  bool interleaved = false;  // ranks have chunks that names do not distinguish, so micro-batch numbers would be guesses
};

// Uses the first rule set that finds forward or backward work. Where what was found is not enough for a pipeline,
// `diagnostics` says so ("cells.no_pipeline"). Work inside other work of its thread is taken as part of it
// ("cells.nested"), and marks of the capture of a graph are dropped ("cells.captured"). O(slices + names · rules).
FoundMarks find_marks(const Trace& trace, const CellRules& rules, const RankLayoutOptions& layout,
                      Diagnostics& diagnostics);

// Returns the marks of the sets that are used together with any other (optimizer steps).
std::vector<CellMark> find_always_marks(const Trace& trace, const CellRules& rules);

// Returns one mark for each send and receive of the marked forwards and backwards. A send carries the work before it, a
// receive brings the input of the work after it, and one inside work belongs to that work. If work has several (other
// tensors, shapes), the first send and the last receive count. `marks` are ordered by part. Nothing is returned for
// ranks with device work, or where marks hold messages. O(slices + marks log marks).
std::vector<CellMark> message_marks(const Trace& trace, const std::vector<CellMark>& marks);

// Decides whether messages flow as in a pipeline. It is asked where the only names found are in use outside of
// pipelines too. A send carries the result of the work that began last before it. A pipeline has ends: on the first
// stage forwards send and backwards do not, on the last stage the other way round, and over all ranks both directions
// are sent. Without backward work it is enough that one rank sends and another does not. Rings of attention, exchanges
// between pairs and reductions of gradients send after both directions on every rank. Also returns false when this
// cannot be determined: for one middle rank alone, or several chunks per rank. `marks`: part after part, in any order
// within. O(slices + marks log marks).
bool sends_flow(const Trace& trace, const std::vector<CellMark>& marks);

// Finds the meaning of a communication kernel in the pipeline where no annotation gives it: a message or a collective,
// and in which direction.
struct MessageKind {
  CellKind kind = CellKind::kCollective;
  bool known = false;  // false for a message of which neither peer nor direction is known
};

// `around` is the compute mark that launched the kernel; nullptr when none did. A message has the direction of that
// mark. Without one, the peer decides: a message to a later stage is forward, and so is one from the last stage to the
// first where ranks have several chunks. Expects Part::stage. Returns at least one kind: a kernel that carries several
// messages (batch_isend_irecv) has all their kinds, each once. O(log facts).
std::vector<MessageKind> message_kinds(const Trace& trace, size_t part, uint32_t kernel, const CellMark* around,
                                       int32_t chunks);

// Maps the stage numbers that names contain to ranks and chunks.
struct StageMap {
  int32_t stages = 0;   // ranks of one pipeline; 0 when names contain no stages
  int32_t chunks = 1;   // virtual stages of a rank
  bool regular = true;  // false for neither a loop nor a V; then a chunk is a position in the rank's own list
  ChunkLayout layout = ChunkLayout::kLoop;
  std::vector<int32_t> stage;             // for each part; kUnknown when not known
  std::vector<std::vector<int32_t>> own;  // for each part its virtual stages, ascending
  // kUnknown when the part does not have that virtual stage.
  int32_t chunk_of(size_t part, int32_t virtual_stage) const;
};

// In a loop virtual stage s is on rank s mod p. In a V rank r has r and 2p − 1 − r, and so on in zigzag. `hint` is the
// number of stages where it is known otherwise, else 0; it decides where so few ranks are there that both layouts fit.
// O(marks log marks).
StageMap map_stages(const Trace& trace, const std::vector<CellMark>& marks, int32_t hint);

enum class StepSource : uint8_t { kProfiler, kNamed, kRepetition, kOptimizer, kOne };

// Gives every mark of a part its step by the first of these that exists. ProfilerStep rows come first. Then come step
// marks (`steps`, in order of start), by their own numbers or else their positions, then repeated micro-batches, then
// optimizer steps between. Without any of them all marks are step 0. Marks outside the steps found get kUnknown.
// `order` is the part's marks in order of start.
StepSource number_steps(const Part& part, const std::vector<StepMark>& steps, const std::vector<uint32_t>& order,
                        std::vector<CellMark>& marks);

// Numbers micro-batches within each (step, direction, stage, chunk) where no mark of it has a number: the k-th becomes
// k. Pieces (CellMark::piece) get none. Returns how many marks were numbered. O(n log n).
int64_t number_micro_batches(const std::vector<uint32_t>& order, std::vector<CellMark>& marks);

// Gives forwards and backwards of a rank their chunk and micro-batch by Megatron's interleaved order. It starts with
// 2(p − 1 − r) + (v − 1)p forwards, then a forward and a backward in turn, then the other backwards. Groups of p
// micro-batches go through the chunks one after another. Returns v; 0, and changes nothing, where a step has another
// order or one that fits several v. `stage` is r and `stages` is p. O(n log n).
int32_t number_interleaved(const std::vector<uint32_t>& order, int32_t stage, int32_t stages,
                           std::vector<CellMark>& marks);

// Numbers the messages of such a rank, once its work is numbered: neighbours send and receive in the order of their
// work. `sent` says which marks of messages were sent at all. Where a step has more or fewer messages than work that
// needs them, they stay as they are.
void number_interleaved_messages(const std::vector<uint32_t>& order, const std::vector<bool>& sent, int32_t stage,
                                 int32_t stages, int32_t chunks, std::vector<CellMark>& marks);

// Finds when the work of a host's mark really ran: on the device or, without a device, in the operators of the thread.
//
//   main thread      |-- Forward 3 ------------------|        |-- Backward 3 ----------|
//                       recv  aten::linear  send                 (waits)
//   autograd thread                                             |- AddmmBackward0 -|
//   stream 7                    |k||k||--k--|                         |k||-k-||k|
//   cell                        |-- F3 -----|                         |-- B3 ----|
//
// A launch belongs to the mark around it on its own thread. On a thread without marks (autograd's) it belongs to the
// mark that another thread is in at that time, if that is backward work. Communication is not part of a compute cell.
struct WorkSpan {
  int64_t start_ns = 0, end_ns = 0;
  bool found = false;               // false when no work of the mark's kind was recorded within it
  bool is_whole = false;            // a message's end was recorded (gloo:recv), not only its call
  int32_t sends = 0, receives = 0;  // of a message's mark: operators of the host within it
};

// Communication on the device that lies in no mark of a message or collective.
struct LooseCommunication {
  uint32_t slice = 0;          // the kernel
  uint32_t mark = UINT32_MAX;  // the compute mark that launched it
};

struct WorkSpans {
  std::vector<WorkSpan> spans;  // for each mark
  std::vector<LooseCommunication> loose;
  bool on_device = false;      // false when no mark launched device work, so that operators of the host decide
  bool has_messages = false;   // some mark of a message has an operator that sends or receives
  bool has_operators = false;  // some mark has operators of its own, so a mark without any did nothing but wait
};

// Returns the spans of one part. `marks` are that part's, ordered by (lane, start). O(slices · log marks).
WorkSpans work_spans(const Trace& trace, const Part& part, std::span<const CellMark> marks);

}  // namespace stageline
