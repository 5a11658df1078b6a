#include "diagnosis/causes/cause_worlds.h"

namespace stageline {

CauseWorlds::CauseWorlds(const CauseScene& scene, std::vector<bool> held)
    : scene_(scene), launch_ns_(launch_delays(scene.graph)), held_(std::move(held)) {
  if (!scene.coverage.whole() && scene.coverage.replicas_unread() == 0) find_unread_members();
}

void CauseWorlds::find_unread_members() {
  const StepGraph& g = scene_.graph;
  std::set<int32_t> replicas, stages;          // replicas read in part, and the stages that they lack
  std::set<std::pair<int32_t, int32_t>> read;  // replica, stage
  for (size_t part = 0; part < g.stage_of.size(); ++part) {
    const int32_t dp = g.dp_of[part];
    if (dp < 0) continue;
    read.emplace(dp, g.stage_of[part]);
    const bool left_out = std::cmp_less(dp, held_.size()) && held_[dp];
    if (!left_out && !scene_.coverage.whole_replica(dp)) replicas.insert(dp);
  }
  for (int32_t stage = 0; stage < g.stage_count; ++stage)
    if (std::ranges::any_of(replicas, [&](int32_t dp) { return !read.contains({dp, stage}); })) stages.insert(stage);
  if (stages.empty()) return;
  std::map<uint16_t, std::vector<double>> usual;
  for (uint32_t op = 0; op < g.size(); ++op)
    if (g.types[g.type[op]].communicates && !is_message(g.kind[op]) && scene_.coverage.read_everywhere(g.stage(op)))
      usual[g.type[op]].push_back(g.dur_ns[op]);
  for (auto& [type, durations] : usual) {
    const double ns = median_of(std::move(durations));
    for (const int32_t stage : stages) transfer_ns_[{type, stage}] = ns;
  }
}

void CauseWorlds::fill(const World& world, const WorldStretch& s) const {
  const StepGraph& g = scene_.graph;
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const size_t at = (op - s.begin) * s.width;
    s.dur_ns[at] = g.dur_ns[op];
    if (!transfer_ns_.empty() && !is_compute(g.kind[op]))
      if (const auto usual = transfer_ns_.find({g.type[op], g.stage(op)}); usual != transfer_ns_.end())
        s.dur_ns[at] = std::min(s.dur_ns[at], usual->second);
    s.delay_ns[at] = is_compute(g.kind[op]) ? g.delay_ns[op] : std::min(g.delay_ns[op], launch_ns_[g.type[op]]);
  }
  if (!scene_.peers.any()) {
    for (const CauseWorld& change : world) change.apply(s);
    leave_out_held(s);
    return;
  }
  const PeerCells& peers = scene_.peers.cells();
  std::vector<double> own, transfers;
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const size_t at = (op - s.begin) * s.width;
    const uint32_t number = peers.of_op[op];
    if (number == PeerCells::kNone || peers.cells[number].op != op) {
      const WorldStretch alone{op, op + 1, 0, 1, 1, s.dur_ns + at, s.delay_ns + at};
      for (const CauseWorld& change : world) change.apply(alone);
      continue;
    }
    own.resize(peers.cells[number].meets + size_t{1}), transfers.resize(own.size());
    change_cell(world, peers.cells[number], s.dur_ns[at], s.delay_ns[at], own, transfers);
  }
  leave_out_held(s);
}

void CauseWorlds::leave_out_held(const WorldStretch& s) const {
  if (held_.empty()) return;
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const size_t at = (op - s.begin) * s.width;
    if (is_held(op)) s.dur_ns[at] = s.delay_ns[at] = 0;
  }
}

// Makes the changes of a world to a cell in which ranks meet: those of the whole cell change all its own work alike.
void CauseWorlds::change_cell(const World& world, const PeerCell& cell, double& dur, double& delay,
                              std::span<double> own_ns, std::span<double> transfer_ns) const {
  const PeerCells& peers = scene_.peers.cells();
  std::ranges::copy(peers.own(cell), own_ns.begin());
  std::ranges::copy(peers.transfers(cell), transfer_ns.begin());
  const auto sum = [&] { return sum_over<double>(own_ns) + sum_over<double>(transfer_ns.first(cell.meets)); };
  const WorldStretch whole{cell.op, cell.op + 1, 0, 1, 1, &dur, &delay};
  for (const CauseWorld& change : world) {
    const double before = dur;
    change.apply(whole);
    if (dur != before && before > 0)
      for (double& ns : own_ns) ns *= dur / before;
    const double was = sum();
    change.apply_inside(cell, own_ns, transfer_ns);
    dur += sum() - was;
  }
}

// Replays the meetings inside cells: work until the first of them, and then all of the meeting's group together.
void CauseWorlds::meet_inside(const World& world, const WorldStretch& s) const {
  const PeerCells& peers = scene_.peers.cells();
  const StepGraph& g = scene_.graph;
  PeerTimes times;
  std::vector<double> after, recorded;
  uint32_t known = PeerCells::kNone;  // the group that `after` is of
  for (uint32_t op = s.begin; op < s.end; ++op) {
    const uint32_t number = peers.of_op[op];
    if (number == PeerCells::kNone) continue;
    const PeerCell& own = peers.cells[number];
    const GraphGroup& group = peers.groups[own.group];
    const size_t at = (op - s.begin) * s.width, members = group.end - group.begin, places = own.meets + size_t{1};
    if (op == own.op) {
      times.own_ns.resize(places), times.transfer_ns.resize(places);
      double dur = g.dur_ns[op], delay = g.delay_ns[op];
      change_cell(world, own, dur, delay, times.own_ns, times.transfer_ns);
      s.dur_ns[at] = times.own_ns.front();
      continue;
    }
    if (std::exchange(known, own.group) != own.group) {
      after.resize(members), recorded.resize(members);
      times.own_ns.assign(peers.own_ns.begin() + peers.cells[group.begin].first,
                          peers.own_ns.begin() + peers.cells[group.begin].first + members * places);
      times.transfer_ns.assign(peers.transfer_ns.begin() + peers.cells[group.begin].first,
                               peers.transfer_ns.begin() + peers.cells[group.begin].first + members * places);
      replay_meetings(times, members, own.meets, recorded);
      for (size_t i = 0; i < members; ++i) {
        const PeerCell& member = peers.cells[group.begin + i];
        double dur = g.dur_ns[member.op], delay = g.delay_ns[member.op];
        change_cell(world, member, dur, delay, std::span(times.own_ns).subspan(i * places, places),
                    std::span(times.transfer_ns).subspan(i * places, places));
      }
      replay_meetings(times, members, own.meets, after);
    }
    const size_t i = number - group.begin;
    s.dur_ns[at] = peers.meeting_ns[number] + after[i] - recorded[i];
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
  const bool inside = scene_.peers.any();
  for (size_t w = 0; w < worlds.size() && !inside; ++w)
    for (size_t v = 0; v < w; ++v)
      if (worlds[v].size() <= worlds[w].size() && std::equal(worlds[v].begin(), worlds[v].end(), worlds[w].begin()) &&
          (from[w] == SIZE_MAX || worlds[v].size() >= worlds[from[w]].size()))
        from[w] = v;
  return replay_worlds(scene_.graph, worlds.size(), [&](const WorldStretch& s) {
    for (size_t w = s.first; w < s.first + s.count; ++w) {
      const WorldStretch own = s.of_world(w);
      if (from[w] == SIZE_MAX || from[w] < s.first) {
        fill(worlds[w], own);
        if (inside) meet_inside(worlds[w], own), leave_out_held(own);
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
