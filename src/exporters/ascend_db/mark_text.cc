#include "exporters/ascend_db/mark_text.h"

#include "base/json_writer.h"

namespace stageline::ascend_db {
namespace {

// The guide numbers micro-batch i of chunk c in DualPipeV as c·m + i, and it does spell "overlaping" in this way. The
// chunks of DualPipe are directions, with micro-batches of their own.
std::string guide_text(const AscendDbOptions& o, const Block& b) {
  const bool halves = o.schedule.name.starts_with("dualpipe");
  if (b.mark == Mark::kWeight || b.mark == Mark::kEmptyPop) return "{'name': 'WeightGradStore.pop'}";
  if (!halves) return b.mark == Mark::kForward ? "{'name': 'forward_step'}" : "{'name': 'backward_step'}";
  if (b.mark == Mark::kBackward || b.mark == Mark::kLogits) return "{'name': 'backward_step_with_model_graph'}";
  const bool counts_on = o.schedule.layout == ChunkLayout::kV;
  const int32_t number = (counts_on ? b.chunk * o.schedule.sizes.micro_batches : 0) + b.micro_batch;
  return std::string("{'name': '") +
         (b.mark == Mark::kForward ? "forward_step_with_model_graph" : "forward_backward_overlaping") +
         "', 'current_microbatch': " + std::to_string(number) + "}";
}

std::string helper_text(const AscendDbOptions& o, const Block& b, int32_t stage) {
  const bool halves = o.schedule.name.starts_with("dualpipe");
  JsonWriter json;
  json.begin_object();
  switch (b.mark) {
    case Mark::kForward: json.field("name", halves ? "forward_step_with_model_graph" : "forward_step"); break;
    case Mark::kOverlap: json.field("name", "forward_backward_overlaping"); break;
    case Mark::kWeight:
    case Mark::kEmptyPop: json.field("name", "WeightGradStore.pop"); break;
    case Mark::kBackward:
    case Mark::kLogits: json.field("name", halves ? "backward_step_with_model_graph" : "backward_step"); break;
  }
  if (b.mark != Mark::kEmptyPop && b.mark != Mark::kLogits) {
    json.field("micro_batch", int64_t{b.micro_batch});
    if (o.schedule.sizes.chunks > 1) json.field("chunk", int64_t{b.chunk});
  }
  json.field("stage", int64_t{stage}).field("step", o.first_step + b.step).end_object();
  return json.take();
}

}  // namespace

std::string mark_text(const AscendDbOptions& o, const Block& block, int32_t stage) {
  return o.marks == AscendMarks::kGuide ? guide_text(o, block) : helper_text(o, block, stage);
}

}  // namespace stageline::ascend_db
