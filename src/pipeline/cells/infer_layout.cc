#include "base/parallel.h"
#include "pipeline/cells/problems.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

struct LayoutFacts {
  int32_t warm_up = -1;  // forwards before the first backward, median over steps; −1 when no backward was seen
  int32_t lead = -1;     // forwards of its first chunk before another's, median over steps; −1: it has one chunk
  int64_t first_forward_ns = 0;  // how long after the step's first start its first forward starts, median over steps
  int64_t forward_ns = 0;        // median duration of a forward
};

template <class T> T median(std::vector<T>& values) {
  if (values.empty()) return T{};
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the facts of one part. `starts_ns` holds the first start of each step, on any part.
LayoutFacts facts_of(const Cells& cells, const std::vector<RankRange>& steps,
                     const std::map<int32_t, int64_t>& starts_ns) {
  std::vector<int32_t> warm, lead;
  std::vector<int64_t> first, forward;
  for (const RankRange& step : steps) {
    int32_t forwards = 0, leading = 0, chunk = kUnknown;
    bool backward = false, first_seen = false, one_chunk = true;
    for (size_t i = step.begin; i < step.end; ++i) {
      if (cells.kind[i] == CellKind::kForward) {
        forward.push_back(cells.dur_ns(i));
        if (!first_seen) first.push_back(cells.start_ns[i] - starts_ns.at(step.step)), chunk = cells.chunk[i];
        one_chunk = one_chunk && cells.chunk[i] == chunk;
        if (one_chunk) ++leading;
        first_seen = true;
        if (!backward) ++forwards;
      } else if (cells.kind[i] == CellKind::kBackward || cells.kind[i] == CellKind::kInputGrad) {
        backward = true;
      }
    }
    if (backward) warm.push_back(forwards);
    // A rank that begins with a later chunk leads by none of the first.
    if (!one_chunk) lead.push_back(chunk > 0 ? 0 : leading);
  }
  LayoutFacts facts;
  if (!warm.empty()) facts.warm_up = median(warm);
  if (!lead.empty()) facts.lead = median(lead);
  facts.first_forward_ns = median(first);
  facts.forward_ns = median(forward);
  return facts;
}

std::vector<LayoutFacts> facts_of(const Trace& trace) {
  std::vector<std::vector<RankRange>> of_part(trace.parts.size());
  std::map<int32_t, int64_t> starts_ns;
  const std::vector<int64_t>& start_ns = trace.cells.start_ns;
  for (const RankRange& range : rank_ranges(trace.cells)) {
    if (range.step == kUnknown) continue;
    of_part[range.part].push_back(range);
    const int64_t first_ns = *std::min_element(start_ns.begin() + range.begin, start_ns.begin() + range.end);
    int64_t& of_step_ns = starts_ns.try_emplace(range.step, first_ns).first->second;
    of_step_ns = std::min(of_step_ns, first_ns);
  }
  std::vector<LayoutFacts> facts(of_part.size());
  parallel_for(facts.size(), [&](size_t p) { facts[p] = facts_of(trace.cells, of_part[p], starts_ns); });
  return facts;
}

// Returns the smallest p that divides the list's length such that the list repeats with period p and never rises within
// one period.
size_t falling_period(const std::vector<int32_t>& list) {
  for (size_t p = 1; p <= list.size(); ++p) {
    if (list.size() % p != 0) continue;
    bool fits = true;
    for (size_t i = 0; i < list.size() && fits; ++i)
      fits = list[i] == list[i % p] && (i % p == 0 || list[i] <= list[i - 1]);
    if (fits) return p;
  }
  return 0;
}

struct Layout {
  int32_t stages = 0, peers = 1;
  std::string_view how;  // the words that say how it was found
};

Layout from_warm_up(const std::vector<LayoutFacts>& facts) {
  std::vector<size_t> runs;  // lengths of runs of equal warm-up
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].warm_up < 0) return {};
    if (i > 0 && facts[i].warm_up == facts[i - 1].warm_up) ++runs.back();
    else runs.push_back(1);
  }
  if (runs.size() < 2) return {};
  size_t peers = 0;
  for (const size_t run : runs) peers = std::gcd(peers, run);
  std::vector<int32_t> list;
  for (size_t i = 0; i < facts.size(); i += peers) list.push_back(facts[i].warm_up);
  const size_t period = falling_period(list);
  if (period < 2) return {};
  return {static_cast<int32_t>(period), static_cast<int32_t>(peers), "layout.warm_up"};
}

// Orders machines by the warm-up of their first rank, the longest first. Names of folders (odd, even; 10.0.0.12,
// 10.0.0.3) say nothing of stages, whereas warm-ups fall from stage to stage. Returns for each rank where it then
// stands.
//
//     folder     even        odd             warm-up forwards by name   2 1 4 3    no pipeline has these
//     warm-up    2 1         4 3             machines by their first    4 3 2 1    stages 0 to 3
std::vector<size_t> by_machines(const Trace& trace, const std::vector<LayoutFacts>& facts) {
  auto order = indexes(facts.size());
  std::vector<int32_t> warm_up(facts.size());  // for each rank the warm-up of the first rank of its machine
  for (size_t i = 0; i < order.size(); ++i)
    warm_up[i] = i > 0 && trace.parts[i].machine == trace.parts[i - 1].machine ? warm_up[i - 1] : facts[i].warm_up;
  sort_stably(order, std::greater(), [&](size_t a) { return warm_up[a]; });
  return order;
}

// The same facts with `lead` for the warm-up. In DualPipe and DualPipeV all warm-ups are nearly equal, and it is the
// forwards before the other chunk's first that fall from stage to stage.
std::vector<LayoutFacts> by_lead(std::vector<LayoutFacts> facts) {
  for (LayoutFacts& one : facts) one.warm_up = one.lead;
  return facts;
}

// Finds stages from the numbers of warm-up forwards. Ranks are taken in their own order; if no pipeline has such
// numbers in that order, machines are taken in the order of by_machines(). `order` becomes the order that fits.
Layout from_warm_up(const Trace& trace, const std::vector<LayoutFacts>& own, std::vector<size_t>& order) {
  const std::vector<LayoutFacts> leads = by_lead(own);
  for (const auto* facts : {&own, &leads})
    if (const Layout layout = from_warm_up(*facts); layout.stages > 0) return layout;
  for (const auto* facts : {&leads, &own}) {
    const std::vector<size_t> machines = by_machines(trace, *facts);
    auto moved = mapped<LayoutFacts>(machines, [&](const size_t at) { return (*facts)[at]; });
    Layout layout = from_warm_up(moved);
    if (layout.stages == 0) continue;
    order = machines;
    layout.how = "layout.warm_up.reordered";
    return layout;
  }
  return {};
}

// The ranks' numbers as seats, the first of them `first`, those of ranks that are missing among them; a seat for each
// rank where none is.
struct Seats {
  size_t count = 0;
  std::vector<size_t> of_part;
};
Seats seats_of(const Trace& trace, int64_t first) {
  Seats seats{trace.parts.size(), std::vector<size_t>(trace.parts.size())};
  std::iota(seats.of_part.begin(), seats.of_part.end(), size_t{0});
  for (size_t p = 1; p < trace.parts.size(); ++p)
    if (trace.parts[p].rank <= trace.parts[p - 1].rank) return seats;
  if (trace.parts.empty()) return seats;
  const int64_t count = trace.parts.back().rank - first + 1;
  // With few ranks present, numbers are not seats.
  if (count > 2 * std::ssize(trace.parts)) return seats;
  seats.count = count;
  for (size_t p = 0; p < trace.parts.size(); ++p) seats.of_part[p] = static_cast<size_t>(trace.parts[p].rank - first);
  return seats;
}

// One pipeline of which ranks are missing: numbers of warm-up forwards fall by as many from each seat to the next.
//
//     rank       0   (1)   2   3
//     warm-up    4         2   1      stages 0, 2 and 3 of 4
Layout one_pipeline_with_gaps(const std::vector<LayoutFacts>& facts, const Seats& seats) {
  const auto seat = [&](size_t p) { return static_cast<int32_t>(seats.of_part[p]); };
  if (facts.size() < 3) return {};  // two numbers fall by something in any case
  const int32_t fall = facts.front().warm_up - facts.back().warm_up, apart = seat(facts.size() - 1) - seat(0);
  if (fall < apart || fall % apart != 0) return {};
  for (size_t p = 0; p < facts.size(); ++p)
    if (facts.front().warm_up - facts[p].warm_up != fall / apart * (seat(p) - seat(0))) return {};
  return {static_cast<int32_t>(seats.count), 1, "layout.warm_up.gaps"};
}

// Finds stages from the numbers of warm-up forwards when ranks are missing. A missing rank gets the number of the ranks
// at the same position in other replicas. Only the order of rank numbers is tried.
Layout from_warm_up_with_gaps(const std::vector<LayoutFacts>& facts, const Seats& seats) {
  std::vector<LayoutFacts> all(seats.count);
  for (size_t p = 0; p < facts.size(); ++p) {
    if (facts[p].warm_up < 0) return {};
    all[seats.of_part[p]] = facts[p];
  }
  for (size_t period = 2; period <= all.size() / 2; ++period) {
    std::vector<int32_t> usual(period, -1);
    bool fits = true;
    for (size_t i = 0; i < all.size() && fits; ++i) {
      if (all[i].warm_up < 0) continue;
      int32_t& own = usual[i % period];
      if (own < 0) own = all[i].warm_up;
      fits = own == all[i].warm_up;
    }
    if (!fits || std::ranges::find(usual, -1) != usual.end()) continue;
    all.resize((all.size() + period - 1) / period * period);  // ranks may be missing behind the last one too
    for (size_t i = 0; i < all.size(); ++i) all[i].warm_up = usual[i % period];
    Layout layout = from_warm_up(all);
    layout.how = "layout.warm_up.gaps";
    return layout.stages > 0 ? layout : Layout();
  }
  return one_pipeline_with_gaps(facts, seats);
}

Layout from_time(const std::vector<LayoutFacts>& facts) {
  // Neighbouring stages start one forward apart, so half of that separates neighbours from tensor-parallel peers.
  auto forwards = mapped<int64_t>(facts, &LayoutFacts::forward_ns);
  const int64_t apart = median(forwards) / 2;
  if (apart <= 0) return {};
  std::vector<int32_t> level;  // for each rank its group of starts, the earliest group first
  auto starts = mapped<int64_t>(facts, &LayoutFacts::first_forward_ns);
  std::vector<int64_t> sorted = starts;
  std::ranges::sort(sorted);
  std::vector<int32_t> group_of(sorted.size());  // for each position in `sorted`
  for (size_t i = 1; i < sorted.size(); ++i)
    group_of[i] = group_of[i - 1] + (sorted[i] - sorted[i - 1] > apart ? 1 : 0);
  for (const int64_t start : starts) {
    const auto at = std::ranges::lower_bound(sorted, start) - sorted.begin();
    // negated, so that it falls from stage to stage as a number of warm-up forwards does.
    level.push_back(-group_of[at]);
  }
  std::vector<LayoutFacts> as_facts(facts.size());
  for (size_t i = 0; i < facts.size(); ++i) as_facts[i].warm_up = level[i] + 1'000'000;
  Layout layout = from_warm_up(as_facts);
  // Starts must come later from rank to rank, for a pipeline never starts at its last rank.
  layout.how = "layout.starts";
  return layout;
}

void say_layout(Trace& trace, const Layout& layout, int32_t replicas, bool stated) {
  const auto times_of = [](const std::string& what, int32_t times) {
    return times > 1 ? words("layout.inferred." + what, Args().set(what, int64_t{times})) : Text();
  };
  trace.diagnostics.add(problem::layout_inferred, Args()
                                                      .count("stages", layout.stages)
                                                      .set("replicas", times_of("replicas", replicas))
                                                      .set("peers", times_of("peers", layout.peers))
                                                      .flag("one", layout.stages == 1 && replicas == 1)
                                                      .set("how", words(layout.how))
                                                      .flag("guessed", !stated));
}

bool fill_layout(Trace& trace, int32_t stages) {
  const auto count = static_cast<int32_t>(trace.parts.size());
  const bool known = std::ranges::none_of(trace.parts, [](const Part& part) { return part.stage == kUnknown; });
  if (count == 0 || (known && stages <= 0)) return true;
  bool reported = true;
  Layout layout;
  auto order = indexes(trace.parts.size());  // the ranks in the order in which stages lie on them
  // The first ranks may be missing: numbers begin at zero.
  const int64_t lowest = trace.parts.front().rank;
  Seats seats;
  for (const int64_t first : lowest > 0 ? std::vector<int64_t>{0, lowest} : std::vector<int64_t>{lowest}) {
    seats = seats_of(trace, first);
    if (seats.count == trace.parts.size()) continue;
    layout = from_warm_up_with_gaps(facts_of(trace), seats);
    // The user's --stages also places ranks by their numbers.
    if (stages > 0 && layout.stages != stages && seats.count % stages == 0) layout = {stages, 1, "layout.stages"};
    if (layout.stages > 0 && (stages <= 0 || layout.stages == stages)) break;
  }
  if (layout.stages > 0 && (stages <= 0 || layout.stages == stages)) {
    order.clear();  // each rank has its seat
  } else if (stages > 0 && count % stages == 0) {
    layout = {stages, 1, "layout.stages"};
    // Ranks beyond one pipeline are replicas, unless warm-ups show that they are tensor-parallel peers.
    const Layout seen = from_warm_up(trace, facts_of(trace), order);
    if (seen.stages > 1 && seen.stages != stages)
      trace.diagnostics.add(problem::layout_stages_contradicted,
                            Args().set("stages", int64_t{stages}).set("seen", int64_t{seen.stages}));
    if (seen.stages == stages) layout.peers = seen.peers;
    else order = indexes(order.size());
  } else {
    if (stages > 0)
      trace.diagnostics.add(problem::layout_stages_ignored,
                            Args().set("stages", std::to_string(stages)).count("count", count));
    const std::vector<LayoutFacts> facts = facts_of(trace);
    layout = from_warm_up(trace, facts, order);
    if (layout.stages == 0 && count > 1) layout = from_time(facts);
    reported = layout.stages > 0;
    if (!reported) layout = {count, 1, "layout.numbers"};
  }
  const int32_t per_replica = layout.stages * layout.peers;
  int32_t last = 0;
  for (int32_t i = 0; i < count; ++i) {
    Part& part = trace.parts[order.empty() ? static_cast<size_t>(i) : order[i]];
    const auto seat = order.empty() ? static_cast<int32_t>(seats.of_part[i]) : i;
    part.dp = seat / per_replica;
    part.stage = (seat % per_replica) / layout.peers;
    last = std::max(last, seat);
  }
  if (count > 1) say_layout(trace, layout, last / per_replica + 1, stages > 0);
  return reported;
}

// A rank without cells, where others have some, belongs to no pipeline: it is skipped, as if it were missing.
bool fill_working_ranks(Trace& trace, int32_t stages) {
  std::vector<int32_t> place(trace.parts.size(), kUnknown);
  for (const int32_t p : trace.cells.part) place[p] = 0;
  if (stages > 0 || std::ranges::count(place, 0) == 0 || std::ranges::count(place, kUnknown) == 0)
    return fill_layout(trace, stages);
  Trace working;
  for (size_t p = 0; p < place.size(); ++p) {
    if (place[p] == kUnknown) continue;
    place[p] = static_cast<int32_t>(working.parts.size());
    Part& part = working.parts.emplace_back();
    part.rank = trace.parts[p].rank, part.stage = trace.parts[p].stage, part.dp = trace.parts[p].dp;
  }
  working.cells = Cells(trace.cells);
  for (int32_t& p : working.cells.part) p = place[p];
  const bool reported = fill_layout(working, stages);
  for (size_t p = 0; p < place.size(); ++p)
    if (place[p] != kUnknown)
      trace.parts[p].stage = working.parts[place[p]].stage, trace.parts[p].dp = working.parts[place[p]].dp;
  trace.diagnostics.merge(working.diagnostics);
  return reported;
}

}  // namespace

bool infer_layout(Trace& trace, const RankLayoutOptions& options) {
  const RankLayout by_options = layout_from_options(trace, options);
  if (options.explicit_order() && by_options.stages == 0) trace.diagnostics.add(problem::layout_stages_ignored_product);
  for (size_t p = 0; by_options.stages > 0 && p < trace.parts.size(); ++p) {
    trace.parts[p].stage = by_options.stage[p];
    trace.parts[p].dp = by_options.dp[p];
  }
  // A source that places its ranks may know of stages that none of them is in.
  const bool placed = by_options.stages == 0 && options.pp == 0 &&
                      std::ranges::any_of(trace.parts, [](const Part& part) { return part.stage != kUnknown; });
  const bool reported = by_options.stages > 0 || fill_working_ranks(trace, options.pp);
  trace.pipeline_stages = std::max(extent_of(trace).stage_count, placed ? trace.pipeline_stages : 0);
  return reported;
}

}  // namespace stageline
