// The bytes of a pipeline: what every rank holds at its peak, from the replayed order of its cells.
//
//   peak = states + largest over the rank's cells of (activations held there + what the running cell needs) + scratch
//
// Formulas and their sources: docs/reference/plan.md. All are bytes of one device; activations are those of one
// micro-batch.
#pragma once

#include "model/schedule.h"
#include "plan/model.h"

namespace stageline::plan {

enum class Sharding : uint8_t {  // in the order of DeepSpeed's stages
  kReplicated,                   // no sharding
  kDistributed,  // optimizer states over the data-parallel ranks: ZeRO 1, Megatron's distributed optimizer
  kZero2,        // gradients too
  kZero3,        // parameters too: ZeRO 3, FSDP
};

struct MemoryOptions {
  Sharding sharding = Sharding::kDistributed;
  double parameter = 2, gradient = 4, master = 4, moments = 8;  // bytes of one parameter
  bool deepspeed_copy = false;  // a second gradient of 2 bytes, which DeepSpeed's ZeRO 2 shards
  bool fp8 = false, flash = true, fused_loss = true;
  bool scratch = true;       // TransformerEngine's weight gradients for each distinct weight shape
  bool keeps_whole = false;  // with ZeRO 3 and a pipeline, parameters and gradients stay whole all step long (torch)
  bool keeps_sent = false;   // the output sent to the next stage is kept until its backward (torch)
  double imbalance = 1;      // tokens of the fullest expert rank ÷ their mean
  double capacity = 0;       // capacity factor of routed tokens; 0: none
  double w_keeps = -1;       // share of activations that W still needs; below 0: as computed
  double limit = 0, reserve = 4.0 * (1 << 30), fragmentation = 1.05;
};

// The place of one device: degrees of parallelism, and the batch that it computes at once.
struct Layout {
  int32_t tp = 1, cp = 1, ep = 1, etp = 1, pp = 1, dp = 1, micro_batch = 1;
  double sequence = 0;
  double tokens() const { return sequence * micro_batch / cp; }
  bool operator==(const Layout&) const = default;
};

struct States {
  double parameters = 0, gradients = 0, optimizer = 0;
  double sum() const { return parameters + gradients + optimizer; }
  States times(double n) const { return {n * parameters, n * gradients, n * optimizer}; }
  States& operator+=(const States& o) {
    parameters += o.parameters, gradients += o.gradients, optimizer += o.optimizer;
    return *this;
  }
};

// Modules whose outputs are discarded and computed again in the backward.
enum class Module : uint8_t { kLayerNorm, kActivation, kUpProjection, kMlp, kCoreAttention };
inline constexpr size_t kModules = 5;
const char* module_name(Module module, bool moe);  // as Megatron names it

struct LayerBytes {
  States states;
  double act = 0;    // kept for the backward
  double input = 0;  // kept when the whole layer is computed again
  double backward = 0;
  double w_keeps = 1;
  std::array<double, kModules> saved = {};  // what discarding each module's outputs saves
};

// The bytes of a layout, of which those of any stage are sums.
struct LayoutBytes {
  std::vector<LayerBytes> kinds;
  std::vector<double> scratch;  // by the set of kinds that a rank holds, as bits
  States embedding, head;       // head: with the last norm and MTP
  double embedding_act = 0, head_act = 0, head_transient = 0, other = 0;
  double sent = 0;  // a message
};
// O(kinds).
LayoutBytes layout_bytes(const Model& model, const Layout& layout, const MemoryOptions& options);

// The moments of a rank's order at which its memory may peak: no other moment holds at least as much of every chunk.
struct HeldMoment {
  std::vector<int16_t> held;              // micro-batches of each chunk with all their activations
  std::vector<int16_t> waiting;           // of those between their I and their W
  int32_t cell = 0;                       // index in the rank's order
  int16_t chunk = 0, forward_chunk = -1;  // of its backward, −1: none; of its forward
};
using RankHeld = std::vector<HeldMoment>;
// O(cells · moments) for each rank.
std::vector<RankHeld> held_moments(const Schedule& schedule);

// The bytes of one chunk of a rank.
struct ChunkBytes {
  States states{};
  double act = 0, kept_by_w = 0;       // of one micro-batch; of that, what stays between I and W
  double recompute = 0, backward = 0;  // while its backward runs
  double head = 0;                     // logits and what belongs to them, on the last virtual stage
  uint32_t kinds = 0;
};

struct RankPeak {
  States states;
  double activations = 0, recompute = 0, head = 0, scratch = 0, transient = 0, other = 0;
  std::vector<int32_t> held;  // of each chunk
  int32_t cell = -1;          // where the peak is, in the rank's order
  double sum() const { return states.sum() + activations + recompute + head + scratch + transient + other; }
};
// O(moments · chunks).
RankPeak rank_peak(const LayoutBytes& bytes, const RankHeld& moments, const std::vector<ChunkBytes>& chunks);

// The error bar of a peak as factors, by what is behind the formulas (docs/reference/plan.md).
struct PeakBar {
  double low = 1, high = 1;
};
PeakBar peak_bar(const Model& model, const Layout& layout, const MemoryOptions& options);
// Returns the memory that the device must have: the upper end, fragmentation of all but the states, and the reserve.
double needed(const RankPeak& peak, const PeakBar& bar, const MemoryOptions& options);

}  // namespace stageline::plan
