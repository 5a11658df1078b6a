#include "diagnosis/profile/phases.h"

#include <unordered_map>

namespace stageline {
namespace {

struct Phase {
  const char* part;
  std::string_view names;  // of torchtitan, verl, slime and miles, each between blanks
};

constexpr Phase kPhases[] = {
    {"phase-rollout", " generate gen rollout rollout_group engine_loop vllm_engine_step vllm_engine_step_burst "},
    {"phase-wait", " wait_for_training_batch train_wait "},
    {"phase-sync", " push_model_state_dict pull_model_state_dict update_weights ref_model_update "},
    {"phase-score", " reward old_log_prob log_probs ref ref_log_probs values adv "},
    {"phase-train",
     " fwd_bwd forward_backward model_forward loss_fn model_backward optim optim_step actor_train "
     "update_actor update_critic "},
    {"phase-load", " fetching_batch post_dataloading_process data_preprocess "},
    {"phase-aside", " checkpoint_save checkpoint_load save_checkpoint eval testing gc_collect collect_dist_metrics "}};

const char* phase_of(std::string_view name) {
  const std::string word = " " + std::string(name) + " ";
  for (const Phase& phase : kPhases)
    if (name.find(' ') == std::string_view::npos && phase.names.find(word) != std::string_view::npos) return phase.part;
  return nullptr;
}

PhaseTimes request_times(const Part& part) {
  PhaseTimes out;
  for (const ServedRequest& r : part.requests) {
    for (const auto& [name, ns] :
         {std::pair("queue", r.queue_ns), std::pair("prefill", r.prefill_ns), std::pair("decode", r.decode_ns)})
      if (ns > 0) out.phases.push_back({std::string("phase-") + name, name, out.lengths.size(), 1.0 * ns});
    out.lengths.push_back(1.0 * (r.end_ns - r.start_ns));
  }
  return out;
}

}  // namespace

PhaseTimes phase_times(const Trace& trace, const Part& part) {
  if (!part.requests.empty()) return request_times(part);
  PhaseTimes out;
  const Slices& s = part.slices;
  std::unordered_map<StringId, const char*> known;
  std::vector<size_t> at(s.size());  // of a slice that is a phase, its place in the list + 1
  for (size_t i = 0; i < s.size(); ++i) {
    if (trace.categories[s.category_id[i]].kind == Category::kCpuOp) return {};
    const auto [of, fresh] = known.try_emplace(s.name_id[i]);
    if (fresh) of->second = phase_of(trace.names.text(s.name_id[i]));
    if (!of->second || s.step[i] == 0) continue;
    out.phases.push_back(
        {of->second, std::string(trace.names.text(s.name_id[i])), s.step[i] - size_t{1}, 1.0 * s.dur_ns[i]});
    at[i] = out.phases.size();
  }
  for (size_t i = 0; i < s.size(); ++i) {
    uint32_t up = at[i] > 0 ? s.parent[i] : kNoSliceIndex;
    while (up != kNoSliceIndex && at[up] == 0) up = s.parent[up];
    if (up != kNoSliceIndex) out.phases[at[up] - 1].ns -= 1.0 * s.dur_ns[i];
  }
  for (const ProfilerStep& step : part.steps)
    if (!out.phases.empty()) out.lengths.push_back(1.0 * (step.end_ns - step.start_ns));
  return out;
}

}  // namespace stageline
