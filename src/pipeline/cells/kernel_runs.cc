#include "pipeline/cells/kernel_runs.h"

namespace stageline {
namespace {

// At most this share of the messages' time may overlap kernels: the timestamps of tasks are a little early or late.
constexpr double kMaxOverlap = 0.05;
// Runs shorter than this share of the median run are not blocks; they are small work between two messages, as scaling a
// loss or taking the norm of gradients.
constexpr double kSmallShare = 0.05;
// The kernels after the last gradient of a run are a forward block if they take more than this share of the median
// forward.
constexpr double kForwardShare = 0.5;
constexpr int kOwnersClimbed = 64;

bool makes_gradients(std::string_view name) {
  return (mentions(name, "Grad") || mentions(name, "Backward") || mentions(name, "_grad") ||
          mentions(name, "backward")) &&
         !mentions(name, "ClipGrad") && !mentions(name, "clip_grad");
}
bool is_optimizer(std::string_view name) {
  for (const std::string_view word : {"Adam", "adam", "Momentum", "ApplySgd", "SGD", "Lamb", "Muon", "ForeachNorm"})
    if (mentions(name, word)) return true;
  return false;
}

enum class Talk : uint8_t { kNone, kSend, kReceive, kBoth };
Talk talk_of(std::string_view name) {
  std::string low = to_lower(name);
  if (low.starts_with("hccl")) low.erase(0, 4);
  if (mentions(low, "batchsendrecv")) return Talk::kBoth;
  if (low.starts_with("send")) return Talk::kSend;
  return low.starts_with("recv") || low.starts_with("receive") ? Talk::kReceive : Talk::kNone;
}

// Returns true when the description contains a pipeline's name: "pp", "mesh_pp", "pipeline_model_parallel_group". An
// empty description counts as well, since the caller knows that there are stages.
bool is_pipeline_group(std::string_view description) {
  return description.empty() || description == "pp" || description.ends_with("_pp") || description.starts_with("pp_") ||
         mentions(description, "pipeline") || mentions(description, "PIPELINE");
}

struct Kernel {
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = 0;
  int32_t step = 0;
  bool gradient = false, optimizer = false;
};

class BlockFinder {
 public:
  BlockFinder(const Trace& trace, const Part& part, int32_t stage, int32_t stages)
      : trace_(trace), part_(part), s_(part.slices), stage_(stage), stages_(stages) {}

  PartBlocks find() {
    collect();
    out_.kernels = kernels_.size();
    if (kernels_.empty() || out_.messages.empty() || messages_overlap()) return std::move(out_);
    cut_runs();
    auto lengths = mapped<int64_t>(runs_, [&](const Run& run) { return busy(run.begin, run.end); });
    if (lengths.empty()) return std::move(out_);
    std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
    median_ns_ = lengths[lengths.size() / 2];
    measure_forward();
    for (const Run& run : runs_) take(run);
    return std::move(out_);
  }

 private:
  struct Run {
    size_t begin = 0, end = 0;  // positions in kernels_
    int32_t step = 0;
  };

  std::optional<int32_t> step_of(size_t slice) const {
    const uint16_t step = s_.step[slice];
    if (step == 0) return part_.steps.empty() ? std::optional<int32_t>(0) : std::nullopt;
    return static_cast<int32_t>(part_.steps[step - 1u].number);
  }

  // Decides by the kernel's name, else by the operators that own it.
  bool gradient_of(size_t slice) {
    const auto [known, added] = gradient_name_.try_emplace(s_.name_id[slice]);
    if (added) known->second = makes_gradients(trace_.names.text(s_.name_id[slice]));
    if (known->second) return true;
    uint32_t at = s_.parent[slice];
    for (int climbed = 0; at != kNoSliceIndex && climbed < kOwnersClimbed; ++climbed, at = s_.parent[at]) {
      const auto [owner, fresh] = backward_name_.try_emplace(s_.name_id[at]);
      if (fresh) owner->second = mentions(trace_.names.text(s_.name_id[at]), "Backward");
      if (owner->second) return true;
    }
    return false;
  }

  void collect() {
    for (const Lane& lane : part_.lanes) {
      if (lane.kind != LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (trace_.categories[s_.category_id[i]].kind != Category::kKernel) continue;
        const std::optional<int32_t> step = step_of(i);
        if (!step) continue;
        if (s_.class_of(i) == KernelClass::kComputation) {
          const bool optimizer = is_optimizer(trace_.names.text(s_.name_id[i]));
          kernels_.push_back(
              {s_.start_ns[i], s_.end_ns(i), static_cast<uint32_t>(i), *step, !optimizer && gradient_of(i), optimizer});
        } else if (const CollectiveFact* fact = fact_of(part_.collectives, static_cast<uint32_t>(i))) {
          const Talk talk = talk_of(trace_.names.text(fact->name));
          if (talk == Talk::kNone || !is_pipeline_group(trace_.names.text(fact->group_description))) continue;
          out_.messages.push_back({static_cast<uint32_t>(i), *step, s_.start_ns[i], s_.end_ns(i),
                                   talk != Talk::kReceive, talk != Talk::kSend});
        }
      }
    }
    const auto by_start = [](const auto& a, const auto& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.slice < b.slice;
    };
    std::ranges::sort(kernels_, by_start);
    std::ranges::sort(out_.messages, by_start);
    for (const Kernel& kernel : kernels_) out_.gradients |= kernel.gradient;
  }

  // Both lists are in order, so each kernel is looked at a few times at most: a message is long and kernels are short.
  bool messages_overlap() {
    int64_t total = 0, beside = 0;
    size_t k = 0;
    int64_t reached = INT64_MIN;  // end of the messages so far, which may overlap each other
    for (const PipelineMessage& message : out_.messages) {
      const int64_t from = std::max(message.start_ns, reached);
      if (message.end_ns <= from) continue;
      reached = message.end_ns;
      total += message.end_ns - from;
      while (k < kernels_.size() && kernels_[k].end_ns <= from) ++k;
      int64_t at = from;
      for (; k < kernels_.size() && kernels_[k].start_ns < message.end_ns; ++k) {
        at = std::max(at, kernels_[k].start_ns);
        const int64_t end = std::min(kernels_[k].end_ns, message.end_ns);
        beside += std::max<int64_t>(0, end - at);
        at = std::max(at, end);
        if (kernels_[k].end_ns > message.end_ns) break;
      }
    }
    if (beside <= kMaxOverlap * total) return false;
    out_.overlapped = out_.messages.size();
    return true;
  }

  void cut_runs() {
    size_t m = 0;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      bool cut = runs_.empty() || runs_.back().step != kernels_[k].step;
      for (; m < out_.messages.size() && out_.messages[m].start_ns <= kernels_[k].start_ns; ++m) cut = true;
      if (cut) runs_.push_back({k, k, kernels_[k].step});
      runs_.back().end = k + 1;
    }
  }

  int64_t busy(size_t begin, size_t end) const {
    int64_t sum = 0;
    for (size_t k = begin; k < end; ++k) sum += kernels_[k].end_ns - kernels_[k].start_ns;
    return sum;
  }
  bool small(size_t begin, size_t end) const { return busy(begin, end) < kSmallShare * median_ns_; }

  // Sets forward_ns_ to the median of what is certainly forward work: runs without gradient or optimizer kernels.
  void measure_forward() {
    std::vector<int64_t> lengths;
    for (const Run& run : runs_) {
      bool plain = !small(run.begin, run.end);
      for (size_t k = run.begin; k < run.end; ++k) plain = plain && !kernels_[k].gradient && !kernels_[k].optimizer;
      if (plain) lengths.push_back(busy(run.begin, run.end));
    }
    if (lengths.empty()) return;
    std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
    forward_ns_ = lengths[lengths.size() / 2];
  }

  void add(CellKind kind, size_t begin, size_t end, int32_t step) {
    if (begin >= end) return;
    KernelBlock block{.kind = kind, .step = step, .start_ns = kernels_[begin].start_ns};
    block.end_ns = block.start_ns;
    for (size_t k = begin; k < end; ++k) block.end_ns = std::max(block.end_ns, kernels_[k].end_ns);
    block.slice = kernels_[begin].slice;
    out_.blocks.push_back(block);
  }

  void take(const Run& run) {
    size_t end = run.end;  // where the optimizer begins
    for (size_t k = run.begin; k < run.end && end == run.end; ++k)
      if (kernels_[k].optimizer) end = k;
    size_t first = end, last = end;  // the first and the last gradient kernel
    for (size_t k = run.begin; k < end; ++k) {
      if (!kernels_[k].gradient) continue;
      if (first == end) first = k;
      last = k;
    }
    if (run.begin < end && small(run.begin, end)) {
      ++out_.small;
    } else if (first == end) {
      add(CellKind::kForward, run.begin, end, run.step);
    } else if (stage_ == stages_ - 1) {
      const bool forward = !small(run.begin, first);
      if (forward) add(CellKind::kForward, run.begin, first, run.step);
      out_.cut += forward;
      add(CellKind::kBackward, forward ? first : run.begin, end, run.step);
    } else {
      const bool forward = stage_ == 0 && forward_ns_ > 0 && busy(last + 1, end) > kForwardShare * forward_ns_;
      add(CellKind::kBackward, run.begin, forward ? last + 1 : end, run.step);
      if (forward) add(CellKind::kForward, last + 1, end, run.step);
      out_.cut += forward;
    }
    add(CellKind::kOptimizer, end, run.end, run.step);
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  int32_t stage_, stages_;
  std::vector<Kernel> kernels_;
  std::vector<Run> runs_;
  std::unordered_map<uint32_t, bool> gradient_name_, backward_name_;  // for each name
  int64_t median_ns_ = 0, forward_ns_ = 0;
  PartBlocks out_;
};

}  // namespace

PartBlocks find_part_blocks(const Trace& trace, size_t part, int32_t stage, int32_t stages) {
  return BlockFinder(trace, trace.parts[part], stage, stages).find();
}

}  // namespace stageline
