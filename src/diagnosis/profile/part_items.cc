#include "diagnosis/profile/part_items.h"

#include "diagnosis/profile/phases.h"
#include "diagnosis/profile/profile_findings.h"
#include "model/message_names.h"
#include "model/row_names.h"
#include "model/statistics.h"
#include "profile/device_timeline.h"
#include "profile/host_nodes.h"
#include "profile/idle_gaps.h"
#include "profile/module_answer.h"
#include "profile/work_class.h"

namespace stageline {
namespace {

// The function of a frame without its line, which changes with every edit: "train.py: load_batch".
std::string without_line(const std::string& frame) {
  const size_t open = frame.rfind('('), close = frame.find("): ", open);
  return open == std::string::npos || close == std::string::npos ? frame
                                                                 : frame.substr(0, open) + frame.substr(close + 1);
}

// The parts of one rank and their items.
struct RankParts {
  std::vector<double> lengths;
  std::map<std::string, std::vector<double>> of_step;
  std::map<std::pair<std::string, std::string>, PartItem> items;

  void add(const std::string& part, const std::string& name, const Culprit& at, int32_t rank, size_t step, double ns,
           const Text& label = {}) {
    std::vector<double>& steps = of_step[part];
    steps.resize(lengths.size());
    PartItem& item = items[{part, name}];
    item.of_step.resize(lengths.size());
    steps[step] += ns, item.of_step[step] += ns;
    item.ns += ns, item.of_rank[rank] += ns;
    if (ns > item.at_ns) item.at = at, item.at_ns = ns;
    item.label = label;
  }
};

// ---- ranks with devices -------------------------------------------------------------------------------------------

class DeviceParts {
 public:
  // `modules`: of this rank; null where items are not asked for by module.
  DeviceParts(const Trace& trace, const Part& part, const RankFacts& facts, bool accounted, DiffItemsBy by,
              const ModuleAnswer* modules)
      : trace_(trace), part_(part), by_(by), modules_(modules), t_(device_timeline(trace, part)), culprits_(trace, t_),
        accounted_(accounted), waiting_(share_or_zero(facts.comm_wait_ns, facts.exposed_comm_ns)) {}

  RankParts read() {
    ends_ = t_.step_ends_ns;
    out_.lengths.assign(std::max<size_t>(1, ends_.size()), 0);
    for (const WindowPiece& piece : window_pieces(t_)) add(piece);
    count_kernels();
    return std::move(out_);
  }

 private:
  struct Named {
    std::string part, name, kernel;
    Culprit at;
    Text label;
  };

  std::string text(StringId id) const { return std::string(trace_.names.text(id)); }

  const Culprit& culprit(uint32_t node) {
    const auto [it, added] = of_node_.try_emplace(node);
    if (added) it->second = culprits_.of(node);
    return it->second;
  }

  Named named_work(uint32_t j, WindowPart kind) {
    const DeviceTimeline::DeviceItem& item = t_.device[j];
    Named n;
    const std::string kernel = text(part_.slices.name_id[item.slice]);
    n.kernel = kind == WindowPart::kMemory ? kernel : short_kernel_name(kernel);
    if (item.launch >= 0) n.at = culprit(t_.host[item.launch].node);
    n.name = n.at.op.empty() ? n.kernel : n.at.op;
    switch (kind) {
      case WindowPart::kCompute:
        n.part = kernel.starts_with("CUDA graph ") ? "graphs" : "compute";
        if (by_ == DiffItemsBy::kClass) name_by_class(item, kernel, n);
        break;
      case WindowPart::kCommunication: {
        n.part = "comm";
        const CollectiveFact* fact = fact_of(part_.collectives, item.slice);
        n.name = fact && fact->name != 0 ? text(fact->name) : n.kernel;
        if (fact && by_ == DiffItemsBy::kClass) {
          const std::string group = text(fact->group_description != 0 ? fact->group_description : fact->group);
          n.name = std::string(collective_kind_name(collective_kind(n.name)));
          if (!group.empty()) n.name += " (" + group + ")";
        }
        break;
      }
      case WindowPart::kMemory:
        n.part = "memory";
        n.name = n.kernel;
        break;
      default: n.part = "rest";
    }
    if (modules_ && (kind == WindowPart::kCompute || kind == WindowPart::kCommunication)) name_by_module(item.slice, n);
    return n;
  }

  void name_by_class(const DeviceTimeline::DeviceItem& item, const std::string& kernel, Named& n) const {
    const TaskFact* task = fact_of(part_.tasks, item.slice);
    const std::string type = task && task->op_type != 0 ? text(task->op_type) : kernel;
    std::string op = n.at.op;
    bool backward = type.find("Grad") != type.npos || type.find("Backprop") != type.npos;
    const auto look = [&](StringId name) {
      const std::string_view around = trace_.names.text(name);
      if (op.empty()) op = around;
      backward |= around.find("ackward") != std::string_view::npos;
    };
    for (uint32_t at = item.launch >= 0 ? t_.host[item.launch].node : kHostRoot; at != kHostRoot;
         at = t_.nodes[at].parent)
      look(t_.nodes[at].name);
    // The launch may be on a thread of its own, without operators (Ascend).
    for (uint32_t at = part_.slices.parent[item.slice]; at != kNoSliceIndex; at = part_.slices.parent[at])
      look(part_.slices.name_id[at]);
    const auto kind = std::string(work_class(type, op));
    n.name = kind + (backward ? ".backward" : "");
    n.label = words("diff.class", Args().set("class", words("diff.class." + kind)).flag("backward", backward));
  }

  void name_by_module(uint32_t slice, Named& n) const {
    const auto of = modules_->of_slice.empty() ? ModuleAnswer::OfSlice() : modules_->of_slice[slice];
    Args args;
    if (of.node >= 0) args.set("module", module_path(*modules_, of.node)).flag("backward", of.backward);
    n.label = words(of.node >= 0 ? "diff.module" : "diff.module.outside", args);
    n.name = n.label.en;
  }

  Named named_idle(OwnerKey key) {
    Named n;
    const auto owner = static_cast<IdleCause>(key % kIdleCauses);
    n.part = accounted_ ? "idle-" + std::string(kIdleCauseNames[owner]) : "idle";
    n.at = culprit(node_of_key(key));
    for (const std::string* name : {&n.at.op, &n.at.range, &n.at.call, &n.at.module})
      if (n.name.empty()) n.name = *name;
    if (n.name.empty()) n.name = without_line(n.at.frame);
    return n;
  }

  void add(const WindowPiece& piece) {
    const uint64_t key = uint64_t{piece.what} << 3 | static_cast<uint64_t>(piece.part);
    const auto [it, fresh] = names_.try_emplace(key);
    if (fresh)
      it->second = piece.part == WindowPart::kIdle ? named_idle(piece.what) : named_work(piece.what, piece.part);
    const Named& named = it->second;
    auto end = std::ranges::upper_bound(ends_, piece.start_ns);
    for (int64_t at = piece.start_ns; at < piece.end_ns;) {
      // Work of the host after a step's work lies before the work of the next step. Work after the last step belongs
      // to the first one, because the recording does not have what came before the first.
      const size_t step = end == ends_.end() ? 0 : end - ends_.begin();
      const int64_t until = end == ends_.end() ? piece.end_ns : std::min(*end++, piece.end_ns);
      const auto ns = static_cast<double>(until - at);
      out_.lengths[step] += ns;
      const auto put = [&](const std::string& part, double part_ns) {
        if (part_ns > 0) out_.add(part, named.name, named.at, part_.rank, step, part_ns, named.label);
      };
      if (named.part == "comm") {
        put("comm-wait", waiting_ * ns);
        put("comm", ns - waiting_ * ns);
      } else {
        put(named.part, ns);
      }
      at = until;
    }
  }

  // All work of an item, also where other work hides it.
  void count_kernels() {
    for (uint32_t j = 0; j < t_.device.size(); ++j) {
      const KernelClass kernel = t_.device[j].kernel;
      const WindowPart kind = kernel == KernelClass::kComputation     ? WindowPart::kCompute
                              : kernel == KernelClass::kCommunication ? WindowPart::kCommunication
                              : kernel == KernelClass::kMemory        ? WindowPart::kMemory
                                                                      : WindowPart::kOther;
      const Named named = named_work(j, kind);
      const auto it = out_.items.find({named.part, named.name});
      if (it == out_.items.end()) continue;
      KernelSum& sum = it->second.kernels[named.kernel];
      sum.ns += t_.device[j].end_ns - t_.device[j].start_ns, ++sum.count;
    }
  }

  const Trace& trace_;
  const Part& part_;
  const DiffItemsBy by_;
  const ModuleAnswer* const modules_;
  const DeviceTimeline t_;
  CulpritFinder culprits_;
  const bool accounted_;
  const double waiting_;  // the part of exposed communication that is waiting
  std::vector<int64_t> ends_;
  std::map<uint32_t, Culprit> of_node_;
  std::map<uint64_t, Named> names_;
  RankParts out_;
};

// ---- ranks without devices ----------------------------------------------------------------------------------------

RankParts phase_parts(PhaseTimes times, const Part& part) {
  RankParts out;
  out.lengths = std::move(times.lengths);
  for (const PhaseTime& phase : times.phases) out.add(phase.part, phase.name, {}, part.rank, phase.step, phase.ns);
  std::vector<double> rest = out.lengths;
  for (const PhaseTime& phase : times.phases) rest[phase.step] -= phase.ns;
  out.of_step["rest"] = std::move(rest);
  return out;
}

// Adds the values of a rank to the means; `ranks` counts for each step how many have it.
void add_steps(const std::vector<double>& values, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), values.size()));
  for (size_t k = 0; k < values.size(); ++k) sums[k] += values[k];
}

// The parts are those of the host's bar. Operators by themselves and collectives in flight stand behind them. They run
// at once, and others hide them, so where they are longer than their part in a step, each has its share of the part.
RankParts host_parts(const Trace& trace, const Part& part, const DeviceSums& sums, bool communicates) {
  RankParts out;
  const size_t steps = std::min(sums.costs_of_steps.size(), sums.overlaps_of_steps.size());
  for (size_t k = 0; k < steps; ++k) {
    const TbCosts& costs = sums.costs_of_steps[k];
    const TbOverlap& overlap = sums.overlaps_of_steps[k];
    const double length = sum_over<double>(costs);
    const double loading = costs[TbRole::kDataLoader];
    const double computing = communicates ? overlap.computation_ns + overlap.overlap_ns : costs[TbRole::kCpuExec];
    const double talking = communicates ? overlap.communication_ns : costs[TbRole::kCommunication];
    out.lengths.push_back(length);
    out.of_step["compute"].push_back(computing);
    out.of_step["comm"].push_back(talking);
    out.of_step["idle-input"].push_back(loading);
    out.of_step["rest"].push_back(std::max(0.0, length - computing - talking - loading));
  }
  const Slices& s = part.slices;
  const auto category = [&](size_t i) { return trace.categories[s.category_id[i]].kind; };
  std::vector<double> self(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (!is_host(category(i))) continue;
    self[i] += s.dur_ns[i];
    if (s.parent[i] != kNoSliceIndex) self[s.parent[i]] -= s.dur_ns[i];
  }
  for (size_t i = 0; i < s.size() && steps > 0; ++i) {
    const std::string name = std::string(trace.names.text(s.name_id[i]));
    const bool in_flight = is_host_message(name), loads = name.find("DataLoader") != std::string::npos;
    if (!in_flight && category(i) != Category::kCpuOp && !loads) continue;
    const auto in = std::ranges::find_if(part.steps, [&](const ProfilerStep& step) {
      return step.start_ns <= s.start_ns[i] && s.start_ns[i] < step.end_ns;
    });
    const double ns = in_flight || loads ? s.dur_ns[i] : self[i];
    if (in == part.steps.end() || !(ns > 0)) continue;
    const char* of = in_flight || is_communication_call(name) ? "comm" : loads ? "idle-input" : "compute";
    PartItem& item = out.items[{of, name}];
    const size_t step = std::min<size_t>(in - part.steps.begin(), steps - 1);
    item.of_step.resize(steps);
    item.of_step[step] += ns;
  }
  std::map<std::string, std::vector<double>> sums_of;
  for (const auto& [key, item] : out.items) add_steps(item.of_step, sums_of[key.first]);
  for (auto& [key, item] : out.items) {
    const std::vector<double>&whole = out.of_step[key.first], &all = sums_of[key.first];
    for (size_t k = 0; k < steps; ++k) item.of_step[k] *= std::min(1.0, share_or_zero(whole[k], all[k]));
    item.ns = item.of_rank[part.rank] = sum_over<double>(item.of_step);
  }
  return out;
}

// ---- all ranks ----------------------------------------------------------------------------------------------------

void join(const Trace& trace, std::vector<RankParts> all, ProfileParts& out) {
  std::vector<double> ranks;
  for (size_t p = 0; p < all.size(); ++p) {
    RankParts& rank = all[p];
    if (rank.lengths.empty()) continue;
    out.ranks.push_back(trace.parts[p].rank);
    for (const double length : rank.lengths) out.recorded_ns += length;
    for (const auto& [part, values] : rank.of_step)
      for (const double ns : values) out.of_rank[part][trace.parts[p].rank] += ns;
    add_steps(std::vector<double>(rank.lengths.size(), 1), ranks);
    add_steps(rank.lengths, out.lengths);
    for (const auto& [part, values] : rank.of_step) add_steps(values, out.of_step[part]);
    for (auto& [key, item] : rank.items) {
      PartItem& sum = out.items[key];
      sum.ns += item.ns;
      sum.label = item.label;
      if (item.at_ns > sum.at_ns) sum.at = std::move(item.at), sum.at_ns = item.at_ns;
      sum.of_rank.merge(item.of_rank);
      add_steps(item.of_step, sum.of_step);
      for (const auto& [name, kernel] : item.kernels)
        sum.kernels[name].ns += kernel.ns, sum.kernels[name].count += kernel.count;
    }
  }
  const auto divide = [&](std::vector<double>& sums) {
    sums.resize(ranks.size());
    for (size_t k = 0; k < sums.size(); ++k) sums[k] /= ranks[k];
  };
  divide(out.lengths);
  for (auto& [part, values] : out.of_step) divide(values);
  for (auto& [key, item] : out.items) divide(item.of_step);
}

// The mean step that the bar is of.
double bar_step_ns(const MeasuredProfile& measured, const ProfileSums& sums, const std::vector<PhaseTimes>& phases) {
  const ProfileFacts& f = measured.facts;
  if (f.accounted) return f.step_ns;
  if (!f.ranks.empty()) return f.whole.span_ns / f.ranks.size() / std::max<size_t>(1, f.step_count);
  double step = 0, ranks = 0;
  for (const PhaseTimes& times : phases)
    for (const double length : times.lengths) step += length, ++ranks;
  if (ranks > 0) return step / ranks;
  for (const DeviceSums& rank : sums.ranks)
    if (rank.step_costs) step += rank.step_costs->step_ns, ++ranks;
  return ranks > 0 ? step / ranks : 0;
}

}  // namespace

Result<ProfileParts> profile_parts(const Run& run, DiffItemsBy by) {
  const Trace& trace = run.trace();
  std::optional<TorchRun> torch;
  if (by == DiffItemsBy::kModule) {
    TRY(made, make_torch_run(trace, {.include_last_step = true}));
    torch = std::move(*made);
  }
  const FunctionNames names(trace);
  MeasuredProfile measured = measured_profile(run);
  const ProfileFacts& f = measured.facts;
  const ProfileSums& sums = profile_sums_of(run);
  std::vector<PhaseTimes> phases(trace.parts.size());
  const std::vector<RolloutTail> tails = rollout_tails(trace);
  if (f.ranks.empty())
    parallel_for(phases.size(), [&](size_t p) { phases[p] = phase_times(trace, tails, trace.parts[p]); });
  // Where some ranks have phases, those without have no steps: they serve the others.
  const bool phased = std::ranges::any_of(phases, [](const PhaseTimes& times) { return !times.phases.empty(); });
  ProfileParts out;
  out.step_ns = bar_step_ns(measured, sums, phases);
  if (measured.headline.parts.empty() || !(out.step_ns > 0)) {
    if (std::ranges::any_of(trace.parts, [](const Part& part) { return !part.allocator.empty(); }))
      return make_error(ErrorCode::kBadInput, "a snapshot of the allocator has no step times",
                        "stageline view A --compare B compares what two snapshots hold at their peaks");
    return make_error(ErrorCode::kBadInput, "there is neither device work nor a profiler step in it",
                      "record with CUDA activities, or call the profiler's step()");
  }
  std::vector<RankParts> all(trace.parts.size());
  parallel_for(all.size(), [&](size_t p) {
    const Part& part = trace.parts[p];
    if (phased) {
      all[p] = phase_parts(std::move(phases[p]), part);
      return;
    }
    for (const RankFacts& rank : f.ranks)
      if (rank.rank == part.rank) {
        const ModuleAnswer modules = torch ? module_answer(*torch, p, names, true) : ModuleAnswer();
        all[p] = DeviceParts(trace, part, rank, f.accounted, by, torch ? &modules : nullptr).read();
      }
    for (const DeviceSums& rank : sums.ranks)
      if (f.ranks.empty() && rank.rank == part.rank && rank.step_costs)
        all[p] = host_parts(trace, part, rank, sums.communicates);
  });
  join(trace, std::move(all), out);
  out.requests = sum_over<size_t>(trace.parts, [](const Part& part) { return part.requests.size(); });
  out.steps = out.requests > 0 ? out.requests : f.step_count;
  if (f.late) out.late = f.late->rank;
  if (!f.late && f.waits && f.waits->min_rank) out.late = *f.waits->min_rank;
  out.headline = std::move(measured.headline);
  return out;
}

}  // namespace stageline
