// Explains why nothing fits, and which single changes make the nearest layout fit. Each change is evaluated.
#include "plan/search_space.h"

namespace stageline::plan {
namespace {

class Changes {
 public:
  Changes(const Wish& wish, Shortfall& out) : w_(wish), out_(out), base_(out.candidate.layout) {}

  void evaluate() {
    const std::pair<const char*, int32_t Layout::*> degrees[] = {
        {"tp", &Layout::tp}, {"pp", &Layout::pp}, {"cp", &Layout::cp}, {"dp", &Layout::dp}};
    for (const auto& [name, degree] : degrees)
      for (const int32_t factor : {2, 4}) {
        Layout layout = base_;
        layout.*degree *= factor;
        if (is_divided(layout)) add(name + (" " + std::to_string(layout.*degree)), layout, memory());
      }
    if (base_.micro_batch > 1) {
      Layout layout = base_;
      layout.micro_batch = base_.micro_batch / 2;
      add("micro-batch size " + std::to_string(layout.micro_batch), layout, memory());
    }
    for (const auto& [name, sharding] :
         {std::pair("--optimizer zero2", Sharding::kZero2), std::pair("--optimizer zero3", Sharding::kZero3)})
      if (memory().sharding < sharding) {
        MemoryOptions other = memory();
        other.sharding = sharding;
        add(name, base_, other);
      }
  }

 private:
  const MemoryOptions& memory() const { return w_.rates.memory; }

  bool is_divided(const Layout& layout) const {
    return divides(layout.tp, w_.model.heads) && divides(layout.tp, w_.model.kv_heads) &&
           divides(layout.tp, w_.model.ffn) && (layout.cp == 1 || divides(2 * layout.cp, w_.sequence));
  }

  void add(const std::string& change, const Layout& layout, const MemoryOptions& memory) {
    Wish other = w_;
    other.rates.memory = memory;
    const auto problem =
        problem_of(other, layout, out_.candidate.schedule, out_.candidate.chunks, out_.candidate.micro_batches);
    if (!problem || problem->stages() > static_cast<int32_t>(problem->kind_of.size())) return;
    const Candidate c = with_most_recompute(other, *problem, layout);
    const int64_t devices = int64_t{1} * layout.tp * layout.pp * layout.cp * layout.dp;
    const std::string on = devices == w_.gpus ? "" : " on " + grouped(devices) + " devices";
    if (c.needed_bytes <= memory.limit) out_.fixes.push_back({change + on, c.needed_bytes});
  }

  const Wish& w_;
  Shortfall& out_;
  const Layout base_;
};

}  // namespace

Shortfall shortfall_of(const Wish& wish, Candidate nearest) {
  Shortfall out;
  out.candidate = std::move(nearest);
  out.rank = out.candidate.peak_rank;
  out.excess_bytes = out.candidate.needed_bytes - wish.rates.memory.limit;
  Changes(wish, out).evaluate();
  sort_stably(out.fixes, {}, &Shortfall::Fix::needed);
  return out;
}

}  // namespace stageline::plan
