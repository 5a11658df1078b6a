#include "readers/common/ranks.h"
#include "readers/otlp/problems.h"
#include "readers/otlp/span_file.h"

namespace stageline::otlp {
namespace {

// One iteration of one rank.
struct Iteration {
  int64_t start_ns = 0, end_ns = 0;
  int32_t number = kUnknown;
  int32_t micro_batches = kUnknown;
  bool superseded = false;                  // the rank ran this number again later, from a checkpoint
  std::vector<size_t> forwards, backwards;  // spans, by start
};

class Pipeline {
 public:
  Pipeline(const Run& run, Trace& trace) : run_(run), trace_(trace) {
    const auto id = [&](const char* name) { return trace.names.intern(name); };
    forward_ = id("megatron.microbatch.forward");
    backward_ = id("megatron.microbatch.backward");
    iteration_ = id("megatron.train.iteration");
    forward_backward_ = id("megatron.train.iteration.forward_backward");
    messages_ = {id("megatron.p2p.recv_forward"), id("megatron.p2p.recv_backward"), id("megatron.p2p.send_forward"),
                 id("megatron.p2p.send_backward")};
  }

  std::vector<Op> ops() {
    const bool any = std::ranges::any_of(run_.spans, [&](const Span& span) {
      return of(span).rank != kUnknown && (span.kind || span.name_id == forward_ || span.name_id == backward_);
    });
    if (!any) return {};
    gather_iterations();
    add_spans();
    for (auto& [rank, iterations] : iterations_)
      for (Iteration& one : iterations) count_micro_batches(one);
    find_chunks();
    for (const auto& [rank, iterations] : iterations_)
      for (const Iteration& one : iterations) number(one);
    trace_.diagnostics.add(problem::otlp_other_services, {}, without_rank_);
    trace_.diagnostics.add(problem::otlp_outside_steps, {}, outside_);
    trace_.diagnostics.add(problem::otlp_truncated_span, {}, truncated_);
    const bool has_cells = std::ranges::any_of(ops_, &Op::is_cell);
    return has_cells ? std::move(ops_) : std::vector<Op>();
  }

 private:
  const Resource& of(const Span& span) const { return run_.resources[span.resource]; }
  static int32_t rank_of(const Resource& resource) { return static_cast<int32_t>(resource.rank); }

  // The iteration of a rank in which a span lies. A truncated iteration counts: its start is true.
  Iteration* iteration_at(int32_t rank, const Span& span) {
    std::vector<Iteration>& all = iterations_[rank];
    const auto next = std::ranges::upper_bound(all, span.start_ns, {}, &Iteration::start_ns);
    if (next == all.begin() || std::prev(next)->end_ns < span.end_ns) return nullptr;
    return &*std::prev(next);
  }

  void gather_iterations() {
    for (const Span& span : run_.spans)
      if (span.name_id == iteration_ && span.iteration != kUnknown && of(span).rank != kUnknown) {
        Iteration& one = iterations_[rank_of(of(span))].emplace_back();
        one.start_ns = span.start_ns;
        one.end_ns = span.end_ns;
        one.number = span.iteration;
      }
    int64_t superseded = 0;
    for (auto& [rank, all] : iterations_) {
      std::map<int32_t, Iteration*> last;
      for (Iteration& one : all) {
        Iteration*& before = last[one.number];
        if (before) before->superseded = true;
        superseded += before != nullptr;
        before = &one;
      }
    }
    trace_.diagnostics.add(problem::otlp_repeated_step, {}, superseded);
    for (const Span& span : run_.spans)
      if (span.name_id == forward_backward_ && span.micro_batches > 0 && of(span).rank != kUnknown)
        if (Iteration* const one = iteration_at(rank_of(of(span)), span)) one->micro_batches = span.micro_batches;
  }

  void add_spans() {
    for (const Span& span : run_.spans) {
      const Resource& resource = of(span);
      if (resource.rank == kUnknown) {
        ++without_rank_;
        continue;
      }
      Op op{.start_ns = span.start_ns, .end_ns = span.end_ns, .rank = rank_of(resource)};
      // Ranks are counted tensor, context, expert, data, pipeline: neighbours of one stage stand together.
      const int64_t of_stage = resource.pipeline_size > 0 ? resource.world_size / resource.pipeline_size : 0;
      if (!named_ && of_stage > 0 && of_stage * resource.pipeline_size == resource.world_size &&
          op.rank < resource.world_size) {
        op.stage = static_cast<int32_t>(op.rank / of_stage);
        op.dp = static_cast<int32_t>(op.rank % of_stage);
      }
      op.name_id = span.name_id;
      op.file = span.file;
      op.file_index = span.file_index;
      op.is_cell = false;
      const bool message = std::ranges::find(messages_, span.name_id) != messages_.end();
      op.lane = message ? kind_lane(CellKind::kSendForward) : kind_lane(CellKind::kOther);
      truncated_ += span.truncated;
      if (span.kind) {
        op.is_cell = true;
        op.kind = *span.kind;
        op.lane = kind_lane(op.kind);
        op.step = span.step;
        op.chunk = span.chunk;
        op.micro_batch = span.own_micro_batch;
        if (span.stage != kUnknown) op.stage = span.stage, op.dp = kUnknown;
      } else if (span.name_id == forward_ || span.name_id == backward_) {
        op.kind = span.name_id == forward_ ? CellKind::kForward : CellKind::kBackward;
        op.lane = kind_lane(op.kind);
        Iteration* const one = span.truncated ? nullptr : iteration_at(op.rank, span);
        outside_ += one == nullptr && !span.truncated;
        if (one && !one->superseded)
          (op.kind == CellKind::kForward ? one->forwards : one->backwards).push_back(ops_.size());
      }
      ops_.push_back(op);
      resources_.push_back(&resource);
    }
  }

  // Where no span says how many micro-batches there are, the sizes of the run do.
  void count_micro_batches(Iteration& one) {
    if (one.micro_batches != kUnknown || one.forwards.empty()) return;
    const Resource& sizes = *resources_[one.forwards.front()];
    const int64_t together = sizes.micro_batch_size * sizes.data_size;
    if (together > 0 && sizes.batch_size % together == 0 && sizes.batch_size / together <= kMaxMicroBatchNumber)
      one.micro_batches = static_cast<int32_t>(sizes.batch_size / together);
  }

  static bool is_whole(const Iteration& one) {
    return one.micro_batches > 0 && !one.forwards.empty() && one.forwards.size() == one.backwards.size() &&
           one.forwards.size() % one.micro_batches == 0;
  }
  int64_t chunks_of(const Iteration& one) const { return is_whole(one) ? one.forwards.size() / one.micro_batches : 0; }

  // The number of chunks is that of most iterations. The size of a group follows from the forwards before the first
  // backward, which are all of them or 2 · (stages after this) + (chunks − 1) · group + 1.
  void find_chunks() {
    std::map<int64_t, int64_t> votes;
    for (const auto& [rank, iterations] : iterations_)
      for (const Iteration& one : iterations)
        if (chunks_of(one) > 0) ++votes[chunks_of(one)];
    for (const auto& [count, number] : votes)
      if (number > votes[chunks_]) chunks_ = count;
    if (chunks_ == 1) return;
    std::optional<int64_t> group;
    bool agreed = chunks_ <= kMaxChunkNumber;
    int64_t cells = 0;
    for (const auto& [rank, iterations] : iterations_)
      for (const Iteration& one : iterations) {
        if (chunks_ == 0 || chunks_of(one) != chunks_) continue;
        cells += 2 * std::ssize(one.forwards);
        const Op& first = ops_[one.forwards.front()];
        const int64_t stages = resources_[one.forwards.front()]->pipeline_size;
        if (first.stage == kUnknown) {
          agreed = false;
          continue;
        }
        const int64_t first_backward_ns = ops_[one.backwards.front()].start_ns;
        const auto before =
            std::ranges::count_if(one.forwards, [&](size_t i) { return ops_[i].start_ns < first_backward_ns; });
        const int64_t beyond = before - 1 - 2 * (stages - 1 - first.stage);
        const bool all_first = before == std::ssize(one.forwards);
        if (all_first && beyond <= (chunks_ - 1) * stages) {
          agreed &= !group || *group == stages;
          group = stages;
          continue;
        }
        agreed &=
            !all_first && beyond > 0 && beyond % (chunks_ - 1) == 0 && (!group || *group == beyond / (chunks_ - 1));
        group = std::max<int64_t>(1, beyond / (chunks_ - 1));
      }
    if (agreed && group) {
      group_ = static_cast<int32_t>(std::min<int64_t>(*group, kMaxMicroBatchNumber));
      trace_.diagnostics.add(problem::otlp_chunks_by_schedule, {}, cells);
    } else {
      trace_.diagnostics.add(problem::otlp_chunks_unknown, {}, cells);
    }
  }

  void number(const Iteration& one) {
    if (one.superseded || (one.forwards.empty() && one.backwards.empty())) return;
    const bool whole = chunks_of(one) == chunks_ && chunks_ > 0;
    const bool by_chunks = chunks_ > 1;
    if (!whole) {
      trace_.diagnostics.add(problem::otlp_incomplete_step, {}, std::ssize(one.forwards) + std::ssize(one.backwards));
      trace_.lossy_steps.push_back(one.number);
    }
    for (const auto* const rows : {&one.forwards, &one.backwards})
      for (size_t k = 0; k < rows->size(); ++k) {
        Op& op = ops_[(*rows)[k]];
        op.step = one.number;
        op.is_cell = chunks_ == 1 || (whole && group_ > 0);
        if (!whole || (by_chunks && group_ == 0)) continue;
        const auto at = by_chunks
                            ? interleaved_position(static_cast<int64_t>(k), static_cast<int64_t>(rows->size()), group_,
                                                   static_cast<int32_t>(chunks_), op.kind == CellKind::kForward)
                            : InterleavedPosition{0, static_cast<int32_t>(k)};
        op.chunk = at.chunk;
        op.micro_batch = at.micro_batch;
      }
  }

  const Run& run_;
  Trace& trace_;
  StringId forward_ = 0, backward_ = 0, iteration_ = 0, forward_backward_ = 0;
  std::vector<StringId> messages_;
  std::map<int32_t, std::vector<Iteration>> iterations_;  // by rank, by start
  std::vector<Op> ops_;
  std::vector<const Resource*> resources_;  // of the ops
  int64_t chunks_ = 0;                      // of a rank; 0 where no iteration says
  const bool named_ = names_stages(run_);   // so that the order of ranks does not decide
  int32_t group_ = 0;                       // micro-batches of a group of the interleaved order; 0 unknown
  int64_t without_rank_ = 0, outside_ = 0, truncated_ = 0;
};

}  // namespace

bool names_stages(const Run& run) {
  return std::ranges::any_of(run.spans, [](const Span& span) { return span.stage != kUnknown; });
}

std::vector<Op> pipeline_ops(const Run& run, Trace& trace) { return Pipeline(run, trace).ops(); }

}  // namespace stageline::otlp
