#include "pipeline/clocks/match.h"

#include "pipeline/cells/link_cells.h"

namespace stageline::align {
namespace {

constexpr int32_t kMaxChunks = 64;  // with more chunks, the chunks of messages count as unknown

std::vector<std::vector<StepCells>> steps_of_parts(const Trace& trace) {
  std::vector<std::vector<StepCells>> steps(trace.parts.size());
  for (const RankRange& range : rank_ranges(trace.cells))
    steps[range.part].push_back({range.step, range.begin, range.end});
  return steps;
}

// Returns true when every message of the trace names its chunk.
bool messages_name_chunks(const Cells& cells) {
  for (size_t i = 0; i < cells.size(); ++i)
    if (is_message(cells.kind[i]) && cells.chunk[i] == kUnknown) return false;
  return true;
}

// (dp, position within the stage) → stage → part.
using Pipelines = std::map<std::pair<int32_t, int32_t>, std::map<int32_t, size_t>>;

Pipelines pipelines_of(const std::vector<Part>& parts) {
  Pipelines pipelines;
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].stage == kUnknown) continue;
    const int32_t position = seen[{parts[p].dp, parts[p].stage}]++;
    pipelines[{parts[p].dp, position}][parts[p].stage] = p;
  }
  return pipelines;
}

class Neighbours {
 public:
  Neighbours(const Trace& trace, std::vector<Tie>& ties) : trace_(trace), ties_(ties) {
    const Extent extent = extent_of(trace);
    stages_ = std::max(extent.stage_count, trace.pipeline_stages);
    chunks_ = trace.chunks_are_pieces ? 1 : std::max(1, extent.chunk_count);
    by_chunk_ = chunks_ > 1 && chunks_ <= kMaxChunks && messages_name_chunks(trace.cells);
    layout_ = by_chunk_ ? guess_chunk_layout(trace) : ChunkLayout::kLoop;
  }

  void find() {
    for (const auto& [where, part_of_stage] : pipelines_of(trace_.parts))
      for (const auto& [stage, part] : part_of_stage) {
        if (by_chunk_) {
          for (int32_t chunk = 0; chunk < chunks_; ++chunk) join_chunk(part_of_stage, stage, chunk);
          continue;
        }
        join(part_of_stage, stage, stage + 1, kUnknown, kUnknown);
        if (chunks_ > 1 && stage == stages_ - 1) join(part_of_stage, stage, 0, kUnknown, kUnknown);
      }
    for (auto& [pair, channels] : channels_)
      ties_.push_back({pair.first, pair.second, TieKind::kMessages, std::move(channels), {}, -1});
  }

 private:
  // Joins the chunk with the one that follows it in the model.
  void join_chunk(const std::map<int32_t, size_t>& part_of_stage, int32_t stage, int32_t chunk) {
    const bool up = layout_ == ChunkLayout::kV && chunk % 2 == 1;
    const int32_t next = up ? stage - 1 : stage + 1;
    if (next >= 0 && next < stages_) return join(part_of_stage, stage, next, chunk, chunk);
    if (layout_ == ChunkLayout::kLoop && chunk + 1 < chunks_) join(part_of_stage, stage, 0, chunk, chunk + 1);
  }

  void join(const std::map<int32_t, size_t>& part_of_stage, int32_t from, int32_t to, int32_t from_chunk,
            int32_t to_chunk) {
    const auto f = part_of_stage.find(from), t = part_of_stage.find(to);
    if (f == part_of_stage.end() || t == part_of_stage.end() || f->second == t->second) return;
    const size_t a = std::min(f->second, t->second), b = std::max(f->second, t->second);
    const bool down_from_a = f->second == a;
    auto& channels = channels_[{a, b}];
    channels.push_back({CellKind::kSendForward, CellKind::kRecvForward, from_chunk, to_chunk, down_from_a});
    channels.push_back({CellKind::kSendBackward, CellKind::kRecvBackward, to_chunk, from_chunk, !down_from_a});
  }

  const Trace& trace_;
  std::vector<Tie>& ties_;
  int32_t stages_ = 0, chunks_ = 1;
  bool by_chunk_ = false;
  ChunkLayout layout_ = ChunkLayout::kLoop;
  std::map<std::pair<size_t, size_t>, std::vector<Channel>> channels_;
};

// False where messages are calls of the host: an irecv may end before anything was sent, so its times bound nothing.
bool has_messages(const Trace& trace) {
  return !trace.messages_are_calls && std::ranges::any_of(trace.cells.kind, is_message);
}

// Returns whether messages were recorded from a to b, and from b to a.
std::pair<bool, bool> directions(const Matches& matches, const Tie& tie) {
  const auto holds = [&](size_t part, CellKind kind) {
    return std::ranges::any_of(matches.steps_of_part[part], [&](const StepCells& step) {
      return detail::next_of(matches.trace->cells, step.begin, step.end, kind, kUnknown) < step.end;
    });
  };
  std::pair<bool, bool> found{false, false};
  for (const Channel& c : tie.channels) {
    bool& direction = c.from_a ? found.first : found.second;
    direction = direction || (holds(c.from_a ? tie.part_a : tie.part_b, c.send) &&
                              holds(c.from_a ? tie.part_b : tie.part_a, c.recv));
  }
  return found;
}

}  // namespace

int64_t detail::pair_by_micro_batch(const Cells& cells, const StepCells& senders, const StepCells& receivers,
                                    const Channel& channel, std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  const auto gather = [&](const StepCells& range, CellKind kind, int32_t chunk) {
    std::vector<std::tuple<int32_t, int32_t, uint32_t>> found;  // (micro-batch, chunk, cell)
    for (size_t i = next_of(cells, range.begin, range.end, kind, chunk); i < range.end;
         i = next_of(cells, i + 1, range.end, kind, chunk))
      found.emplace_back(cells.micro_batch[i], chunk == kUnknown ? cells.chunk[i] : kUnknown, static_cast<uint32_t>(i));
    std::ranges::sort(found);
    return found;
  };
  const auto sends = gather(senders, channel.send, channel.send_chunk);
  const auto receives = gather(receivers, channel.recv, channel.recv_chunk);
  int64_t lost = 0;
  const auto key = [](const auto& x) { return std::pair(std::get<0>(x), std::get<1>(x)); };
  size_t s = 0, r = 0;
  while (s < sends.size() && r < receives.size()) {
    if (key(sends[s]) != key(receives[r])) {
      key(sends[s]) < key(receives[r]) ? ++s : ++r;
      ++lost;
      continue;
    }
    const auto same = key(sends[s]);
    const size_t s0 = s, r0 = r;
    while (s < sends.size() && key(sends[s]) == same) ++s;
    while (r < receives.size() && key(receives[r]) == same) ++r;
    // Two messages with one key, or one without a micro-batch: it is not known which belongs to which.
    if (s - s0 != 1 || r - r0 != 1 || same.first == kUnknown) {
      lost += static_cast<int64_t>(std::max(s - s0, r - r0));
      continue;
    }
    pairs.emplace_back(std::get<2>(sends[s0]), std::get<2>(receives[r0]));
  }
  lost += static_cast<int64_t>((sends.size() - s) + (receives.size() - r));
  sort_stably(pairs, {}, [](const auto& of) { return of.second; });
  return lost;
}

Matches find_matches(const Trace& trace, const std::vector<ByHand>& by_hand, const PartPairs& silent) {
  Matches matches{.trace = &trace, .steps_of_part = steps_of_parts(trace)};
  for (size_t i = 0; i < trace.cells.size() && !matches.messages_numbered; ++i)
    matches.messages_numbered = is_message(trace.cells.kind[i]) && trace.cells.micro_batch[i] != kUnknown;
  PartPairs joined;  // pairs with messages both ways
  if (has_messages(trace)) {
    const auto numbered = add_numbered_messages(trace, matches);
    for (const Tie& tie : matches.ties) {
      const auto from_a = [](const Match& match) { return match.from_a; };
      const bool down = std::ranges::any_of(tie.listed, from_a);
      if (down && !std::ranges::all_of(tie.listed, from_a)) joined.insert({tie.part_a, tie.part_b});
    }
    std::vector<Tie> ties;
    Neighbours(trace, ties).find();
    for (Tie& tie : ties) {
      if (numbered.contains({tie.part_a, tie.part_b})) continue;
      const auto [down, up] = directions(matches, tie);
      if (down && up) joined.insert({tie.part_a, tie.part_b});
      if (down || up) matches.ties.push_back(std::move(tie));
    }
  }
  std::erase_if(matches.ties, [&](const Tie& tie) { return silent.contains({tie.part_a, tie.part_b}); });
  for (const auto& pair : silent) joined.erase(pair);
  add_gaps(trace, joined, matches);
  add_cell_collectives(trace, matches);
  add_profiler_collectives(trace, matches);
  add_by_hand(trace, by_hand, matches);
  sort_stably(matches.ties, {}, [](const Tie& x) { return std::tie(x.part_a, x.part_b, x.kind, x.name); });
  return matches;
}

}  // namespace stageline::align
