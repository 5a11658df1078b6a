// Tie: all matches of one kind between two ranks, as timestamps of both clocks. match.h finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline::align {

enum class TieKind : uint8_t { kMessages, kCollectives, kGaps, kOperator };

// One match; each timestamp is on its own rank's clock. It always holds that the receiver cannot end before the sender
// began. That the sender cannot end before the receiver began holds only when the sender waits for the receiver.
struct Match {
  int64_t send_start_ns = 0, send_end_ns = 0, recv_start_ns = 0, recv_end_ns = 0;
  uint32_t tag = 0;    // the receiving cell, or the position in Tie::listed
  bool from_a = true;  // a sends to b
};

// All sends of one kind from one rank to another. Chunk kUnknown stands for any chunk.
struct Channel {
  CellKind send, recv;
  int32_t send_chunk = kUnknown, recv_chunk = kUnknown;
  bool from_a = true;
};

// All matches of one kind between two ranks.
struct Tie {
  size_t part_a = 0, part_b = 0;  // a < b
  TieKind kind = TieKind::kMessages;
  std::vector<Channel> channels;  // for messages
  std::vector<Match> listed;      // for all other kinds, in order of time
  int32_t name = -1;              // for collectives: index into Matches::names
};

struct ByHand {  // --align-on A:B:NAME
  int32_t rank_a = 0, rank_b = 0;
  std::string name;
};

// The cells [begin, end) of one part in one step.
struct StepCells {
  int32_t step = kUnknown;
  size_t begin = 0, end = 0;
};

struct Matches {
  const Trace* trace = nullptr;
  std::vector<std::vector<StepCells>> steps_of_part;
  std::vector<Tie> ties;           // ordered by (a, b, kind, name)
  bool messages_numbered = false;  // some messages name their micro-batch
  std::vector<std::string> names;
};

}  // namespace stageline::align
