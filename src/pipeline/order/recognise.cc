#include "pipeline/order/recognise.h"

#include "pipeline/cells/link_cells.h"
#include "pipeline/order/schedule_places.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

// At most this number of candidates is generated, not counting those that are as near as the nearest.
constexpr size_t kMaxPlausible = 8;
constexpr double kPlausible = 0.35;   // share of the warm-up forwards that may differ
constexpr double kPairTurned = 1e-3;  // in forwards; for a pair, F before B is the likelier order
constexpr size_t kMaxSizes = 4;       // this number of different micro-batch counts per step get schedules of their own
constexpr double kRenumberGain = 0.02;    // labels are believed unless renumbering raises the score by this
constexpr size_t kMaxScored = 2048;       // candidates are scored on this number of different lists
constexpr int64_t kMaxPlanned = 1 << 17;  // limit on the forwards of a schedule that is planned greedily

std::vector<WorkToken> directions_only(const std::vector<WorkToken>& tokens) {
  std::vector<WorkToken> kept;
  for (const WorkToken& t : tokens)
    if (t.kind != CellKind::kWeightGrad) kept.push_back(t);
  return kept;
}

std::vector<WorkToken> expected_tokens(const RankOrder& order) {
  std::vector<WorkToken> tokens;
  tokens.reserve(order.size());
  for (const ScheduleCell& cell : order)
    for (const Action& a : cell.actions())
      tokens.push_back({a.micro_batch, static_cast<int16_t>(a.chunk), a.kind, cell.overlapped()});
  return tokens;
}

double closeness(size_t distance, size_t a, size_t b) {
  const double longer = std::max<size_t>(1, std::max(a, b));
  return std::max(0.0, 1 - distance / longer);
}

// The number of forwards before the first backward; `fused` is set if the last of them ran as one with it.
struct WarmUp {
  int64_t forwards = -1;  // −1 for a list without backwards, which was cut
  bool fused = false;
  auto operator<=>(const WarmUp&) const = default;
};
WarmUp warm_up_of(const WorkList& list) {
  int64_t forwards = 0;
  for (const WorkToken& t : list.tokens)
    if (t.kind == CellKind::kForward) ++forwards;
    else if (t.kind != CellKind::kWeightGrad) return {forwards, t.fused};
  return {};
}

// Returns the most common value; of equally common values the smallest.
template <class Value> Value commonest(const std::map<Value, int64_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& of) { return of.second; })->first;
}

// Returns how many forwards of chunk 0 come before the first of another chunk: the group of interleaved schedules.
int64_t first_group(const WorkList& list) {
  int64_t run = 0;
  for (const WorkToken& t : list.tokens) {
    if (t.kind != CellKind::kForward) continue;
    if (t.chunk != 0) return run;
    ++run;
  }
  return -1;
}

struct Plausible {
  const ScheduleDef* def;
  ScheduleSizes sizes;
  double distance;  // difference in warm-up forwards, as a share of the expected ones
};

std::vector<Plausible> plausible_ones(const WorkLists& lists) {
  // For each stage the most common warm-up.
  std::map<int32_t, std::map<WarmUp, int64_t>> counted;  // stage → warm-up → number of lists
  for (const WorkList& list : lists.lists)
    if (const WarmUp seen = warm_up_of(list); seen.forwards >= 0) counted[list.stage][seen] += list.count;
  std::map<int32_t, WarmUp> warm_up;
  for (const auto& [stage, counts] : counted) warm_up[stage] = commonest(counts);
  std::vector<Plausible> found;
  const auto consider = [&](const ScheduleDef* def, const ScheduleSizes& sizes) {
    double apart = 0, whole = 0;
    for (const auto& [stage, seen] : warm_up) {
      const int64_t expected = def->warm_up(sizes, stage);
      // The F of a pair counts as first; a schedule that has the B first fits nearly as well.
      const double first = std::abs(seen.forwards - expected);
      const double second = std::abs(seen.forwards - 1 - expected) + kPairTurned;
      apart += seen.fused ? std::min(first, second) : first;
      whole += std::max<int64_t>(1, expected);
    }
    found.push_back({def, sizes, whole > 0 ? apart / whole : 0});
  };
  std::map<int64_t, int64_t> groups;
  for (const WorkList& list : lists.lists)
    if (const int64_t forwards = first_group(list); forwards > 0) groups[forwards] += list.count;
  const int64_t group = groups.empty() ? 0 : commonest(groups);
  for (const ScheduleDef* def : schedules()) {
    const bool fixed = def->default_chunks == def->max_chunks;
    if (fixed ? lists.chunks != def->max_chunks : lists.chunks < 2 || lists.chunks > def->max_chunks) continue;
    ScheduleSizes sizes{.stages = lists.stages, .micro_batches = lists.micro_batches, .chunks = lists.chunks};
    if (std::string_view(def->name) == "zbvpp" && int64_t{sizes.stages} * sizes.micro_batches * 2 > kMaxPlanned)
      continue;
    consider(def, sizes);
    if (def->grouped) {
      if (group > 0 && group <= 65536 && group != sizes.stages) {
        sizes.group = static_cast<int32_t>(group);
        consider(def, sizes);
      }
    }
    if (std::string_view(def->name) == "dualpipe-v-mindspeed") {
      sizes.dw_detach = true;
      consider(def, sizes);
    }
  }
  // Keeps the nearest, and a few more in any case, since labels and gaps may hide the warm-up. With one micro-batch
  // nearly all candidates are equally near.
  sort_stably(found, {}, &Plausible::distance);
  size_t kept = 0;
  const auto keeps = [&](const Plausible& p) {
    return p.distance == found.front().distance || (kept < kMaxPlausible && (kept < 3 || p.distance <= kPlausible));
  };
  while (kept < found.size() && keeps(found[kept])) ++kept;
  found.resize(kept);
  return found;
}

// Compares one candidate with all lists. Its schedule is made once for each number of micro-batches.
class Comparison {
 public:
  Comparison(const Plausible& candidate, const WorkLists& lists) : candidate_(candidate), lists_(lists) {
    std::map<int32_t, int64_t> counts;
    for (const WorkList& list : lists.lists) counts[list.micro_batches] += list.count;
    while (counts.size() > kMaxSizes)
      counts.erase(std::ranges::min_element(counts, {}, [](const auto& of) { return of.second; }));
    for (const auto& [m, count] : counts) sizes_.push_back(m);
  }

  // Returns the schedule for the step of this list. It has the list's own number of micro-batches if that is common,
  // else the most common number. nullptr when there is none.
  const Schedule* schedule_for(const WorkList& list) {
    const bool common = std::ranges::find(sizes_, list.micro_batches) != sizes_.end();
    const int32_t m = common ? list.micro_batches : lists_.micro_batches;
    const auto known = made_.find(m);
    if (known != made_.end()) return known->second ? &*known->second : nullptr;
    ScheduleSizes sizes = candidate_.sizes;
    sizes.micro_batches = m;
    std::optional<Schedule>& made = made_[m];
    if (Result<Schedule> schedule = make_schedule(candidate_.def->name, sizes)) made = std::move(*schedule);
    return made ? &*made : nullptr;
  }

  // Scores every `every`-th list; equal lists are counted among all.
  std::optional<ScheduleCandidate> run(size_t every) {
    ScheduleCandidate result{candidate_.def->name, candidate_.sizes, ChunkLayout::kLoop, 0, 0, 0};
    int64_t scored = 0;
    for (size_t l = 0; l < lists_.lists.size(); ++l) {
      const WorkList& list = lists_.lists[l];
      const bool score = l % every == 0;
      scored += score ? list.count : 0;
      const Schedule* schedule = schedule_for(list);
      if (!schedule) continue;
      result.layout = schedule->layout;
      if (list.micro_batches == lists_.micro_batches) result.sizes = schedule->sizes;
      const Expected& expected = expected_of(*schedule, list.stage);
      const std::vector<WorkToken> own = tokens_beside(*schedule, list), found = directions_only(own);
      if (!score) {
        const bool equal = expected.directions.size() == found.size() &&
                           std::equal(found.begin(), found.end(), expected.directions.begin(), same_direction);
        result.equal_lists += equal ? list.count : 0;
        continue;
      }
      const size_t distance = edit_distance(expected.directions, found, same_direction);
      const size_t order_distance = edit_distance(expected.all, own, same_work);
      const double count = list.count;
      result.score += count * closeness(distance, expected.directions.size(), found.size());
      result.order_score += count * closeness(order_distance, expected.all.size(), own.size());
      if (distance == 0) result.equal_lists += list.count;
    }
    if (made_.empty() || std::ranges::none_of(made_, [](const auto& m) { return m.second.has_value(); }))
      return std::nullopt;
    result.score /= std::max<int64_t>(1, scored);
    result.order_score /= std::max<int64_t>(1, scored);
    return result;
  }

  // Returns the tokens of a list, with two that ran as one in the order that this schedule has for them.
  std::vector<WorkToken> tokens_beside(const Schedule& schedule, const WorkList& list) {
    std::vector<WorkToken> tokens = list.tokens;
    if (std::ranges::none_of(tokens, [](const WorkToken& t) { return t.fused; })) return tokens;
    auto at = places_.find(&schedule);
    if (at == places_.end())
      at = places_.emplace(&schedule, has_pairs(schedule) ? std::nullopt : std::optional<SchedulePlaces>(schedule))
               .first;
    if (at->second) order_pairs_as(*at->second, list.stage, tokens);
    return tokens;
  }

 private:
  struct Expected {
    std::vector<WorkToken> all, directions;
  };
  const Expected& expected_of(const Schedule& schedule, int32_t stage) {
    Expected& expected = expected_[{&schedule, stage}];
    if (expected.all.empty()) {
      expected.all = expected_tokens(schedule.ranks[stage]);
      expected.directions = directions_only(expected.all);
    }
    return expected;
  }

  const Plausible& candidate_;
  const WorkLists& lists_;
  std::vector<int32_t> sizes_;
  std::map<int32_t, std::optional<Schedule>> made_;
  std::map<std::pair<const Schedule*, int32_t>, Expected> expected_;
  std::map<const Schedule*, std::optional<SchedulePlaces>> places_;  // for schedules without cells of two actions
};

// A list far from a schedule costs a thousand times what an equal one does. So when there are many different lists,
// some of them decide.
size_t sample_step(const WorkLists& lists) {
  return std::max<size_t>(1, (lists.lists.size() + kMaxScored - 1) / kMaxScored);
}

struct Ranked {
  ScheduleCandidate candidate;
  Plausible plausible;
  const WorkLists* lists;
};

// A few cells may claim sizes that would take gigabytes; these are refused.
bool affordable(const WorkLists& lists, size_t cells) {
  const int64_t forwards = int64_t{lists.stages} * lists.micro_batches * std::max(1, lists.chunks);
  return lists.list_count > 0 && lists.stages > 0 && lists.stages <= kMaxPipelineStages && lists.micro_batches > 0 &&
         lists.micro_batches <= 65536 && lists.chunks > 0 && lists.chunks <= 64 &&
         forwards <= static_cast<int64_t>(cells) * 64 + 16384;
}

// Returns the candidates of both label rules that apply, the best first.
std::vector<Ranked> ranked(const std::vector<const WorkLists*>& choices, size_t cells) {
  std::vector<Ranked> all;
  for (const WorkLists* lists : choices) {
    if (!affordable(*lists, cells)) continue;
    for (const Plausible& plausible : plausible_ones(*lists)) {
      // Chunks can be two directions only where they share no micro-batch, and then they need one common numbering.
      const bool two_ways = std::string_view(plausible.def->name) == "dualpipe";
      const bool one_numbering = lists == choices.front();
      if (lists->chunks_share_no_label ? two_ways != one_numbering : two_ways) continue;
      Comparison comparison(plausible, *lists);
      if (auto candidate = comparison.run(sample_step(*lists)))
        all.push_back({std::move(*candidate), plausible, lists});
    }
  }
  const auto place = [](const Ranked& r) { return std::pair(r.candidate.score, r.candidate.order_score); };
  const auto nearer = [&](const Ranked& a, const Ranked& b) { return place(a) > place(b); };
  sort_stably(all, nearer);
  // The nearest candidate, and those equal to it, are scored again on all lists; few lists differ from it much, so that
  // is cheap.
  if (all.empty() || sample_step(*all.front().lists) == 1) return all;
  size_t equal = 1;
  while (equal < all.size() && place(all[equal]) == place(all.front())) ++equal;
  for (size_t i = 0; i < equal; ++i) {
    Comparison comparison(all[i].plausible, *all[i].lists);
    if (auto exact = comparison.run(1)) all[i].candidate = std::move(*exact);
  }
  std::stable_sort(all.begin(), all.begin() + equal, nearer);
  return all;
}

bool is_half(CellKind kind) { return kind == CellKind::kInputGrad || kind == CellKind::kWeightGrad; }

// A run that never splits a backward may still be nearest to a schedule made of split backwards, and then the place of
// the splits is unknown. Among schedules whose forwards and backwards are equally near, the first one in the list of
// schedules is taken. This does not apply to labels that count on in the second chunk, which only MindSpeed writes.
void settle_unsplit(std::vector<Ranked>& all) {
  const auto splits = [](const Ranked& one) {
    const Result<Schedule> made = make_schedule(one.candidate.name, one.candidate.sizes);
    return made && std::ranges::any_of(made->ranks, [](const RankOrder& order) {
             return std::ranges::any_of(order,
                                        [](const ScheduleCell& cell) { return is_half(cell.actions()[0].kind); });
           });
  };
  if (all.empty() || all.front().lists->rule == LabelRule::kPerChunk) return;
  for (const WorkList& list : all.front().lists->lists)
    for (const WorkToken& token : list.tokens)
      if (is_half(token.kind)) return;
  size_t near = 1;
  while (near < all.size() && all[near].candidate.score == all.front().candidate.score) ++near;
  if (near == 1 || !splits(all.front())) return;
  const auto first = std::ranges::find_if(schedules(), [&](const ScheduleDef* def) {
    return std::any_of(all.begin(), all.begin() + near,
                       [&](const Ranked& one) { return one.candidate.name == def->name && splits(one); });
  });
  const auto chosen =
      std::ranges::find_if(all, [&](const Ranked& one) { return one.candidate.name == (*first)->name; });
  std::rotate(all.begin(), chosen, chosen + 1);
}

// With one micro-batch, a schedule has the same lists in a loop and in a V. Of equal candidates the one is taken whose
// layout of chunks fits the times.
void settle_layout(const Trace& trace, std::vector<Ranked>& all) {
  const auto equals_first = [&](const Ranked& one) {
    return one.candidate.score == all.front().candidate.score &&
           one.candidate.order_score == all.front().candidate.order_score;
  };
  const auto end = std::ranges::find_if_not(all, equals_first);
  const auto differs = [&](const Ranked& one) { return one.candidate.layout != all.front().candidate.layout; };
  if (std::none_of(all.begin(), end, differs)) return;
  const ChunkLayout layout = guess_chunk_layout(trace);
  const auto chosen = std::find_if(all.begin(), end, [&](const Ranked& one) { return one.candidate.layout == layout; });
  if (chosen != end) std::rotate(all.begin(), chosen, chosen + 1);
}

// The trace's labels for the micro-batches that the lists of one step and replica number from 0.
class OwnLabels {
 public:
  OwnLabels(const Trace& trace, const RankLists& lists) : trace_(trace), lists_(lists) {
    lowest_ = INT32_MAX;
    highest_ = INT32_MIN;
    for (size_t t = 0; t < lists_.tokens.size(); ++t) {
      const int32_t own = trace.cells.micro_batch[lists_.cell[t]];
      if (own == kUnknown || lists_.tokens[t].micro_batch == kUnknown) continue;
      differ_ |= own != lists_.tokens[t].micro_batch;
      lowest_ = std::min(lowest_, own);
      highest_ = std::max(highest_, own);
    }
  }
  bool differ() const { return differ_; }
  int32_t lowest() const { return lowest_; }
  int32_t highest() const { return highest_; }

  // Returns the labels in the step and replica of a list, by (micro-batch, chunk); those of another chunk where this
  // one was not seen.
  MicroBatchLabel of(int32_t step, int32_t dp) const {
    std::map<std::pair<int32_t, int32_t>, int32_t> own;
    for (size_t l = 0; l < lists_.lists.size(); ++l) {
      const RankList& list = lists_.lists[l];
      if (list.step != step || list.dp != dp) continue;
      for (size_t t = list.begin; t < list.end; ++t) {
        const WorkToken& token = lists_.tokens[t];
        if (token.micro_batch == kUnknown) continue;
        const int32_t label = trace_.cells.micro_batch[lists_.cell[t]];
        own.try_emplace({token.micro_batch, token.chunk}, label);
        own.try_emplace({token.micro_batch, kUnknown}, label);
      }
    }
    return [own = std::move(own)](int32_t micro_batch, int32_t chunk) {
      auto at = own.find({micro_batch, chunk});
      if (at == own.end()) at = own.find({micro_batch, kUnknown});
      return at == own.end() ? micro_batch : at->second;
    };
  }

 private:
  const Trace& trace_;
  const RankLists& lists_;
  bool differ_ = false;
  int32_t lowest_ = 0, highest_ = 0;
};

void add_divergences(const Trace& trace, const RankLists& lists, const Ranked& best, Recognition& result) {
  Comparison comparison(best.plausible, *best.lists);
  std::map<std::tuple<int32_t, int64_t, std::string, std::string>, size_t> known;
  const auto divergence_of = [&](const WorkList& list, const MicroBatchLabel& label) -> std::optional<Divergence> {
    const Schedule* schedule = comparison.schedule_for(list);
    if (!schedule) return std::nullopt;
    const auto expected = directions_only(expected_tokens(schedule->ranks[list.stage]));
    return first_divergence(expected, directions_only(comparison.tokens_beside(*schedule, list)),
                            best.lists->chunks > 1, label);
  };
  for (const WorkList& list : best.lists->lists) {
    auto divergence = divergence_of(list, {});
    if (!divergence) continue;
    divergence->stage = list.stage;
    const auto [it, fresh] = known.try_emplace(
        {list.stage, divergence->position, divergence->expected, divergence->found}, result.divergences.size());
    if (fresh) {
      divergence->step = list.step;
      divergence->dp = list.dp;
      divergence->part = list.part;
      result.divergences.push_back(std::move(*divergence));
    }
    result.divergences[it->second].lists += list.count;
  }
  sort_stably(result.divergences, {},
              [](const Divergence& a) { return std::tuple(!a.is_order, -a.lists, a.stage, a.position); });
  if (result.divergences.size() > kMaxDivergences) result.divergences.resize(kMaxDivergences);
  const OwnLabels labels(trace, lists);
  result.own_labels = labels.differ();
  result.lowest_label = labels.lowest();
  result.highest_label = labels.highest();
  if (!labels.differ()) return;
  for (Divergence& d : result.divergences) {
    const auto list = std::ranges::find_if(
        best.lists->lists, [&](const WorkList& l) { return l.step == d.step && l.dp == d.dp && l.part == d.part; });
    if (list == best.lists->lists.end()) continue;
    const auto reported = divergence_of(*list, labels.of(d.step, d.dp));
    d.expected = reported->expected;
    d.found = reported->found;
    d.sentence = reported->sentence;
  }
}

}  // namespace

Recognition recognise(const Trace& trace, RankLists* kept) {
  Recognition result;
  // The ranks of this profile have places although its stages are not known; any schedule would be a guess as well.
  const bool placed = std::ranges::none_of(trace.parts, [](const Part& part) { return part.stage == kUnknown; });
  if (placed && trace.pipeline_stages == 0) return result;
  RankLists lists = rank_lists(trace, LabelRule::kDense);
  const WorkLists dense = work_lists(lists);
  result.lists = dense.list_count;
  std::vector<const WorkLists*> choices = {&dense};
  std::optional<WorkLists> per_chunk, by_order;
  if (dense.chunks_share_no_label) {
    per_chunk = work_lists(trace, LabelRule::kPerChunk);
    choices.push_back(&*per_chunk);
  }
  std::vector<Ranked> all = ranked(choices, trace.cells.size());
  if (!all.empty() && all.front().candidate.score < 1) {
    by_order = work_lists(trace, LabelRule::kByOrder);
    std::vector<Ranked> renumbered = ranked({&*by_order}, trace.cells.size());
    if (!renumbered.empty() && renumbered.front().candidate.score > all.front().candidate.score + kRenumberGain) {
      all = std::move(renumbered);
      result.renumbered = true;
    }
  }
  if (all.empty()) return result;
  settle_unsplit(all);
  settle_layout(trace, all);
  result.rule = all.front().lists->rule;
  for (const Ranked& one : all) {
    const ScheduleCandidate& best = all.front().candidate;
    if (one.candidate.name != best.name && one.candidate.score == best.score &&
        one.candidate.order_score == best.order_score)
      result.same_as.push_back(one.candidate.name);
    // One row for each schedule, with the sizes that fit best.
    const auto same = [&](const ScheduleCandidate& c) { return c.name == one.candidate.name; };
    if (std::ranges::none_of(result.candidates, same)) result.candidates.push_back(one.candidate);
  }
  result.recognised = result.best().score >= kRecognisedScore;
  if (result.rule != LabelRule::kDense) lists = rank_lists(trace, result.rule);
  add_divergences(trace, lists, all.front(), result);
  if (kept) *kept = std::move(lists);
  return result;
}

}  // namespace stageline
