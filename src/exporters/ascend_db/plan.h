// What every place of the pipeline does on the device, in true time: blocks of work, messages, operations between
// ranks. One place is one stage of one replica; its tensor- and context-parallel peers do the same at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "exporters/ascend_db/db_options.h"
#include "model/trace.h"

namespace stageline::ascend_db {

enum class Mark : uint8_t { kForward, kBackward, kOverlap, kWeight, kLogits, kEmptyPop };

struct Block {  // one marked range and the work in it
  int64_t start_ns = 0, end_ns = 0;
  int32_t step = 0;
  Mark mark = Mark::kForward;
  int32_t chunk = kUnknown, micro_batch = kUnknown;            // of the forward, else of the only action
  int32_t back_chunk = kUnknown, back_micro_batch = kUnknown;  // kOverlap: of the backward
};

// One point-to-point operation of a place; a batched one may send and receive.
struct Exchange {
  int64_t start_ns = 0, end_ns = 0;
  int32_t step = 0, peer_stage = 0;
  uint32_t block = 0;  // a send follows this block, a receive alone precedes it
  bool sends = false, receives = false;
};

struct Message {
  int64_t send_ns = 0, post_ns = 0, end_ns = 0;  // the sender has it, the receiver waits for it, it is there
  int32_t step = 0, src_place = 0, dst_place = 0;
  uint32_t src_block = 0, dst_block = 0;
  bool backward = false;
  int32_t chunk = 0, micro_batch = 0;  // of the receiving cell
};

struct Place {
  std::vector<Block> blocks;              // by start; they do not overlap
  std::vector<Exchange> exchanges;        // by start
  std::vector<uint32_t> step_first;       // by step, and one past the last: first block
  std::vector<int64_t> optimizer_end_ns;  // by step; empty without an optimizer
};

struct Plan {
  std::vector<Place> places;         // dp · stages + stage
  std::vector<Message> messages;     // by (step, replica, arrival)
  std::vector<int64_t> start_ns;     // by step
  std::vector<int64_t> work_end_ns;  // by step: the last cell of any rank
};

Plan make_plan(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options);

}  // namespace stageline::ascend_db
