#include "diagnosis/profile/phases.h"

namespace stageline {
namespace {

struct Phase {
  const char* part;
  std::string_view names;  // of torchtitan, verl, slime and miles, each between blanks
};

constexpr Phase kPhases[] = {
#define PHASE(part, names) {part, names},
#include "diagnosis/profile/phases.def"
};

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

bool is_trajectory(std::string_view name) {
  return name == "generate" || name == "llm_request" || name.starts_with("trajectory ");
}

struct Trajectory {
  int64_t start_ns, end_ns;
  const Part* part;
  StringId name;
};

std::vector<Trajectory> trajectories_of(const Trace& trace) {
  std::vector<Trajectory> out;
  std::vector<bool> known(trace.names.size());
  for (StringId id = 0; id < known.size(); ++id) known[id] = is_trajectory(trace.names.text(id));
  if (std::ranges::find(known, true) == known.end()) return out;
  for (const Part& part : trace.parts)
    for (size_t i = 0; i < part.slices.size(); ++i)
      if (const StringId name = part.slices.name_id[i]; known[name])
        out.push_back({part.slices.start_ns[i], part.slices.end_ns(i), &part, name});
  sort_stably(out, {}, &Trajectory::start_ns);
  return out;
}

// Moves the part of each waiting phase that a tail covers to a phase of its own. `slices` are those of the phases.
void part_tails(const Slices& s, const std::vector<uint32_t>& slices, const std::vector<RolloutTail>& tails,
                std::vector<PhaseTime>& phases) {
  for (size_t k = 0; k < slices.size(); ++k) {
    if (phases[k].part != "phase-wait") continue;
    const int64_t start_ns = s.start_ns[slices[k]], end_ns = s.end_ns(slices[k]);
    for (auto tail = std::ranges::lower_bound(tails, start_ns, {}, &RolloutTail::end_ns);
         tail != tails.end() && tail->end_ns <= end_ns; ++tail) {
      const double ns = std::min(phases[k].ns, 1.0 * (tail->end_ns - std::max(tail->start_ns, start_ns)));
      if (!(ns > 0)) continue;
      phases[k].ns -= ns;
      phases.push_back({"phase-tail", phases[k].name, phases[k].step, ns, static_cast<int32_t>(tail - tails.begin())});
    }
  }
}

}  // namespace

std::vector<RolloutTail> rollout_tails(const Trace& trace) {
  std::vector<RolloutTail> out;
  if (trace.clock == ClockState::kPerRank) return out;
  const std::vector<Trajectory> all = trajectories_of(trace);
  for (auto first = all.begin(); first != all.end();) {
    int64_t end_ns = first->end_ns;
    auto next = first;
    for (; next != all.end() && next->start_ns < end_ns; ++next) end_ns = std::max(end_ns, next->end_ns);
    const auto last = std::ranges::max_element(first, next, {}, &Trajectory::end_ns);
    RolloutTail tail{0, end_ns, last->part->rank, std::string(trace.names.text(last->name)), end_ns - last->start_ns,
                     {}};
    for (auto one = first; one != next; ++one) {
      if (one == last) continue;
      tail.start_ns = std::max(tail.start_ns, one->end_ns);
      tail.others_ns.push_back(one->end_ns - one->start_ns);
    }
    std::ranges::sort(tail.others_ns);
    if (!tail.others_ns.empty()) out.push_back(std::move(tail));
    first = next;
  }
  return out;
}

PhaseTimes phase_times(const Trace& trace, const std::vector<RolloutTail>& tails, const Part& part) {
  if (!part.requests.empty()) return request_times(part);
  PhaseTimes out;
  const Slices& s = part.slices;
  std::unordered_map<StringId, const char*> known;
  std::vector<size_t> at(s.size());  // of a slice that is a phase, its place in the list + 1
  std::vector<uint32_t> slices;      // of the phases
  for (size_t i = 0; i < s.size(); ++i) {
    if (trace.categories[s.category_id[i]].kind == Category::kCpuOp) return {};
    const auto [of, fresh] = known.try_emplace(s.name_id[i]);
    if (fresh) of->second = phase_of(trace.names.text(s.name_id[i]));
    if (!of->second || s.step[i] == 0) continue;
    out.phases.push_back(
        {of->second, std::string(trace.names.text(s.name_id[i])), s.step[i] - size_t{1}, 1.0 * s.dur_ns[i]});
    slices.push_back(static_cast<uint32_t>(i));
    at[i] = out.phases.size();
  }
  for (size_t i = 0; i < s.size(); ++i) {
    uint32_t up = at[i] > 0 ? s.parent[i] : kNoSliceIndex;
    while (up != kNoSliceIndex && at[up] == 0) up = s.parent[up];
    if (up != kNoSliceIndex) out.phases[at[up] - 1].ns -= 1.0 * s.dur_ns[i];
  }
  part_tails(s, slices, tails, out.phases);
  for (const ProfilerStep& step : part.steps)
    if (!out.phases.empty()) out.lengths.push_back(1.0 * (step.end_ns - step.start_ns));
  return out;
}

}  // namespace stageline
