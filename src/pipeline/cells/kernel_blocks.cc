#include "base/parallel.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/kernel_runs.h"
#include "pipeline/cells/problems.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr int64_t kMaxScheduleCells = int64_t{1} << 24;

// The blocks of one step of one replica: stage → its blocks in order of start. A cell number is an index of the
// trace.cells to come.
using StepStages = std::map<int32_t, std::vector<KernelBlock*>>;

bool same_order(const std::vector<KernelBlock*>& blocks, const RankOrder& order) {
  size_t at = 0;
  for (const KernelBlock* block : blocks) {
    if (!is_compute(block->kind)) continue;
    if (at >= order.size() || order[at].overlapped() || order[at].actions()[0].kind != block->kind) return false;
    ++at;
  }
  return at == order.size();
}

// Numbers the blocks' micro-batches by a schedule that all stages follow; false when no known schedule fits.
bool number_by_schedule(const StepStages& stages, int32_t stage_count) {
  int32_t forwards = 0;
  for (const KernelBlock* block : stages.begin()->second) forwards += block->kind == CellKind::kForward;
  for (const char* name : {"1f1b", "fthenb"}) {
    const ScheduleDef* const def = find_schedule(name);
    if (def == nullptr || forwards == 0 || int64_t{stage_count} * forwards * 2 > kMaxScheduleCells) continue;
    ScheduleSizes sizes{.stages = stage_count, .micro_batches = forwards};
    const Result<Schedule> schedule = def->make(sizes);
    if (!schedule) continue;
    const bool fits = std::ranges::all_of(stages, [&](const auto& of) {
      return of.first >= 0 && of.first < stage_count && same_order(of.second, schedule->ranks[of.first]);
    });
    if (!fits) continue;
    for (const auto& [stage, blocks] : stages) {
      size_t at = 0;
      for (KernelBlock* block : blocks)
        if (is_compute(block->kind)) block->micro_batch = schedule->ranks[stage][at++].actions()[0].micro_batch;
      // When all forwards come first, backwards may run in the same order or in reverse, and the order of kinds does
      // not show which.
      if (def->name == std::string_view("fthenb") && forwards > 1)
        for (KernelBlock* block : blocks)
          if (block->kind == CellKind::kBackward) block->micro_batch = kUnknown;
    }
    return true;
  }
  return false;
}

// Returns true when no forward starts before the same forward of the previous stage did, and no backward before that of
// the next stage.
bool in_causal_order(const StepStages& stages) {
  std::map<std::pair<CellKind, int32_t>, int64_t> last;  // the starts on the stage looked at before
  for (const auto& [stage, blocks] : stages) {
    std::map<std::pair<CellKind, int32_t>, int64_t> here;
    for (const KernelBlock* block : blocks) {
      if (!is_compute(block->kind) || block->micro_batch == kUnknown) continue;
      const std::pair key(block->kind, block->micro_batch);
      here[key] = block->start_ns;
      const auto before = last.find(key);
      if (before == last.end()) continue;
      const bool forward = block->kind == CellKind::kForward;
      if (forward ? block->start_ns < before->second : block->start_ns > before->second) return false;
    }
    last = std::move(here);
  }
  return true;
}

void forget_numbers(const StepStages& stages) {
  for (const auto& [stage, blocks] : stages)
    for (KernelBlock* block : blocks) block->micro_batch = kUnknown;
}

struct Proof {
  int64_t numbered = 0, unproven = 0, acausal = 0;
};

Proof number_blocks(const Trace& trace, std::vector<PartBlocks>& parts, const RankLayout& layout) {
  std::map<std::pair<int32_t, int32_t>, StepStages> steps;  // key: (replica, step)
  for (size_t p = 0; p < parts.size(); ++p)
    for (KernelBlock& block : parts[p].blocks) steps[{layout.dp[p], block.step}][layout.stage[p]].push_back(&block);
  Proof proof;
  for (const auto& [key, stages] : steps) {
    const bool acausal = number_by_schedule(stages, layout.stages) && trace.comparable() && !in_causal_order(stages);
    if (acausal) forget_numbers(stages);
    for (const auto& [stage, list] : stages)
      for (const KernelBlock* block : list)
        if (is_compute(block->kind))
          ++(acausal ? proof.acausal : block->micro_batch == kUnknown ? proof.unproven : proof.numbered);
  }
  return proof;
}

// The content of a message follows from the blocks around it: the result of the block before, or the input of the block
// after.
void add_messages(const PartBlocks& part, int32_t part_index, int32_t stage, int32_t stages, Cells& cells) {
  std::vector<const KernelBlock*> work;
  for (const KernelBlock& block : part.blocks)
    if (is_compute(block.kind)) work.push_back(&block);
  size_t next = 0;
  for (size_t m = 0; m < part.messages.size(); ++m) {
    const PipelineMessage& message = part.messages[m];
    while (next < work.size() && work[next]->start_ns < message.start_ns) ++next;
    // If several operations follow each other, sends carry the result of the block before, and receives bring the input
    // of the block after.
    const KernelBlock* const before = next > 0 ? work[next - 1] : nullptr;
    const KernelBlock* const after = next < work.size() ? work[next] : nullptr;
    Cell cell{.part = part_index, .start_ns = message.start_ns, .end_ns = message.end_ns, .slice = message.slice};
    const auto add = [&](const KernelBlock& block, CellKind kind) {
      if (block.step != message.step) return;
      cell.kind = kind;
      cell.step = block.step;
      cell.micro_batch = block.micro_batch;
      cells.add(cell);
    };
    if (message.may_send && before != nullptr) {
      if (before->kind == CellKind::kForward && stage + 1 < stages) add(*before, CellKind::kSendForward);
      if (before->kind == CellKind::kBackward && stage > 0) add(*before, CellKind::kSendBackward);
    }
    if (message.may_receive && after != nullptr) {
      if (after->kind == CellKind::kForward && stage > 0) add(*after, CellKind::kRecvForward);
      if (after->kind == CellKind::kBackward && stage + 1 < stages) add(*after, CellKind::kRecvBackward);
    }
  }
}

void say(Trace& trace, const std::vector<PartBlocks>& parts, const Proof& proof) {
  Diagnostics& notes = trace.diagnostics;
  PartBlocks sum;
  int64_t blocks = 0, without = 0;
  for (const PartBlocks& part : parts) {
    blocks += static_cast<int64_t>(part.blocks.size());
    without += part.kernels == 0;
    sum.small += part.small;
    sum.cut += part.cut;
  }
  notes.add(problem::cells_from_kernels, {}, blocks);
  notes.add(problem::cells_kernel_border, {}, sum.cut);
  notes.add(problem::cells_small_runs, {}, sum.small);
  notes.add(problem::cells_kernels_numbered, {}, proof.numbered);
  notes.add(problem::cells_kernels_unproven, {}, proof.unproven);
  notes.add(problem::cells_kernels_unproven_acausal, {}, proof.acausal);
  notes.add(problem::cells_ranks_without_kernels, {}, without);
}

}  // namespace

bool find_kernel_blocks(Trace& trace, const RankLayoutOptions& options) {
  const RankLayout layout = known_layout(trace, options);
  if (layout.stages < 2) return false;
  std::vector<PartBlocks> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) {
    if (layout.stage[p] != kUnknown) parts[p] = find_part_blocks(trace, p, layout.stage[p], layout.stages);
  });
  bool any = false, gradients = false;
  int64_t overlapped = 0;
  for (const PartBlocks& part : parts) {
    any |= !part.blocks.empty();
    gradients |= part.gradients;
    overlapped += part.overlapped;
  }
  trace.diagnostics.add(problem::cells_kernels_overlap, {}, overlapped);
  if (!any) return false;
  if (!gradients) {
    trace.diagnostics.add(problem::cells_no_gradients);
    return false;
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    trace.parts[p].stage = layout.stage[p];
    trace.parts[p].dp = layout.dp[p];
  }
  trace.pipeline_stages = layout.stages;
  const Proof proof = number_blocks(trace, parts, layout);
  for (uint32_t p = 0; p < parts.size(); ++p) {
    for (const KernelBlock& block : parts[p].blocks) {
      trace.cells.add({.step = block.step,
                       .part = static_cast<int32_t>(p),
                       .kind = block.kind,
                       .micro_batch = block.micro_batch,
                       .start_ns = block.start_ns,
                       .end_ns = block.end_ns,
                       .slice = block.slice});
    }
    add_messages(parts[p], p, layout.stage[p], layout.stages, trace.cells);
  }
  trace.cells.sort();
  trace.diagnostics.add(problem::cells_stages, Args().count("stages", layout.stages).set("how", layout.how));
  say(trace, parts, proof);
  return true;
}

}  // namespace stageline
