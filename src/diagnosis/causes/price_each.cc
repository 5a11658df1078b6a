#include "diagnosis/causes/link_times.h"
#include "diagnosis/causes/search.h"
#include "diagnosis/causes/start_reasons.h"

namespace stageline {

using World = CauseWorlds::World;

Gain Search::gain(const WorldTimes& times, size_t from, size_t to) const {
  const std::vector<double> gains = gains_of(times, from, to, steps.counts);
  return {weighted_gain(times, from, to, steps.counts) * steps.pace, standard_error(gains) * steps.pace};
}

double Search::gain_of_all(const WorldTimes& times, size_t from, size_t to) const {
  return weighted_gain(times, from, to, std::vector<bool>(steps.counts.size(), true)) * steps.pace;
}

double Search::weighted_gain(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts) const {
  double ns = 0, all = steps.without;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s] && steps.weight[s] > 0)
      ns += steps.weight[s] * (times.ns(s, from) - times.ns(s, to)), all += steps.weight[s];
  return all > 0 ? ns / all : 0;
}

namespace {

// The suspicions of each group, in their order.
std::map<std::string_view, std::vector<size_t>> groups_of(const std::vector<Suspect>& suspects) {
  std::map<std::string_view, std::vector<size_t>> groups;
  for (size_t i = 0; i < suspects.size(); ++i)
    if (const Together& together = suspects[i].cause.together; !together.id.empty()) groups[together.id].push_back(i);
  return groups;
}

World without(const std::vector<Suspect>& suspects, const std::vector<size_t>& gone, size_t but = SIZE_MAX) {
  World world;
  for (const size_t i : gone)
    if (i != but) world.push_back(suspects[i].without);
  return world;
}

// Each of several causes that are alike may hide the cost of the others.
void add_worlds_of_equals(const std::vector<size_t>& alike, PricedSuspects& priced, std::vector<World>& worlds) {
  if (alike.size() < 2) return;
  const size_t joint = worlds.size() + alike.size();
  for (const size_t one : alike) {
    priced.worlds[one].others_gone = worlds.size(), priced.worlds[one].all_gone = joint;
    worlds.push_back(without(priced.all, alike, one));
  }
  worlds.push_back(without(priced.all, alike));
}

// Followers hide a part of what the cause that leads them costs.
void add_worlds_of_leader(const std::vector<size_t>& group, PricedSuspects& priced, std::vector<World>& worlds) {
  const auto leader = std::ranges::find_if(
      group, [&](size_t i) { return priced.all[i].cause.together.role == Together::Role::kLeads; });
  if (leader == group.end() || group.size() < 2) return;
  priced.worlds[*leader].others_gone = worlds.size(), priced.worlds[*leader].all_gone = worlds.size() + 1;
  worlds.push_back(without(priced.all, group, *leader));
  worlds.push_back(worlds.back());
  worlds.back().push_back(priced.all[*leader].without);
}

}  // namespace

// Replays the step as recorded, and without each suspicion. Suspicions that have them are also replayed with work
// evened out and by another reading. Further scenarios are without several suspicions at once, and without messages.
PricedSuspects price_each(const Search& search, std::vector<Suspect> suspects) {
  PricedSuspects priced{std::move(suspects), {}, {}};
  std::vector<World> worlds(1);
  const auto add = [&](const CauseWorld& change) {
    if (!change) return size_t{0};
    worlds.push_back({change});
    return worlds.size() - 1;
  };
  priced.worlds.resize(priced.all.size());
  for (size_t i = 0; i < priced.all.size(); ++i) priced.worlds[i].without = add(priced.all[i].without);
  for (size_t i = 0; i < priced.all.size(); ++i) priced.worlds[i].evened = add(priced.all[i].evened);
  for (size_t i = 0; i < priced.all.size(); ++i) priced.worlds[i].otherwise = add(priced.all[i].otherwise);
  for (const auto& [id, group] : groups_of(priced.all))
    if (priced.all[group.front()].cause.together.role == Together::Role::kEqual)
      add_worlds_of_equals(group, priced, worlds);
    else add_worlds_of_leader(group, priced, worlds);
  // A rank that waits for its sends does not wait for those that take no time. Work that was not read keeps its time.
  const auto sends = search.scene.measured<StartReasons>().starts.rank_sends();
  const CauseWorld unblocked = [sends](uint32_t op, double&, double& delay) {
    if (sends) delay = std::max(std::min(delay, 0.0), delay - sends->blocked_by(op));
  };
  const CauseWorld at_once = [&graph = search.scene.graph, whole = search.scene.coverage.whole(),
                              chunked = search.scene.times.chunks() > 1](uint32_t op, double& dur, double&) {
    if (is_message(graph.kind[op]) && (whole || other_end_read(graph, op, chunked) != kUnknown))
      dur = std::min(dur, 0.0);
  };
  const size_t free = worlds.size();  // and behind it the same without each suspicion
  if (sends) worlds.push_back({unblocked});
  for (size_t i = 0; sends && i < priced.all.size(); ++i) {
    worlds.push_back({unblocked});
    if (priced.all[i].without) worlds.back().insert(worlds.back().begin(), priced.all[i].without);
  }
  worlds.push_back({unblocked, at_once});
  priced.times = search.model.replay(worlds);
  const Gain of_messages = search.gain(priced.times, 0, worlds.size() - 1);
  search.list.messages_ns = of_messages.ns, search.list.messages_error_ns = of_messages.error_ns;
  for (size_t i = 0; i < priced.all.size(); ++i) {
    const PricedSuspects::Worlds& of = priced.worlds[i];
    CausePrice& price = priced.all[i].cause.price;
    const Gain alone = search.gain(priced.times, 0, of.without);
    price.lost_ns = alone.ns, price.lost_error_ns = alone.error_ns;
    if (of.evened > 0) price.saving_ns = search.gain(priced.times, 0, of.evened).ns;
    // Ranks would wait for their sends differently without the cause: by no more than that wait costs then, nor by more
    // than the cause changes its cost.
    if (const double then_ns = sends ? search.gain(priced.times, of.without, free + 1 + i).ns : 0; then_ns > 0)
      price.open_ns = std::min(then_ns, std::abs(then_ns - search.gain(priced.times, 0, free).ns));
    if (of.otherwise == 0) continue;
    price.otherwise_ns = search.gain(priced.times, 0, of.otherwise).ns;
    price.open_ns = std::hypot(price.open_ns, price.lost_ns - price.otherwise_ns);
  }
  return priced;
}

GoneTogether price_together(const Search& search, const PricedSuspects& priced, const Kept& kept) {
  GoneTogether together;
  std::vector<World> worlds = {{}, kept.gone};
  std::map<std::string_view, std::vector<size_t>> groups;  // indexes of list.causes
  std::vector<Cause>& causes = search.list.causes;
  for (size_t i = 0; i < kept.taken.size(); ++i)
    if (!causes[i].together.id.empty()) groups[causes[i].together.id].push_back(i);
  for (auto& [id, group] : groups) {
    const auto leader =
        std::ranges::find_if(group, [&](size_t i) { return causes[i].together.role == Together::Role::kLeads; });
    const bool equals = causes[group.front()].together.role == Together::Role::kEqual;
    if (!equals && leader == group.end())
      for (const size_t i : group) causes[i].together = {};
    if (group.size() < 2 || (!equals && leader == group.end())) continue;
    if (!equals) std::rotate(group.begin(), leader, leader + 1);  // what the leader changes is changed first
    World world;
    for (const size_t i : group) world.push_back(priced.all[kept.taken[i]].without);
    if (!equals) group.resize(1);
    together.groups.push_back({std::move(group), worlds.size()});
    worlds.push_back(std::move(world));
  }
  together.times = search.model.replay(worlds);
  return together;
}

}  // namespace stageline
