#include "diagnosis/causes/cause_worlds.h"

#include <cmath>

#include "base/parallel.h"
#include "model/statistics.h"

namespace stageline {

void CauseWorlds::fill(const World& world, const WorldStretch& s) const {
  const StepGraph& g = scene_.graph;
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const size_t at = (op - s.begin) * s.width;
    s.dur_ns[at] = g.dur_ns[op];
    s.delay_ns[at] = is_compute(g.kind[op]) ? g.delay_ns[op] : std::min(g.delay_ns[op], launch_ns_[g.type[op]]);
  }
  for (const CauseWorld& change : world) change.apply(s);
  leave_out_held(s);
}

void CauseWorlds::leave_out_held(const WorldStretch& s) const {
  if (held_.empty()) return;
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const size_t at = (op - s.begin) * s.width;
    if (is_held(op)) s.dur_ns[at] = s.delay_ns[at] = 0;
  }
}

WorldTimes CauseWorlds::replay(const std::vector<World>& worlds) {
  std::vector<World> fresh;
  for (const World& world : worlds)
    if (step_ns_.try_emplace(world).second) fresh.push_back(world);
  const WorldTimes replayed = replay_new(fresh);
  const size_t steps = scene_.graph.steps.size();
  for (size_t w = 0; w < fresh.size(); ++w) {
    std::vector<double>& own = step_ns_[fresh[w]];
    for (size_t s = 0; s < steps; ++s) own.push_back(replayed.ns(s, w));
  }
  WorldTimes out{worlds.size(), replayed.counts, {}};
  for (size_t s = 0; s < steps; ++s)
    for (const World& world : worlds) out.step_ns.push_back(step_ns_.at(world)[s]);
  return out;
}

WorldTimes CauseWorlds::compare_work(const std::vector<World>& worlds) const {
  const StepGraph& g = scene_.graph;
  WorldTimes out{worlds.size(), std::vector<bool>(g.steps.size(), true), {}};
  out.step_ns.resize(g.steps.size() * worlds.size());
  parallel_for(g.steps.size(), [&](size_t s) {
    for (size_t w = 0; w < worlds.size(); ++w) {
      std::vector<double> longer(g.stage_of.size());  // by part
      each({g.steps[s].begin, g.steps[s].end}, worlds[w], [&](uint32_t op, double dur_ns) {
        if (is_compute(g.kind[op])) longer[g.part[op]] += dur_ns - g.dur_ns[op];
      });
      out.step_ns[s * worlds.size() + w] = *std::ranges::min_element(longer);
    }
  });
  return out;
}

WorldTimes CauseWorlds::replay_new(const std::vector<World>& worlds) const {
  if (scene_.graph.source == GraphSource::kNone) return compare_work(worlds);
  // A world that has all changes of one before it and some more is made from that one; SIZE_MAX: from the recorded
  // times.
  std::vector<size_t> from(worlds.size(), SIZE_MAX);
  for (size_t w = 0; w < worlds.size(); ++w)
    for (size_t v = 0; v < w; ++v)
      if (worlds[v].size() <= worlds[w].size() && std::equal(worlds[v].begin(), worlds[v].end(), worlds[w].begin()) &&
          (from[w] == SIZE_MAX || worlds[v].size() >= worlds[from[w]].size()))
        from[w] = v;
  return replay_worlds(scene_.graph, worlds.size(), [&](const WorldStretch& s) {
    for (size_t w = s.first; w < s.first + s.count; ++w) {
      const WorldStretch own = s.of_world(w);
      if (from[w] == SIZE_MAX || from[w] < s.first) {
        fill(worlds[w], own);
        continue;
      }
      const WorldStretch less = s.of_world(from[w]);
      for (size_t at = 0; at < (s.end - s.begin) * s.width; at += s.width)
        own.dur_ns[at] = less.dur_ns[at], own.delay_ns[at] = less.delay_ns[at];
      for (size_t c = worlds[from[w]].size(); c < worlds[w].size(); ++c) worlds[w][c].apply(own);
      leave_out_held(own);
    }
  });
}

std::vector<double> gains_of(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts) {
  std::vector<double> gains;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s]) gains.push_back(times.ns(s, from) - times.ns(s, to));
  return gains;
}

double standard_error(const std::vector<double>& values) { return sample_std(values) / std::sqrt(values.size()); }

}  // namespace stageline
