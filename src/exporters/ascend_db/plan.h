// The device work of every place of the pipeline, in true time: blocks of work, messages, and operations between ranks.
// One place is one stage of one replica; its tensor- and context-parallel peers do the same at the same time.
#pragma once

#include "model/rank_grid.h"
#include "model/schedule.h"
#include "model/trace.h"

namespace stageline {

// Options of a simulated Ascend profile: how much it holds, and which texts its marks have.
enum class AscendLevel : uint8_t {
  kNone,    // marks only: ranges on the host and their intervals on the device
  kLevel0,  // also kernels, operators and communication operations
  kLevel1,  // also the transfers that each communication operation consists of
};
enum class AscendMarks : uint8_t {
  // The marks of the vendor's guide: Python's str(dict), mostly without micro-batch numbers.
  kGuide,
  kHelper,  // the marks that collect/stageline_mstx.py writes: JSON with micro-batch, chunk, stage and step
};
// Form of the built-in communication ranges at Level_none.
enum class LevelNoneComm : uint8_t { kNo, kPlain, kEscaped };

struct AscendDbOptions {
  Schedule schedule;
  RankGrid grid;
  AscendLevel level = AscendLevel::kNone;
  AscendMarks marks = AscendMarks::kGuide;
  LevelNoneComm level_none_comm = LevelNoneComm::kNo;
  int64_t first_step = 10;
  int64_t latency_ns = 0;
  int64_t reduce_ns = 0;   // SimulateOptions::reduce_ns
  bool batch_p2p = false;  // hcom_batchSendRecv, Megatron's default, instead of one operation for each tensor
  // A mistake that the guide invites: a WeightGradStore.pop range after every whole backward of the cool-down.
  bool empty_pop = false;
  bool step_time = true;
  bool pp_info = false;
  bool mindspore = false;  // uses the names of MindSpore's profiler instead of PyTorch's
};

}  // namespace stageline

namespace stageline::ascend_db {

enum class Mark : uint8_t { kForward, kBackward, kOverlap, kWeight, kLogits, kEmptyPop };

struct Block {  // one marked range and the work in it
  int64_t start_ns = 0, end_ns = 0;
  int32_t step = 0;
  Mark mark = Mark::kForward;
  // The numbers of the forward if the block has one, else those of its only action.
  int32_t chunk = kUnknown, micro_batch = kUnknown;
  int32_t back_chunk = kUnknown, back_micro_batch = kUnknown;  // those of the backward, for kOverlap
};

// One point-to-point operation of a place. A batched operation may both send and receive.
struct Exchange {
  int64_t start_ns = 0, end_ns = 0;
  int32_t step = 0, peer_stage = 0;
  uint32_t block = 0;  // an operation that sends comes after this block; one that only receives comes before it
  bool sends = false, receives = false;
};

struct Message {
  // When the sender has the data, when the receiver begins to wait for it, and when it has arrived.
  int64_t send_ns = 0, post_ns = 0, end_ns = 0;
  int32_t step = 0, src_place = 0, dst_place = 0;
  uint32_t src_block = 0, dst_block = 0;
  bool backward = false;
  int32_t chunk = 0, micro_batch = 0;  // those of the receiving cell
};

struct Place {
  std::vector<Block> blocks;        // sorted by start; they do not overlap
  std::vector<Exchange> exchanges;  // sorted by start
  // For each step: its first block. The last entry is the number of blocks.
  std::vector<uint32_t> step_first;
  std::vector<int64_t> optimizer_end_ns;  // for each step; empty when there is no optimizer
};

struct Plan {
  std::vector<Place> places;         // the index of a place is dp · stages + stage
  std::vector<Message> messages;     // sorted by (step, replica, arrival)
  std::vector<int64_t> start_ns;     // for each step
  std::vector<int64_t> work_end_ns;  // for each step: the end of the last cell of any rank
};

Plan make_plan(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options);

// Communication groups of a job, named as HCCL names them, and what the metadata of a profile says about them.
struct Group {
  std::string kind;            // Megatron's name of the group: "pp", "tp", "cp", "dp" or "dp_cp"
  std::string name;            // name of the communicator
  std::string tag;             // three digits of the name's hash
  std::vector<int32_t> ranks;  // global ranks, ascending along the dimension
  int32_t index_of(int32_t rank) const;
};

// Returns the groups that hold `rank`, the pipeline's group first. Groups of other kinds are returned only when they
// have several ranks.
std::vector<Group> groups_of(const RankGrid& grid, int32_t rank);
// Returns the first group of that kind, or nullptr when there is none.
const Group* find_group(const std::vector<Group>& groups, std::string_view kind);

// Returns {key, JSON} of the metadata that users add with add_metadata_json: distributed_args, parallel_group_info and
// pp_info.
std::vector<std::pair<std::string, std::string>> user_metadata(const AscendDbOptions& options, int32_t rank,
                                                               const std::vector<Group>& groups);

}  // namespace stageline::ascend_db
