#include "base/json_members.h"
#include "compat/msprof/cell_ranks.h"
#include "compat/msprof/dualpipev_rows.h"
#include "model/intervals.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

using What = DualPipeVRow::What;

// Accepts "dualpipev", "DualPipeV" and "dualpipe-v-mindspeed".
bool is_dualpipev(std::string text) {
  std::erase_if(text, [](char c) { return c == '-' || c == '_' || c == ' '; });
  text = to_lower(text);
  return text == "dualpipev" || text == "dualpipevmindspeed";
}

bool has_pairs(const Trace& trace) {
  const std::vector<uint32_t> pairs = overlapped_pairs(trace.cells);
  return std::ranges::any_of(pairs, [](uint32_t p) { return p != kNoPair; });
}

// Returns true where every forward and backward has its number, and all belong to one chunk.
bool numbered_in_one_chunk(const Trace& trace) {
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i)
    if (is_compute(cells.kind[i]) && (cells.chunk[i] != 0 || cells.micro_batch[i] < 0)) return false;
  return cells.size() > 0;
}

// The phase of every forward and backward of a stage, by their numbers.
struct Phases {
  std::vector<DualPipeVRow> rows;
  std::map<int32_t, int8_t> of_forward, of_backward;
  std::map<int32_t, bool> forward_alone;
};

Phases phases_of(const LabelPlan& plan, int32_t stage) {
  Phases phases;
  // A count typed by hand must not ask for gigabytes: beyond this limit blocks have names, but all of them have type 0.
  constexpr int64_t kMaxRows = 10'000'000;
  if (dualpipev_row_count(plan.stages, plan.micro_batches, stage) > kMaxRows) return phases;
  for (const DualPipeVRow& row : dualpipev_rows(plan.stages, plan.micro_batches, stage)) {
    if (plan.apart && row.what == What::kLogits) continue;
    phases.rows.push_back(row);
    if (!plan.apart || row.what != What::kOverlap) continue;
    phases.rows.back() = {What::kForward, row.phase, row.forward, -1};
    phases.rows.push_back({What::kBackward, row.phase, -1, row.backward});
  }
  for (const DualPipeVRow& row : phases.rows) {
    if (row.forward >= 0) phases.of_forward[row.forward] = row.phase;
    if (row.backward >= 0) phases.of_backward[row.backward] = row.phase;
    if (row.what == What::kForwardAlone) phases.forward_alone[row.forward] = true;
  }
  return phases;
}

struct Block {
  int64_t start_ns, end_ns;
  int32_t step;
  DualPipeVRow row;
  bool known;
};

std::string plain_name(What what) {
  switch (what) {
    case What::kForward:
    case What::kForwardAlone: return "F";
    case What::kBackward: return "B";
    case What::kInput: return "b";
    case What::kWeight: return "W";
    case What::kOverlap: return "F+B";
    case What::kLogits: return "logits";
  }
  return "";
}

std::optional<What> what_of(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return What::kForward;
    case CellKind::kBackward: return What::kBackward;
    case CellKind::kInputGrad: return What::kInput;
    case CellKind::kWeightGrad: return What::kWeight;
    case CellKind::kForwardBackward: return What::kOverlap;
    default: return std::nullopt;
  }
}

// Returns micro-batch numbers that run on over the chunks; −1 where they are not known.
int32_t number_of(const Cell& cell, int32_t micro_batches) {
  if (cell.micro_batch < 0 || cell.chunk < 0 || (cell.chunk > 0 && micro_batches <= 0)) return -1;
  const int64_t number = int64_t{cell.chunk} * micro_batches + cell.micro_batch;
  return number > INT32_MAX ? -1 : static_cast<int32_t>(number);
}

std::vector<Block> blocks_of(const Trace& trace, std::span<const uint32_t> cells,
                             const std::vector<uint32_t>& overlapped, const LabelPlan& plan, const int64_t* only_step) {
  std::vector<Block> blocks;
  for (const uint32_t i : cells) {
    if (only_step && trace.cells.step[i] != *only_step) continue;
    const Cell cell = trace.cells.at(i);
    DualPipeVRow row;
    if (const auto what = what_of(cell.kind)) row.what = *what;
    else continue;
    const int32_t number = number_of(cell, plan.micro_batches);
    bool known = number >= 0;
    (row.what == What::kForward ? row.forward : row.backward) = number;
    if (const uint32_t other = overlapped[i]; other != kNoPair) {
      if (row.what != What::kForward) continue;  // its forward stands for both
      row.what = What::kOverlap;
      row.backward = number_of(trace.cells.at(other), plan.micro_batches);
      known = known && row.backward >= 0;
    } else if (row.what == What::kOverlap) {
      known = false;  // two blocks of work have the same number
    }
    blocks.push_back({cell.start_ns, cell.end_ns, cell.step, row, known});
  }
  sort_stably(blocks, {}, &Block::start_ns);
  return blocks;
}

// MindSpeed's first stage marks the gradient of the logits as a backward of its own. So the same micro-batch goes
// backward twice, and the first of these is the logits.
void tell_logits(std::vector<Block>& blocks) {
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    Block& block = blocks[i];
    const Block& next = blocks[i + 1];
    if (block.known && next.known && block.row.what == What::kBackward && next.row.what != What::kWeight &&
        block.step == next.step && block.row.backward == next.row.backward)
      block.row = {What::kLogits};
  }
}

int32_t phase_of(const Phases& phases, const Block& block, int32_t before) {
  const auto find = [&](const std::map<int32_t, int8_t>& of, int32_t number) -> std::optional<int32_t> {
    const auto at = of.find(number);
    if (at == of.end()) return std::nullopt;
    return at->second;
  };
  // A block that is not known belongs to the phase around it.
  if (!block.known || block.row.what == What::kLogits) return before;
  const bool forward = block.row.what == What::kForward || block.row.what == What::kOverlap;
  return (forward ? find(phases.of_forward, block.row.forward) : find(phases.of_backward, block.row.backward))
      .value_or(before);
}

std::string why(const DualPipeVRow& expected, const Block& found) {
  if (found.row.what == What::kInput && expected.what == What::kBackward)
    return "its weight gradient runs apart (dw-detach)";
  if (found.row.what == What::kWeight) return "a weight gradient apart (dw-detach, or an empty WeightGradStore.pop)";
  if (!found.known) return "nothing proves which micro-batch this is";
  return "blocks are missing, added or in another order";
}

// Names a block as every other output does: "F3.c1", "F3.c0&B1.c1", "I2.c0".
std::string cell_name(const DualPipeVRow& row, int32_t micro_batches) {
  const auto number = [&](const char* kind, int32_t n) {
    if (n < 0 || micro_batches <= 0) return std::string(kind);
    return kind + std::to_string(n % micro_batches) + ".c" + std::to_string(n / micro_batches);
  };
  switch (row.what) {
    case What::kForward:
    case What::kForwardAlone: return number("F", row.forward);
    case What::kBackward: return number("B", row.backward);
    case What::kInput: return number("I", row.backward);
    case What::kWeight: return number("W", row.backward);
    case What::kOverlap: return number("F", row.forward) + "&" + number("B", row.backward);
    case What::kLogits: return "the loss's backward";
  }
  return "";
}

// Reports the first row of the first step that differs.
void compare(const std::vector<Block>& blocks, const std::vector<DualPipeVRow>& expected, int32_t micro_batches,
             CellLabels& out) {
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    while (end < blocks.size() && blocks[end].step == blocks[begin].step) ++end;
    const size_t count = end - begin;
    const auto name = [](const Block& b) { return b.known ? b.row.name() : plain_name(b.row.what); };
    for (size_t k = 0; k < std::max(count, expected.size()); ++k) {
      if (k < count && k < expected.size() && name(blocks[begin + k]) == expected[k].name()) continue;
      const auto found = [&] {
        DualPipeVRow row = blocks[begin + k].row;
        if (!blocks[begin + k].known) row.forward = row.backward = -1;
        return cell_name(row, micro_batches) + " (" + name(blocks[begin + k]) + " in the table)";
      };
      std::string text = "step " + std::to_string(blocks[begin].step) + ", row " + std::to_string(k + 1) + ": ";
      text += k < expected.size() ? cell_name(expected[k], micro_batches) : "its end";
      text += " was expected, " + (k < count ? found() : std::string("the end")) + " was found; ";
      text += k >= count             ? "blocks are missing"
              : k >= expected.size() ? "blocks are too many"
                                     : why(expected[k], blocks[begin + k]);
      out.remarks.push_back(std::move(text));
      return;
    }
  }
}

}  // namespace

LabelPlan label_plan(const Trace& trace, const std::string& schedule, int32_t micro_batches) {
  LabelPlan plan;
  std::string kind = schedule;
  plan.micro_batches = micro_batches;
  for (const Part& part : trace.parts) {
    const std::string_view info = meta_json(part, "pp_info");
    if (kind.empty()) kind = json_text(json_member(info, "pp_type"));
    if (const auto m = json_integer(json_member(info, "microbatch_num"));
        m && plan.micro_batches == 0 && *m > 0 && *m <= kMaxMicroBatches)
      plan.micro_batches = static_cast<int32_t>(*m);
  }
  const Extent extent = extent_of(trace);
  // The micro-batches that ran count, whatever pp_info says.
  if (micro_batches == 0 && extent.micro_batch_count > 0) plan.micro_batches = extent.micro_batch_count;
  if (schedule.empty() && is_dualpipev(kind) && numbered_in_one_chunk(trace)) kind.clear();
  plan.stages = trace.pipeline_stages > 0 ? trace.pipeline_stages : extent.stage_count;
  // Among users of this profiler, no other schedule overlaps forwards and backwards of two chunks.
  const bool pairs = has_pairs(trace);
  plan.dualpipev = kind.empty() ? pairs && extent.chunk_count == 2 : is_dualpipev(kind);
  plan.apart = plan.dualpipev && !pairs;
  return plan;
}

CellLabels label_cells(const Trace& trace, int32_t part, std::span<const uint32_t> cells,
                       const std::vector<uint32_t>& overlapped, const LabelPlan& plan, const int64_t* only_step) {
  CellLabels out;
  std::vector<Block> blocks = blocks_of(trace, cells, overlapped, plan, only_step);
  Phases phases;
  if (plan.dualpipev) tell_logits(blocks);
  if (plan.dualpipev) phases = phases_of(plan, trace.parts[part].stage);
  for (Block& block : blocks)
    if (block.row.what == What::kForward && phases.forward_alone.count(block.row.forward))
      block.row.what = What::kForwardAlone;
  int32_t before = 0;
  out.blocks.rows.resize(blocks.size());
  // Goes from the back, since the gradient of the logits belongs to what follows it.
  for (size_t i = blocks.size(); i-- > 0;) {
    const Block& block = blocks[i];
    std::string name = block.known ? block.row.name() : plain_name(block.row.what);
    int32_t type = block.row.what == What::kForward || block.row.what == What::kOverlap ? 0 : 1;
    if (plan.dualpipev) type = before = phase_of(phases, block, before);
    else if (block.known && block.row.what == What::kForward) name += "F";
    out.unlabelled += !block.known;
    out.blocks.rows[i] = {block.start_ns, block.end_ns, out.blocks.name_id(name), type};
  }
  if (plan.dualpipev && !phases.rows.empty()) compare(blocks, phases.rows, plan.micro_batches, out);
  return out;
}

}  // namespace stageline
