// Finds the owners of idle time: for each cause the smallest subtrees of the host's slices that hold most of it.
#include "diagnosis/profile/loss_search.h"

namespace stageline {
namespace {

// A node's time is about that child which holds this share of it, if one does.
constexpr double kMostly = 0.7;
constexpr size_t kMaxIdleLosses = 40;

// Idle time of the other owners is reported as a whole.
bool is_reported_by_call(IdleCause owner) {
  return owner == IdleCause::kBlocked || owner == IdleCause::kWork || owner == IdleCause::kUnseen;
}

struct Candidate {
  uint32_t named, node;  // the node whose name is reported, and the root of what it holds
  IdleCause owner;
  std::vector<uint32_t> without;  // subtrees that are reported separately
  int64_t idle_ns;
};

// The time of the subtrees of a candidate.
struct Held {
  TakenOut out;
  int64_t pauses_ns = 0, fixed_ns = 0, short_kernels = 0;
  DeviceTimeline::LongestIdle longest;
};

class IdleOwners {
 public:
  explicit IdleOwners(LossSearch& search)
      : search_(search), t_(search.timeline), part_(search.part), children_(t_.nodes.size()) {
    for (uint32_t n = 1; n < t_.nodes.size(); ++n) children_[t_.nodes[n].parent].push_back(n);
  }

  std::vector<IdleLoss> find() {
    for (size_t o = 0; o < kIdleCauses; ++o) {
      const auto owner = static_cast<IdleCause>(o);
      std::vector<int64_t> held(t_.nodes.size(), 0);
      int64_t fixed = 0;
      for (uint32_t n = static_cast<uint32_t>(t_.nodes.size()); n-- > 0;) {
        held[n] += t_.idle_of_key[owner_key(n, owner)];
        if (owner == IdleCause::kDispatch) held[n] += t_.short_pauses_ns[n] + fixed_ns(n), fixed += fixed_ns(n);
        if (n != kHostRoot) held[t_.nodes[n].parent] += held[n];
      }
      // A device that is never idle is not held up by its launches, however short its kernels are.
      if (held[kHostRoot] - fixed >= search_.min_loss_ns()) split(kHostRoot, owner, held);
    }
    return std::move(losses_);
  }

 private:
  // Returns the lowest node below `node` that holds most of its time.
  uint32_t main_node(uint32_t node, const std::vector<int64_t>& held) const {
    for (;;) {
      uint32_t maximum = kHostRoot;
      for (const uint32_t child : children_[node])
        if (maximum == kHostRoot || held[child] > held[maximum]) maximum = child;
      if (maximum == kHostRoot || held[maximum] < kMostly * held[node]) return node;
      node = maximum;
    }
  }

  void split(uint32_t top, IdleCause owner, const std::vector<int64_t>& held) {
    const uint32_t node = main_node(top, held);
    const bool whole = !is_reported_by_call(owner);
    int64_t rest = held[node];
    std::vector<uint32_t> apart;
    // Calls and lines that delay the host are reported one by one.
    if (!whole)
      for (const uint32_t child : children_[node])
        if (held[child] >= 2 * search_.min_loss_ns()) apart.push_back(child);
    for (const uint32_t child : apart) {
      rest -= held[child];
      split(child, owner, held);
    }
    if (rest < search_.min_loss_ns() || losses_.size() >= kMaxIdleLosses) return;
    if (whole) rest = held[top];
    add({node, whole ? top : node, owner, std::move(apart), rest});
  }

  int64_t fixed_ns(uint32_t node) const { return t_.short_kernel_count[node] * t_.shortest_kernel_ns; }

  std::vector<bool> below(const Candidate& candidate) const {
    std::vector<bool> in(t_.nodes.size(), false);
    for (uint32_t n = candidate.node; n < t_.nodes.size(); ++n) {
      in[n] = n == candidate.node || (n != kHostRoot && in[t_.nodes[n].parent]);
      if (std::ranges::find(candidate.without, n) != candidate.without.end()) in[n] = false;
    }
    return in;
  }

  // When the first slice with the node's name ends.
  int64_t first_end_of(uint32_t node) const {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < part_.slices.size(); ++i)
      if (part_.slices.name_id[i] == t_.nodes[node].name && part_.slices.start_ns[i] < start)
        start = part_.slices.start_ns[i], end = part_.slices.end_ns(i);
    return end;
  }

  // Returns true when the node is an operator, or torch's range around an optimizer, and itself launches computing
  // work.
  bool is_of_model(uint32_t node) const {
    const HostNode& n = t_.nodes[node];
    if (n.category != Category::kCpuOp && !search_.trace.names.text(n.name).starts_with("Optimizer.")) return false;
    return std::ranges::any_of(t_.device, [&](const DeviceTimeline::DeviceItem& item) {
      if (item.launch < 0 || item.kernel != KernelClass::kComputation) return false;
      uint32_t at = t_.host[item.launch].node;
      while (at != kHostRoot && at != node) at = t_.nodes[at].parent;
      return at == node;
    });
  }

  int64_t step_at(int64_t time_ns) const {
    for (const ProfilerStep& step : part_.steps)
      if (step.start_ns <= time_ns && time_ns < step.end_ns) return step.number;
    return -1;
  }

  Held held_by(const Candidate& candidate) const {
    Held held;
    held.out.keys.assign(t_.idle_of_key.size(), false);
    const std::vector<bool> in = below(candidate);
    for (uint32_t n = 0; n < t_.nodes.size(); ++n) {
      if (!in[n]) continue;
      const OwnerKey key = owner_key(n, candidate.owner);
      held.out.keys[key] = true;
      if (candidate.owner == IdleCause::kDispatch) {
        held.pauses_ns += t_.short_pauses_ns[n];
        held.fixed_ns += fixed_ns(n);
        held.short_kernels += t_.short_kernel_count[n];
      }
      if (t_.longest_of_key[key].dur_ns > held.longest.dur_ns) held.longest = t_.longest_of_key[key];
    }
    return held;
  }

  // The call that the host makes after `time_ns`.
  Culprit next_call(int64_t time_ns) {
    const auto next = std::ranges::partition_point(
        t_.host, [&](const DeviceTimeline::HostItem& item) { return item.start_ns < time_ns; });
    return next != t_.host.end() && next->slice != kNoSliceIndex ? search_.culprits.of(next->node) : Culprit();
  }

  void add(const Candidate& candidate) {
    Held held = held_by(candidate);
    RankLoss x{.kind = LossKind::kIdle,
               .owner = candidate.owner,
               .at = search_.culprits.of(candidate.named),
               .of_model = candidate.owner == IdleCause::kWork && is_of_model(candidate.named),
               .short_kernels = held.short_kernels,
               .longest_ns = static_cast<double>(held.longest.dur_ns)};
    if (held.longest.dur_ns > 0) x.longest_step = step_at(held.longest.start_ns);
    x.first_call = candidate.owner == IdleCause::kBlocked && held.longest.start_ns < first_end_of(candidate.named);
    if (x.at.empty()) x.next = next_call(held.longest.start_ns + held.longest.dur_ns);
    x.recorded_ns = candidate.idle_ns - held.fixed_ns;
    x.pauses_ns = held.pauses_ns;
    x.fixed_ns = held.fixed_ns;
    // Pauses go away with fewer, longer kernels. Work that could then run earlier, in parallel with other work, is
    // another saving and does not belong to this gap. Fused kernels would save between none and all of the fixed time
    // that kernels take whatever they do.
    x.uncertainty_ns = x.fixed_ns / 2;
    x.price_ns = std::min(search_.saved_ns(held.out) + x.pauses_ns, x.recorded_ns) + x.fixed_ns / 2;
    search_.keep(held.out, x);
    losses_.push_back({std::move(x), std::move(held.out.keys)});
  }

  LossSearch& search_;
  const DeviceTimeline& t_;
  const Part& part_;
  std::vector<std::vector<uint32_t>> children_;  // of each node
  std::vector<IdleLoss> losses_;
};

}  // namespace

std::vector<IdleLoss> idle_losses(LossSearch& search) { return IdleOwners(search).find(); }

}  // namespace stageline
