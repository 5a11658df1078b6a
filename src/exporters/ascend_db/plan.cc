#include "exporters/ascend_db/plan.h"

#include "base/json_writer.h"
#include "model/message_names.h"

namespace stageline::ascend_db {
namespace {

constexpr int64_t kLogitsShare = 16;  // the loss's backward takes a sixteenth of its cell
constexpr int64_t kPopNs = 2'000;

// Computes the index of (stage, chunk, micro-batch) in a table of blocks.
struct Grid3 {
  int32_t chunks, micro_batches;
  size_t of(int32_t stage, int32_t chunk, int32_t micro_batch) const {
    return (stage * static_cast<size_t>(chunks) + chunk) * micro_batches + micro_batch;
  }
};

// Adds the blocks of one part, step by step, in the order of the schedule. It moves starts and ends of cells in `trace`
// to make room for ranges that are marked separately.
void add_blocks(Trace& trace, const std::vector<uint32_t>& rows, int32_t stage, int64_t offset_ns,
                const AscendDbOptions& options, Place* place) {
  const RankOrder& order = options.schedule.ranks[stage];
  const bool mindspeed = options.schedule.name == "dualpipe-v-mindspeed";
  const auto cool_down = order.size() - std::min<size_t>(order.size(), options.schedule.sizes.stages);
  Cells& cells = trace.cells;
  size_t row = 0;
  while (row < rows.size()) {
    const int32_t step = cells.step[rows[row]];
    if (place) place->step_first.push_back(static_cast<uint32_t>(place->blocks.size()));
    for (size_t i = 0; i < order.size(); ++i) {
      const auto actions = order[i].actions();
      const Action& last = actions.back();
      int64_t start = cells.start_ns[rows[row]] - offset_ns, end = cells.end_ns[rows[row]] - offset_ns;
      const auto block = [&](Mark mark, int64_t from, int64_t to) {
        if (!place) return;
        Block b{from, to, step, mark, actions[0].chunk, actions[0].micro_batch};
        if (mark == Mark::kOverlap) std::tie(b.back_chunk, b.back_micro_batch) = std::tie(last.chunk, last.micro_batch);
        if (mark == Mark::kLogits) std::tie(b.chunk, b.micro_batch) = std::tie(last.chunk, last.micro_batch);
        place->blocks.push_back(b);
      };
      if (mindspeed && stage == 0 && last.chunk == 1 && is_backward(last.kind) && end - start >= kLogitsShare) {
        const int64_t cut = start + (end - start) / kLogitsShare;
        block(Mark::kLogits, start, cut);
        start = cut;
      }
      const bool pop =
          options.empty_pop && i >= cool_down && last.kind == CellKind::kBackward && end - start > 4 * kPopNs;
      if (pop) end -= 2 * kPopNs;
      block(order[i].overlapped()                ? Mark::kOverlap
            : last.kind == CellKind::kForward    ? Mark::kForward
            : last.kind == CellKind::kWeightGrad ? Mark::kWeight
                                                 : Mark::kBackward,
            start, end);
      if (pop) block(Mark::kEmptyPop, end + kPopNs / 2, end + kPopNs * 3 / 2);
      for (size_t a = 0; a < actions.size(); ++a, ++row) {
        cells.start_ns[rows[row]] = start + offset_ns;
        cells.end_ns[rows[row]] = end + offset_ns;
      }
    }
    if (row < rows.size() && cells.kind[rows[row]] == CellKind::kOptimizer) {
      if (place) place->optimizer_end_ns.push_back(cells.end_ns[rows[row]] - offset_ns);
      ++row;
    }
  }
  if (place) place->step_first.push_back(static_cast<uint32_t>(place->blocks.size()));
}

// Returns (stage, chunk) of the next virtual stage in direction `way`: that is where the output of (stage, chunk) goes.
// Stage −1 means that the output goes nowhere.
std::pair<int32_t, int32_t> next_of(const Schedule& s, int32_t stage, int32_t chunk, int32_t way) {
  const int32_t wanted = virtual_stage(s, stage, chunk) + way;
  const bool two_ways = s.layout == ChunkLayout::kBidirectional;
  if (wanted < 0 || wanted >= virtual_stage_count(s)) return {-1, -1};
  for (int32_t c = 0; c < s.sizes.chunks; ++c) {
    if (two_ways && c != chunk) continue;
    for (int32_t r = 0; r < s.sizes.stages; ++r)
      if (virtual_stage(s, r, c) == wanted) return {r, c};
  }
  return {-1, -1};
}

// The blocks of a step: for each stage, chunk and micro-batch the one that computes it.
struct StepBlocks {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> forward, backward;
};

StepBlocks blocks_of_step(const Plan& plan, int32_t dp, int32_t step, const ScheduleSizes& sizes) {
  const Grid3 at{sizes.chunks, sizes.micro_batches};
  StepBlocks found;
  found.forward.assign(at.of(sizes.stages, 0, 0), StepBlocks::kNone), found.backward = found.forward;
  for (int32_t stage = 0; stage < sizes.stages; ++stage) {
    const Place& place = plan.places[static_cast<size_t>(dp * sizes.stages + stage)];
    for (uint32_t b = place.step_first[step]; b < place.step_first[static_cast<size_t>(step) + 1]; ++b) {
      const Block& block = place.blocks[b];
      if (block.mark == Mark::kForward || block.mark == Mark::kOverlap)
        found.forward[at.of(stage, block.chunk, block.micro_batch)] = b;
      if (block.mark == Mark::kBackward) found.backward[at.of(stage, block.chunk, block.micro_batch)] = b;
      if (block.mark == Mark::kOverlap) found.backward[at.of(stage, block.back_chunk, block.back_micro_batch)] = b;
    }
  }
  return found;
}

// Times the messages from `first` on. Two ranks match sends and receives in the order in which they were posted. So a
// sender posts in the order in which its peer waits.
void time_messages(Plan& plan, size_t first, int64_t latency_ns) {
  const auto begin = plan.messages.begin() + first;
  std::sort(begin, plan.messages.end(), [](const Message& a, const Message& b) {
    return std::tie(a.post_ns, a.dst_place, a.dst_block, a.src_place, a.backward) <
           std::tie(b.post_ns, b.dst_place, b.dst_block, b.src_place, b.backward);
  });
  std::map<std::pair<int32_t, int32_t>, int64_t> last_send;
  std::map<std::pair<int32_t, uint32_t>, int64_t> posted;  // receives that wait before one block follow one another
  const int64_t latency = std::max<int64_t>(latency_ns, 1'000);
  for (auto m = begin; m != plan.messages.end(); ++m) {
    int64_t& last = last_send[{m->src_place, m->dst_place}];
    m->send_ns = std::max(m->send_ns, last + 1'000);
    last = m->send_ns;
    const int64_t before = posted[{m->dst_place, m->dst_block}]++;
    m->post_ns += before * 1'000;
    const std::vector<Block>& blocks = plan.places[m->dst_place].blocks;
    m->end_ns = std::min(blocks[m->dst_block].start_ns, std::max(m->send_ns, m->post_ns) + latency);
    // The receive did not wait: it was posted while the block before it still ran.
    int64_t room = latency;
    if (m->dst_block > 0)
      room = std::min(room, (blocks[m->dst_block - 1].end_ns - blocks[m->dst_block - 1].start_ns) / 2);
    if (m->post_ns > m->end_ns - room) m->post_ns = m->end_ns - room + before * (room / 8);
  }
}

void add_messages(Plan& plan, int32_t dp, int32_t step, const AscendDbOptions& options) {
  const Schedule& s = options.schedule;
  const int32_t p = s.sizes.stages, v = s.sizes.chunks;
  const Grid3 at{v, s.sizes.micro_batches};
  const auto place_of = [&](int32_t stage) { return static_cast<size_t>(dp * p + stage); };
  const StepBlocks found = blocks_of_step(plan, dp, step, s.sizes);
  const size_t first = plan.messages.size();
  for (int32_t stage = 0; stage < p; ++stage)
    for (int32_t chunk = 0; chunk < v; ++chunk)
      for (const bool back : {false, true}) {
        const auto [to, to_chunk] = next_of(s, stage, chunk, back ? -1 : 1);
        if (to < 0 || to == stage) continue;
        const std::vector<uint32_t>& blocks = back ? found.backward : found.forward;
        for (int32_t mb = 0; mb < s.sizes.micro_batches; ++mb) {
          const uint32_t src = blocks[at.of(stage, chunk, mb)];
          uint32_t dst = blocks[at.of(to, to_chunk, mb)];
          if (src == StepBlocks::kNone || dst == StepBlocks::kNone) continue;
          const Place& there = plan.places[place_of(to)];
          if (dst > 0 && there.blocks[dst - 1].mark == Mark::kLogits) --dst;  // the loss is part of the cell that waits
          Message m{.send_ns = plan.places[place_of(stage)].blocks[src].end_ns};
          const bool first_block = dst == there.step_first[step];
          m.post_ns = first_block ? plan.start_ns[step] : there.blocks[dst - 1].end_ns;
          m.step = step;
          m.src_place = static_cast<int32_t>(place_of(stage));
          m.dst_place = static_cast<int32_t>(place_of(to));
          m.src_block = src;
          m.dst_block = dst;
          m.backward = back;
          m.chunk = to_chunk;
          m.micro_batch = mb;
          plan.messages.push_back(m);
        }
      }
  time_messages(plan, first, options.latency_ns);
}

// With batches, the send after a block and the receive before the next block are one operation, when the same is true
// of the peer (Megatron's send_forward_recv_backward).
void add_exchanges(Plan& plan, const AscendDbOptions& options) {
  const int32_t p = options.schedule.sizes.stages;
  std::map<std::tuple<int32_t, uint32_t, int32_t>, size_t> by_sender;  // (place, block, peer) → message
  if (options.batch_p2p)
    for (size_t i = 0; i < plan.messages.size(); ++i) {
      const Message& m = plan.messages[i];
      by_sender[{m.src_place, m.src_block, m.dst_place}] = i;
    }
  std::vector<uint8_t> done(plan.messages.size(), 0);
  for (size_t i = 0; i < plan.messages.size(); ++i) {
    if (done[i]) continue;
    const Message& m = plan.messages[i];
    const auto add = [&](int32_t place, Exchange e, int32_t peer) {
      e.peer_stage = peer % p;
      e.step = m.step;
      e.end_ns = std::max(e.end_ns, e.start_ns + 1'000);
      plan.places[place].exchanges.push_back(e);
    };
    if (options.batch_p2p && m.dst_block > 0) {
      const auto answer = by_sender.find({m.dst_place, m.dst_block - 1, m.src_place});
      if (answer != by_sender.end() && !done[answer->second]) {
        const Message& back = plan.messages[answer->second];
        // Both ends leave a batch when both messages have arrived, so none of the next blocks may begin earlier.
        const int64_t end = std::max(m.end_ns, back.end_ns);
        const auto follows = [&](int32_t at, uint32_t block) { return plan.places[at].blocks[block].start_ns >= end; };
        if (back.dst_block == m.src_block + 1 && back.step == m.step && follows(m.dst_place, m.dst_block) &&
            follows(m.src_place, back.dst_block)) {
          done[answer->second] = 1;
          add(m.src_place, {m.send_ns, end, 0, 0, m.src_block, true, true}, m.dst_place);
          add(m.dst_place, {back.send_ns, end, 0, 0, m.dst_block - 1, true, true}, m.src_place);
          continue;
        }
      }
    }
    add(m.src_place, {m.send_ns, m.end_ns, 0, 0, m.src_block, true, false}, m.dst_place);
    add(m.dst_place, {m.post_ns, m.end_ns, 0, 0, m.dst_block, false, true}, m.src_place);
  }
  for (Place& place : plan.places)
    sort_stably(place.exchanges, [](const Exchange& a, const Exchange& b) {
      return std::tie(a.start_ns, a.end_ns) < std::tie(b.start_ns, b.end_ns);
    });
}

struct Kind {
  const char* name;
  std::vector<GridDim> dims;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"pp", {GridDim::kPp}},
                                        {"tp", {GridDim::kTp}},
                                        {"cp", {GridDim::kCp}},
                                        {"dp", {GridDim::kDp}},
                                        {"dp_cp", {GridDim::kDp, GridDim::kCp}}};
  return all;
}

bool has(const Kind& kind, GridDim dim) { return std::ranges::find(kind.dims, dim) != kind.dims.end(); }

}  // namespace

Plan make_plan(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options) {
  const int32_t p = options.schedule.sizes.stages;
  Plan plan;
  plan.places.resize(p * static_cast<size_t>(options.grid.of(GridDim::kDp)));
  std::vector<std::vector<uint32_t>> rows(trace.parts.size());
  for (uint32_t i = 0; i < trace.cells.size(); ++i) rows[trace.cells.part[i]].push_back(i);
  const auto offset_of = [&](const Part& part) { return clock_offset_ns[part.machine]; };
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const size_t step = trace.cells.step[i];
    const int64_t offset = offset_of(trace.parts[trace.cells.part[i]]);
    if (trace.cells.kind[i] == CellKind::kOptimizer) continue;
    if (step >= plan.start_ns.size()) {
      plan.start_ns.resize(step + 1, INT64_MAX);
      plan.work_end_ns.resize(step + 1, INT64_MIN);
    }
    plan.start_ns[step] = std::min(plan.start_ns[step], trace.cells.start_ns[i] - offset);
    plan.work_end_ns[step] = std::max(plan.work_end_ns[step], trace.cells.end_ns[i] - offset);
  }
  for (size_t i = 0; i < trace.parts.size(); ++i) {
    const Part& part = trace.parts[i];
    Place& place = plan.places[part.dp * p + part.stage];
    add_blocks(trace, rows[i], part.stage, offset_of(part), options, place.step_first.empty() ? &place : nullptr);
  }
  for (int32_t step = 0; step < std::ssize(plan.start_ns); ++step)
    for (int32_t dp = 0; dp < options.grid.of(GridDim::kDp); ++dp) add_messages(plan, dp, step, options);
  add_exchanges(plan, options);
  return plan;
}

int32_t Group::index_of(int32_t rank) const {
  const auto at = std::ranges::find(ranks, rank);
  return at == ranks.end() ? -1 : static_cast<int32_t>(at - ranks.begin());
}

std::vector<Group> groups_of(const RankGrid& grid, int32_t rank) {
  std::vector<Group> groups;
  int32_t first_number = 0;  // groups are numbered over the whole job, one kind after another
  for (const Kind& kind : kinds()) {
    int32_t members = 1, number = 0;
    for (const GridDim dim : {GridDim::kDp, GridDim::kCp, GridDim::kTp, GridDim::kPp})
      if (has(kind, dim)) members *= grid.of(dim);
      else number = number * grid.of(dim) + grid.coordinate(rank, dim);
    // When context parallelism is 1, "dp" and "dp_cp" have the same ranks, and one communicator serves both.
    const bool same = std::string_view(kind.name) == "dp" && grid.of(GridDim::kCp) == 1;
    if ((members > 1 && !same) || groups.empty()) {
      Group group;
      group.kind = kind.name;
      group.name = "10.0.0.1%eth0_60000_" + std::to_string(first_number + number) + "_1738895521183247";
      group.tag = hccl_group_id(group.name);
      group.ranks =
          kind.dims.size() == 1 ? grid.group(rank, {kind.dims[0]}) : grid.group(rank, {kind.dims[0], kind.dims[1]});
      groups.push_back(std::move(group));
    }
    first_number += grid.world() / members;
  }
  return groups;
}

const Group* find_group(const std::vector<Group>& groups, std::string_view kind) {
  return first_with(groups, kind, &Group::kind);
}

std::vector<std::pair<std::string, std::string>> user_metadata(const AscendDbOptions& options, int32_t rank,
                                                               const std::vector<Group>& groups) {
  std::vector<std::pair<std::string, std::string>> out;
  JsonWriter args;
  args.begin_object();
  args.field("tensor_model_parallel_size", int64_t{options.grid.of(GridDim::kTp)});
  args.field("pipeline_model_parallel_size", int64_t{options.grid.of(GridDim::kPp)});
  args.field("data_parallel_size", int64_t{options.grid.of(GridDim::kDp)});
  args.field("context_parallel_size", int64_t{options.grid.of(GridDim::kCp)});
  args.field("expert_model_parallel_size", int64_t{1}).field("sequence_parallel", false);
  args.field("rank", int64_t{rank}).field("world_size", int64_t{options.grid.world()}).end_object();
  out.emplace_back("distributed_args", args.take());
  JsonWriter info;
  info.begin_object();
  for (const Group& group : groups) {
    info.key(group.name).begin_object().field("group_name", group.kind);
    info.field("group_rank", int64_t{group.index_of(rank)}).list("global_ranks", group.ranks).end_object();
  }
  info.end_object();
  out.emplace_back("parallel_group_info", info.take());
  if (options.pp_info) {
    const bool mindspeed = options.schedule.name == "dualpipe-v-mindspeed";
    JsonWriter pp;
    pp.begin_object().field("pp_type", mindspeed ? std::string("dualpipev") : options.schedule.name);
    pp.field("microbatch_num", int64_t{options.schedule.sizes.micro_batches}).end_object();
    out.emplace_back("pp_info", pp.take());
  }
  return out;
}

}  // namespace stageline::ascend_db
