// Matches timestamps of one rank with timestamps of another; clocks are compared by these pairs.
//
//   messages      a send and the receive that name each other and one number; otherwise the k-th send of one stage and
//                 the k-th receive of its neighbour, by step, direction and chunk. Messages whose times are those of
//                 calls on the host (Trace::messages_are_calls) are not used
//   collectives   the k-th of a name on the ranks of one stage over the replicas; in profiler traces the same comms id,
//                 or the same (group, name, sequence number)
//   gaps          a forward (backward) and the one that waits for it, for pairs of ranks without messages both ways
//   operators     named by the user: the k-th slice of a name on both ranks
//
// Most messages are not stored: whoever needs them walks over the cells again, at 25 B a cell.
#pragma once

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
  std::vector<Match> listed;      // for collectives and operators, and messages that were matched by number
  int32_t name = -1;              // for collectives: index into Matches::names
  std::vector<uint32_t> links{};  // for gaps: indexes into Trace::links, in order of time
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

using PartPairs = std::set<std::pair<size_t, size_t>>;  // the lower part first

// Expects sorted cells and links (link_cells). Pairs in `silent` count as pairs without messages. O(cells + collective
// facts · log). Memory: the listed matches, which messages are not part of.
Matches find_matches(const Trace& trace, const std::vector<ByHand>& by_hand, const PartPairs& silent = {});

// The messages without a match, from steps in which one side has more messages than the other.
struct Unmatched {
  int64_t messages = 0;
  uint32_t first_cell = UINT32_MAX;
};

// Calls visit(const Match&) for every match of a tie: channel after channel, each in order of its cells. Where the
// counts of a step differ, messages are matched by micro-batch if all have one; otherwise they are left out and
// counted.
template <class Visit>
void for_each_match(const Matches& matches, const Tie& tie, Visit&& visit, Unmatched* unmatched = nullptr);

namespace detail {

// Pairs the cells of one step whose counts or micro-batches do not agree in order. Returns how many found no partner.
int64_t pair_by_micro_batch(const Cells& cells, const StepCells& senders, const StepCells& receivers,
                            const Channel& channel, std::vector<std::pair<uint32_t, uint32_t>>& pairs);

inline bool is_of(const Cells& cells, size_t i, CellKind kind, int32_t chunk) {
  return cells.kind[i] == kind && (chunk == kUnknown || cells.chunk[i] == chunk);
}
// Returns the next cell of this kind and chunk at or after i; `end` when there is none.
inline size_t next_of(const Cells& cells, size_t i, size_t end, CellKind kind, int32_t chunk) {
  while (i < end && !is_of(cells, i, kind, chunk)) ++i;
  return i;
}

// Returns true when there are as many sends as receives and no pair names two different micro-batches.
inline bool in_order(const Cells& cells, const StepCells& senders, const StepCells& receivers, const Channel& channel,
                     bool numbered) {
  if (!numbered && channel.send_chunk == kUnknown && channel.recv_chunk == kUnknown) {
    const auto at = [&](size_t i) { return cells.kind.begin() + i; };
    return std::count(at(senders.begin), at(senders.end), channel.send) ==
           std::count(at(receivers.begin), at(receivers.end), channel.recv);
  }
  bool agree = true;
  for (size_t s = senders.begin, r = receivers.begin;; ++s, ++r) {
    s = next_of(cells, s, senders.end, channel.send, channel.send_chunk);
    r = next_of(cells, r, receivers.end, channel.recv, channel.recv_chunk);
    if (s == senders.end || r == receivers.end) return agree && s == senders.end && r == receivers.end;
    if (cells.micro_batch[s] != cells.micro_batch[r] && cells.micro_batch[s] != kUnknown &&
        cells.micro_batch[r] != kUnknown)
      agree = false;
  }
}

}  // namespace detail

template <class Visit>
void for_each_match(const Matches& matches, const Tie& tie, Visit&& visit, Unmatched* unmatched) {
  for (const Match& match : tie.listed) visit(match);
  const Cells& cells = matches.trace->cells;
  for (const uint32_t at : tie.links) {
    const Link& link = matches.trace->links[at];
    const int64_t end = cells.end_ns[link.from_cell], start = cells.start_ns[link.to_cell];
    const bool from_a = static_cast<size_t>(cells.part[link.from_cell]) == tie.part_a;
    visit(Match{end, end, start, start, link.to_cell, from_a});
  }
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const Channel& channel : tie.channels) {
    const auto& from = matches.steps_of_part[channel.from_a ? tie.part_a : tie.part_b];
    const auto& to = matches.steps_of_part[channel.from_a ? tie.part_b : tie.part_a];
    const auto take = [&](size_t s, size_t r) {
      visit(Match{cells.start_ns[s], cells.end_ns[s], cells.start_ns[r], cells.end_ns[r], static_cast<uint32_t>(r),
                  channel.from_a});
    };
    size_t f = 0, t = 0;
    while (f < from.size() && t < to.size()) {
      if (from[f].step != to[t].step) {
        from[f].step < to[t].step ? ++f : ++t;
        continue;
      }
      const StepCells &senders = from[f++], &receivers = to[t++];
      // Messages are matched in order as long as micro-batches agree. Whether they do is known only at the end, so this
      // is checked before.
      if (detail::in_order(cells, senders, receivers, channel, matches.messages_numbered)) {
        for (size_t s = senders.begin, r = receivers.begin;; ++s, ++r) {
          s = detail::next_of(cells, s, senders.end, channel.send, channel.send_chunk);
          if (s == senders.end) break;
          r = detail::next_of(cells, r, receivers.end, channel.recv, channel.recv_chunk);
          take(s, r);
        }
        continue;
      }
      pairs.clear();
      const int64_t lost = detail::pair_by_micro_batch(cells, senders, receivers, channel, pairs);
      for (const auto& [send, recv] : pairs) take(send, recv);
      if (unmatched && lost > 0) {
        unmatched->messages += lost;
        unmatched->first_cell = std::min(unmatched->first_cell, static_cast<uint32_t>(receivers.begin));
      }
    }
  }
}

// Adds gaps along trace.links, for pairs of parts that are not in `joined`.
void add_gaps(const Trace& trace, const std::set<std::pair<size_t, size_t>>& joined, Matches& matches);

// Adds sends and receives whose ends, direction and number are recorded (jobs of the recorder); they are matched by
// these, whatever their order. Numbers that a side has twice in a step are left out. Returns the pairs of parts that
// got matches.
std::set<std::pair<size_t, size_t>> add_numbered_messages(const Trace& trace, Matches& matches);

// Adds cells of kind C that end on every rank after they have begun on every rank (all-reduce, all-gather,
// reduce-scatter, all-to-all; not broadcast). They are matched by name and by order within a step, over the replicas of
// a stage. Each rank is matched with the first replica and with the next one, so the work grows with the number of
// ranks and not with its square. Whether a name really spans the replicas shows in the fit.
void add_cell_collectives(const Trace& trace, Matches& matches);

// Adds the same from profiler traces: kernels that have a collective's facts.
void add_profiler_collectives(const Trace& trace, Matches& matches);

// Adds what the user named: the k-th slice of the name, or cell of that label, on both ranks. A rank or name that does
// not exist adds nothing.
void add_by_hand(const Trace& trace, const std::vector<ByHand>& by_hand, Matches& matches);

}  // namespace stageline::align
