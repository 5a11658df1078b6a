#include "plan/search.h"

namespace stageline::plan {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

std::string comment(const Candidate& c, const Wish& w) {
  return "# " + human_duration(static_cast<double>(c.step_ns)) + " per step ± " + human_duration(c.error_ns) +
         (w.recorded ? ", from the run" : ", estimated") +
         (w.model.sized()
              ? "; " + fixed(c.peak_bytes / (1 << 30), 1) + " GiB at most (stage " + number(c.peak_rank) + ")"
              : "") +
         "\n";
}

// Megatron's and MindSpeed's flags.
std::string megatron_flags(const Wish& w, const Candidate& c, bool mindspeed) {
  const Layout& l = c.layout;
  std::string out = "--tensor-model-parallel-size " + number(l.tp) + (l.tp > 1 ? " --sequence-parallel" : "") +
                    " --pipeline-model-parallel-size " + number(l.pp) + " --context-parallel-size " + number(l.cp);
  if (w.model.moe)
    out += " --expert-model-parallel-size " + number(l.ep) + " --expert-tensor-parallel-size " + number(l.etp);
  out += "\n--micro-batch-size " + number(l.micro_batch) + " --global-batch-size " +
         number(int64_t{1} * l.micro_batch * c.micro_batches * l.dp);
  if (w.rates.memory.sharding >= Sharding::kDistributed) out += " --use-distributed-optimizer";
  out += "\n";
  const std::vector<int32_t> layers = c.plan.layers();
  const bool v_shape = c.schedule.starts_with("dualpipe");
  if (v_shape && mindspeed) {
    out += std::string("--schedules-method dualpipev") + (w.model.moe ? " --moe-fb-overlap\n" : "\n");
  } else if (std::ranges::count(layers, layers.front()) < std::ssize(layers) || w.model.mtp > 0) {
    out += "--pipeline-model-parallel-layout \"" + write_megatron_layout(layers, static_cast<int32_t>(w.model.mtp)) +
           "\"\n";
  } else if (c.chunks > 1) {
    out += "--num-virtual-stages-per-pipeline-rank " + number(c.chunks) + "\n";
  }
  if (c.group > 0) out += "--microbatch-group-size-per-virtual-pipeline-stage " + number(c.group) + "\n";
  if (c.schedule == "vpp-ep-overlap") out += "--overlap-moe-expert-parallel-comm\n";
  Recompute most;
  bool alike = true;
  for (const Recompute& r : c.plan.recompute) {
    most.full = std::max(most.full, r.full), most.modules |= r.modules;
    alike &= r == c.plan.recompute.front();
  }
  if (most.full > 0) {
    out += "--recompute-granularity full --recompute-method block --recompute-num-layers " + number(most.full) + "\n";
    if (!alike) out += "# ranks need different numbers of layers; this flag sets the largest for all\n";
  } else if (most.modules) {
    const bool moe = w.model.moe.has_value();
    std::string names, more;
    for (size_t k = 0; k < kModules; ++k) {
      if (!(most.modules >> k & 1)) continue;
      const bool act = static_cast<Module>(k) == Module::kActivation;
      if (act) more = moe ? " --moe-grouped-gemm" : " --recompute-activation-function";
      if (moe || !act) names += std::string(" ") + module_name(static_cast<Module>(k), moe);
    }
    if (!names.empty()) names = "--recompute-granularity selective --recompute-modules" + names;
    out += std::string(trim(names + more)) + "\n";
  }
  return out;
}

// The modules of each virtual stage, in the order of the model.
std::string torchtitan_modules(const std::vector<int32_t>& layers) {
  std::string out = "[";
  int32_t next = 0;
  for (size_t s = 0; s < layers.size(); ++s) {
    std::string own;
    if (s == 0) append_item(own, "\"tok_embeddings\"");
    for (int32_t i = 0; i < layers[s]; ++i) append_item(own, "\"layers." + number(next++) + "\"");
    if (s + 1 == layers.size()) append_item(own, "\"norm\""), append_item(own, "\"lm_head\"");
    out += (s > 0 ? ", [" : "[") + own + "]";
  }
  return out + "]";
}

bool any_full(const Candidate& c) {
  return std::ranges::any_of(c.plan.recompute, [](const Recompute& r) { return r.full > 0; });
}

std::string torchtitan_recompute(const Candidate& c) {
  return std::string("--activation_checkpoint.mode ") + (any_full(c) ? "full" : "none") + "\n";
}

std::string torchtitan(const Wish& w, const Candidate& c) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
#define SCHEDULE(ours, theirs) {ours, theirs},
#include "plan/torchtitan_schedules.def"
  };
  const auto known = std::ranges::find(names, std::string_view(c.schedule), [](const auto& n) { return n.first; });
  const Layout& l = c.layout;
  const bool sharded = w.rates.memory.sharding >= Sharding::kZero2;
  std::string out = "--parallelism.tensor_parallel_degree " + number(l.tp) + " --parallelism.context_parallel_degree " +
                    number(l.cp) + " --parallelism.pipeline_parallel_degree " + number(l.pp) +
                    "\n--parallelism.data_parallel_shard_degree " + number(sharded ? l.dp : 1) +
                    " --parallelism.data_parallel_replicate_degree " + number(sharded ? 1 : l.dp);
  if (w.model.moe)
    out += " --parallelism.expert_parallel_degree " + number(l.ep) + " --parallelism.expert_tensor_parallel_degree " +
           number(l.etp);
  out += "\n--training.seq_len " + number(std::llround(w.sequence)) + " --training.local_batch_size " +
         number(int64_t{1} * l.micro_batch * (l.pp > 1 ? c.micro_batches : 1)) + " --training.global_batch_size " +
         number(int64_t{1} * l.micro_batch * c.micro_batches * l.dp) + "\n";
  if (w.rates.memory.sharding == Sharding::kDistributed)
    out = "# torchtitan shards all states (FSDP) or none; --optimizer distributed has no flag there\n" + out;
  if (l.pp == 1) return out + torchtitan_recompute(c);
  if (known != std::end(names)) out += "--parallelism.pipeline_parallel_schedule " + std::string(known->second) + "\n";
  else
    out += "--parallelism.pipeline_parallel_schedule_csv order.csv  # stageline schedule " + c.schedule +
           " --format torch\n";
  out += "--parallelism.pipeline_parallel_microbatch_size " + number(l.micro_batch) + "\n";
  const std::vector<int32_t> layers = c.plan.layers();
  const auto total = static_cast<int32_t>(w.model.layers()), stages = static_cast<int32_t>(layers.size());
  bool written = false;
  for (int32_t first = 0; first <= 4 && !written; ++first)
    for (int32_t last = 0; last <= 4 && !written; ++last) {
      if (torchtitan_default(stages, total, first, last) != layers) continue;
      // It makes as many stages as have at most this many layers.
      const int32_t all = total + first + last, per_stage = (all + stages - 1) / stages;
      if ((all + per_stage - 1) / per_stage != stages || std::max(first, last) > per_stage) continue;
      out += "--parallelism.pipeline_parallel_layers_per_stage " + number(per_stage) +
             " --parallelism.pipeline_parallel_first_stage_less_layers " + number(first) +
             " --parallelism.pipeline_parallel_last_stage_less_layers " + number(last) + "\n";
      written = true;
    }
  if (!written) out += "module_fqns_per_model_part = " + torchtitan_modules(layers) + "\n";
  return out + torchtitan_recompute(c);
}

std::string paddle(const Wish& w, const Candidate& c) {
  const Layout& l = c.layout;
  const bool sharded = w.rates.memory.sharding != Sharding::kReplicated;
  std::string out = "hybrid_configs = {\"dp_degree\": " + number(sharded ? 1 : l.dp) +
                    ", \"mp_degree\": " + number(l.tp) + ", \"pp_degree\": " + number(l.pp) +
                    ", \"sharding_degree\": " + number(sharded ? l.dp : 1) + ", \"sep_degree\": " + number(l.cp) +
                    "}\n";
  out += "pipeline_configs = {\"accumulate_steps\": " + number(c.micro_batches) +
         ", \"micro_batch_size\": " + number(l.micro_batch) + "}\n";
  const std::vector<int32_t> layers = c.plan.layers();
  std::string bounds = "[0";
  int32_t next = 1;  // item 0 of the layer list is the embedding
  for (size_t s = 0; s + 1 < layers.size(); ++s) bounds += ", " + number(next += layers[s]);
  bounds += ", " + number(w.model.layers() + 3) + "]";  // the last norm and the head are items too
  out += "PipelineLayer(layers, num_stages=" + number(l.pp) + ", seg_method=" + bounds;
  if (c.chunks > 1) out += ", num_virtual_pipeline_stages=" + number(c.chunks);
  return out + ", recompute_interval=" + (any_full(c) ? "1" : "0") + ")\n";
}

std::string deepspeed(const Wish& w, const Candidate& c) {
  std::string out = "PipelineModule(layers, num_stages=" + number(c.layout.pp) +
                    ", partition_method=\"uniform\", activation_checkpoint_interval=" + (any_full(c) ? "1" : "0") +
                    ")\n";
  out += "{\"train_micro_batch_size_per_gpu\": " + number(c.layout.micro_batch) +
         ", \"gradient_accumulation_steps\": " + number(c.micro_batches) +
         ", \"zero_optimization\": {\"stage\": " + number(static_cast<int64_t>(w.rates.memory.sharding)) + "}}\n";
  if (c.plan.layers() != even_layers(w.model.layers(), c.layout.pp * c.chunks))
    out = "# DeepSpeed takes no list of layers: this split cannot be given, uniform is the nearest\n" + out;
  return out;
}

}  // namespace

Result<std::string> emit_plan(std::string_view framework, const Wish& w, const Candidate& c) {
  const Framework* own = find_framework(framework);
  if (!own || framework == "any")
    return make_error(ErrorCode::kUsage, "nothing can be written for \"" + valid_utf8(framework) + "\"",
                      "--emit megatron, mindspeed, torchtitan, paddle or deepspeed");
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::kUsage, std::string(framework) + why,
                      "plan with --framework " + std::string(framework));
  };
  if (!std::ranges::count(own->schedules, std::string_view(c.schedule)))
    return refuse(" has no schedule " + c.schedule);
  const std::vector<int32_t> layers = c.plan.layers();
  bool some = false, all = true;
  Modules parts = 0;
  for (size_t s = 0; s < layers.size(); ++s) {
    some |= !(c.plan.recompute[s] == Recompute{}), parts |= c.plan.recompute[s].modules;
    all &= c.plan.recompute[s].full == layers[s];
  }
  if (own->all_or_none && some && !all) return refuse(" computes all layers again, or none");
  if (own->all_or_none && parts != 0) return refuse(" does not compute parts of layers again");
  const bool act = !w.model.moe && (parts >> static_cast<unsigned>(Module::kActivation) & 1);
  if (act && !own->dense_act) return refuse(" does not compute the activation of an MLP again alone");
  const std::string lead = comment(c, w);
  if (framework == "torchtitan") return lead + torchtitan(w, c);
  if (framework == "paddle") return lead + paddle(w, c);
  if (framework == "deepspeed") return lead + deepspeed(w, c);
  return lead + megatron_flags(w, c, framework == "mindspeed");
}

}  // namespace stageline::plan
