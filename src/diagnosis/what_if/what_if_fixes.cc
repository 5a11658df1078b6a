#include "diagnosis/what_if/what_if_fixes.h"

#include "diagnosis/what_if/fitted_order.h"

namespace stageline {
namespace {

// Returns the layers that are assumed when the number is not given.
std::vector<int32_t> assumed_layers(const WhatIf& model) {
  return std::vector<int32_t>(model.order().stages().cost_ns.size(), kAssumedLayers);
}

constexpr double kSlowWorker = 1.05, kSlowStage = 1.05;  // minimum ratio to the others
constexpr double kSureWorker = 3;                        // standard errors over steps by which a worker must be slow
constexpr size_t kMaxWorkers = 3;
constexpr double kMoreHeld = 1e-6;
constexpr double kSlowLink = 0.05;       // least way over a link and back, in forwards and backwards of a stage
constexpr double kMinFitted = 0.01;      // least share of the span that more micro-batches in flight must save
constexpr int32_t kMaxMoreInFlight = 4;  // on one stage
constexpr size_t kMaxParts = 3;          // most fixes in a combination
constexpr size_t kMaxSplits = 8;         // most splits that are replayed to find the best one

struct OrderChoice {
  const char* name;
  int32_t chunks;
};
// From plain schedules to those that ask more of a framework.
constexpr OrderChoice kOrders[] = {{"1f1b", 1},           {"eager-1f1b", 1}, {"vpp", 2},  {"vpp", 4},
                                   {"interleaved-zb", 2}, {"zb-h1", 1},      {"zb-v", 2}, {"dualpipe-v", 2}};

double load_of(const DirectionCost& cost) { return cost[0] + cost[1] + cost[2]; }

std::vector<double> rank_loads(const StageCosts& stages, int32_t ranks) {
  std::vector<double> loads(ranks, 0);
  for (size_t s = 0; s < stages.cost_ns.size(); ++s) loads[stages.owner[s]] += load_of(stages.cost_ns[s]);
  return loads;
}

class Finder {
 public:
  Finder(WhatIf& model, const FixOptions& options) : model_(model), options_(options) {
    if (options_.bytes) bytes_ = *options_.bytes, options_.bytes = &*bytes_;
  }

  FixList find() {
    const OrderModel& order = model_.order();
    using enum FixOptions::Only;
    const auto wanted = [&](FixOptions::Only kind) { return options_.only == kAll || options_.only == kind; };
    const bool all = options_.only == kAll;
    list_.limited = limited();
    if (order.known()) {
      const size_t stages = order.stages().cost_ns.size();
      list_.layers = options_.layers.size() == stages ? options_.layers
                     : options_.bytes                 ? options_.bytes->even(static_cast<int32_t>(stages))
                                                      : assumed_layers(model_);
      list_.layers_assumed = options_.layers.empty() && !options_.bytes;
      model_.set_layers(list_.layers);
      if (const Result<Schedule> ran = model_.schedule_of({}); bytes_ && ran)
        list_.memory = bytes_->compare_with(*ran, list_.layers);
    }
    for (size_t i = 0; i < options_.own.size(); ++i) add("own", options_.own[i], own_words(options_.own_names[i]));
    if (order.known()) {
      if (wanted(kLayers)) balance();
      if (all) fair_stage();
      if (wanted(kOrders)) orders();
      if (wanted(kOrders)) more_micro_batches();
      if (wanted(kInFlight)) more_in_flight();
    }
    if (all) times();
    price();
    if (all) combine();
    for (Fix& fix : list_.fixes) fix.assumes += fix.bytes;
    std::ranges::stable_sort(list_.fixes.begin() + options_.own.size(), list_.fixes.end(), {},
                             [](const Fix& fix) { return std::pair(fix.bound, -fix.price.saving_ns); });
    list_.sentence = sentence(list_.fixes, model_.error().recorded_ns);
    if (options_.layers_divided && !list_.layers.empty()) list_.sentence += divided_words(list_.layers);
    if (!list_.memory.empty()) list_.sentence += measured_words(list_.memory);
    return std::move(list_);
  }

 private:
  // Fixes that keep the order and change times.
  void times() {
    workers();
    if (model_.whole()) {
      add("links", {.fair_links = true}, links_words(model_.one_host()));
      add("launch", {.no_delay = true}, launch_words(model_.hosts_alone()));
    }
    add("jitter", {.fair_cells = true}, jitter_words(), true);
  }

  static Fix fix_of(const char* id, Changes changes, FixWords words) {
    return Fix{.id = id,
               .changes = std::move(changes),
               .name = std::move(words.name),
               .assumes = std::move(words.assumes),
               .how = std::move(words.how)};
  }
  void add(const char* id, Changes changes, FixWords words, bool bound = false) {
    list_.fixes.push_back(fix_of(id, std::move(changes), std::move(words)));
    list_.fixes.back().bound = bound;
  }

  // The first rank that holds a stage, of one replica or, with kUnknown, of any.
  int32_t rank_that_holds(int32_t stage, int32_t dp) const {
    const StepGraph& graph = model_.graph();
    for (size_t op = 0; op < graph.size(); ++op)
      if (graph.stage(op) == stage && (dp == kUnknown || graph.dp(op) == dp)) return model_.rank_of(op);
    return kUnknown;
  }

  void balance() {
    const StageCosts& stages = model_.order().stages();
    if (stages.cost_ns.size() < 2 || model_.order().layout() == ChunkLayout::kBidirectional) return;
    spread_evenly(stages);
    const Result<Schedule> ran = model_.schedule_of({});
    if (!ran) return;
    const OrderModel& order = model_.order();
    const auto planned =
        planned_layers(*ran, stages, model_.layers(), list_.layers,
                       slowest_links(model_.latencies(), order.sizes().stages), order.overlap_ratio(), options_.bytes);
    if (!planned) return;
    auto splits = splits_between(list_.layers, planned->layers, kMaxSplits);
    std::vector<int32_t> level = level_layers(stages, model_.layers(), list_.layers);
    if (level != list_.layers) splits.push_back(std::move(level));
    if (limited())
      list_.over_memory += std::erase_if(splits, [&](const auto& split) { return !within_limit({}, split); });
    std::vector<Changes> worlds;
    for (const std::vector<int32_t>& split : splits) {
      worlds.emplace_back();
      worlds.back().stage_factor = split_factors(stages, model_.layers(), split);
    }
    const std::vector<Price> prices = model_.prices(worlds);
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < prices.size(); ++i)
      if (best == SIZE_MAX || prices[i].saving_ns > prices[best].saving_ns) best = i;
    if (best == SIZE_MAX) return;
    balanced_ = splits[best];
    const double gap = splits[best] == planned->layers ? planned->gap : kNaN;
    add("balance", worlds[best],
        balance_words(list_.layers, splits[best], list_.layers_assumed, model_.layers(), gap, bytes_.has_value()));
  }

  // A bound: the spread that explain uses to price slow stages. Whole layers may not divide that way, and how many
  // there are may be unknown.
  void spread_evenly(const StageCosts& stages) {
    Changes changes;
    changes.stage_factor.assign(stages.cost_ns.size(), {1, 1, 1});
    for (size_t d = 0; d < kDirections; ++d) {
      double sum = sum_over<double>(stages.cost_ns, [&](const DirectionCost& cost) { return cost[d]; });
      for (size_t s = 0; s < stages.cost_ns.size(); ++s)
        if (stages.cost_ns[s][d] > 0) changes.stage_factor[s][d] = sum / stages.cost_ns.size() / stages.cost_ns[s][d];
    }
    add("even", std::move(changes), even_words(), true);
  }

  // A bound for the one stage that stands out most, as in the straggler study.
  void fair_stage() {
    const std::vector<double> loads = rank_loads(model_.order().stages(), model_.order().sizes().stages);
    if (loads.size() < 2) return;
    const double sum = sum_over<double>(loads);
    const auto max = std::max_element(loads.begin(), loads.end());
    const double mean = sum / loads.size();
    if (!(*max > mean * kSlowStage)) return;
    const auto stage = static_cast<int32_t>(max - loads.begin());
    add("fair-stage", {.fair_stage = stage}, fair_stage_words(stage, *max / mean), true);
  }

  bool limited() const { return options_.bytes && options_.bytes->options.limit > 0; }
  bool within_limit(const Changes& changes, const std::vector<int32_t>& layers) const {
    const Result<Schedule> schedule = model_.schedule_of(changes);
    return schedule && options_.bytes->fits(options_.bytes->most(*schedule, layers));
  }

  bool fits_memory(const Changes& changes) {
    const Result<OrderPlan> plan = model_.plan_of(changes);
    if (!plan) return false;
    if (within_memory(changes)) return true;
    ++list_.over_memory;
    return false;
  }

  // Says what the stage that needs most needs under the fix, and needs now.
  void say_bytes(const std::vector<int32_t>& layers, Fix& fix) const {
    if (!options_.bytes || (&layers == &list_.layers && !fix.changes.changes_order())) return;
    fix.bytes = bytes_of_change(model_, *options_.bytes, fix.changes, list_.layers, layers);
  }

  void orders() {
    const OrderModel& order = model_.order();
    const ScheduleSizes& sizes = order.sizes();
    const std::string& present = order.recognition().best().name;
    if (order.leaves_schedule()) {
      int64_t lists = 0;
      for (const Divergence& d : order.recognition().divergences) lists += d.is_order ? d.lists : 0;
      add("order", {.schedule = present, .chunks = sizes.chunks, .group = sizes.group},
          order_words(present, lists, order.recognition().lists));
    }
    if (sizes.stages < 2 || order.layout() == ChunkLayout::kBidirectional) return;
    std::vector<int32_t> held(sizes.stages, 0);  // for each rank the number of its layers
    for (size_t s = 0; s < list_.layers.size(); ++s) held[order.stages().owner[s]] += list_.layers[s];
    const int32_t fewest = *std::min_element(held.begin(), held.end());
    for (const OrderChoice& choice : kOrders) {
      if (choice.chunks > fewest || (present == choice.name && choice.chunks == sizes.chunks)) continue;
      Changes changes{.schedule = choice.name, .chunks = choice.chunks};
      if (fits_memory(changes)) add("schedule", changes, schedule_words(choice.name, choice.chunks, order, fewest));
    }
  }

  void more_micro_batches() {
    const int32_t m = model_.order().sizes().micro_batches;
    if (model_.order().sizes().stages < 2 || m > 32'768) return;
    const Changes changes = {.micro_batches = 2 * m};
    if (fits_memory(changes)) add("micro-batches", changes, micro_batch_words(m, 2 * m));
  }

  // 1F1B with more forwards before the first backward on the stages in front of a slow link, as many as the memory
  // limit leaves room for. Without a limit the fix says how many micro-batches are in flight.
  void more_in_flight() {
    const OrderModel& order = model_.order();
    const ScheduleSizes& sizes = order.sizes();
    if (order.recognition().best().name != "1f1b" || order.leaves_schedule() || sizes.chunks != 1) return;
    const size_t stages = sizes.stages;
    const SlowestLinks links = slowest_links(model_.latencies(), stages);
    if (links.there.empty()) return;
    LinkCosts costs;
    costs.micro_batches = sizes.micro_batches;
    double slowest = 0, both = 0;
    for (size_t s = 0; s < stages; ++s) {
      const DirectionCost& cost = order.stages().cost_ns[s];
      costs.forward.push_back(std::llround(cost[0]));
      costs.backward.push_back(std::llround(cost[1] + cost[2]));
      slowest = std::max(slowest, load_of(cost));
      if (s + 1 == stages) break;
      costs.there.push_back(std::llround(links.there[s]));
      costs.back.push_back(std::llround(links.back[s]));
      both = std::max(both, links.there[s] + links.back[s]);
    }
    if (both < kSlowLink * slowest) return;
    std::vector<int32_t> room(stages, std::min(kMaxMoreInFlight, sizes.micro_batches));
    if (limited()) {
      std::ranges::fill(room, 0);
      for (int32_t more = 1; more <= std::min(kMaxMoreInFlight, sizes.micro_batches); ++more) {
        const Schedule fitted = fitted_1f1b(sizes.stages, sizes.micro_batches, std::vector<int32_t>(stages, more));
        const std::vector<plan::RankPeak> peaks = options_.bytes->peaks(fitted, list_.layers);
        for (size_t s = 0; s < stages; ++s)
          if (options_.bytes->needed_by(peaks[s], sizes.stages) <= options_.bytes->options.limit) room[s] = more;
      }
    }
    const FittedOrder fitted = fit_order(costs, room);
    const auto gain = static_cast<double>(fitted.plain_ns - fitted.span_ns);
    if (gain < kMinFitted * static_cast<double>(fitted.plain_ns)) return;
    add("more-in-flight", {.more_in_flight = fitted.extra}, more_in_flight_words(fitted.extra));
  }

  void workers() {
    const StepGraph& graph = model_.graph();
    if (graph.dp_count < 2) {
      slow_rank();
      return;
    }
    const std::vector<WhatIf::WorkerStep> all = model_.workers();
    const size_t count = graph.dp_count * static_cast<size_t>(graph.stage_count);
    struct Slow {
      double excess_ns, ratio;
      size_t worker;
    };
    std::vector<Slow> slow;
    for (size_t w = 0; w < count && !all.empty(); ++w) {
      double own = 0, others = 0, n = 0, squares = 0;
      for (size_t s = 0; s < graph.steps.size(); ++s) {
        if (!model_.counts()[s]) continue;
        own += all[s * count + w].own_ns;
        others += all[s * count + w].others_ns;
        ++n;
      }
      if (!(others > 0) || !(own > others * kSlowWorker)) continue;
      const double mean = (own - others) / n;
      for (size_t s = 0; s < graph.steps.size(); ++s)
        if (model_.counts()[s]) squares += std::pow(all[s * count + w].own_ns - all[s * count + w].others_ns - mean, 2);
      if (n > 1 && mean < kSureWorker * std::sqrt(squares / (n - 1) / n)) continue;
      slow.push_back({mean, own / others, w});
    }
    sort_stably(slow, {}, [](const Slow& one) { return std::pair(-one.excess_ns, one.worker); });
    if (slow.size() > kMaxWorkers) slow.resize(kMaxWorkers);
    for (const Slow& one : slow) {
      const auto dp = static_cast<int32_t>(one.worker / graph.stage_count);
      const auto stage = static_cast<int32_t>(one.worker % graph.stage_count);
      add("worker", {.replaced = {{dp, stage}}}, worker_words(rank_that_holds(stage, dp), dp, stage, one.ratio));
    }
  }

  // Finds a slow rank in a run of one replica: a stage between the ends whose layers cost more than those of its
  // neighbours.
  void slow_rank() {
    const OrderModel& order = model_.order();
    if (!order.known() || order.layout() != ChunkLayout::kLoop || order.sizes().chunks != 1) return;
    const LayerCosts& layers = model_.layers();
    const size_t stages = layers.per_layer_ns.size();
    size_t slowest = 0;
    double max = 0;
    for (size_t s = 1; s + 1 < stages; ++s) {
      // Layers of the end stages are taken to cost what is usual; the rest of these stages is embedding and head.
      const double usual = (load_of(layers.per_layer_ns[s - 1]) + load_of(layers.per_layer_ns[s + 1])) / 2;
      // Where only the sum of the layers is known, the stage may be one with a layer more, and its neighbours may not.
      const double ratio = usual > 0 ? load_of(layers.per_layer_ns[s]) / usual * surely(s) : 0;
      if (ratio > max) max = ratio, slowest = s;
    }
    if (!(max > kSlowWorker)) return;
    Changes changes;
    changes.stage_factor.assign(stages, {1, 1, 1});
    for (size_t d = 0; d < kDirections; ++d) {
      const double own = layers.per_layer_ns[slowest][d];
      const double usual = (layers.per_layer_ns[slowest - 1][d] + layers.per_layer_ns[slowest + 1][d]) / 2;
      if (own > 0) changes.stage_factor[slowest][d] = usual / own;
    }
    const auto stage = static_cast<int32_t>(slowest);
    add("worker", std::move(changes),
        lone_worker_words(rank_that_holds(stage, kUnknown), stage, max,
                          options_.layers_divided ? list_.layers : std::vector<int32_t>()));
  }

  double surely(size_t stage) const {
    if (!options_.layers_divided) return 1;
    const auto [fewest, max] = std::minmax_element(list_.layers.begin(), list_.layers.end());
    if (*fewest == *max) return 1;
    const double neighbours = (static_cast<double>(*fewest) / list_.layers[stage - 1] +
                               static_cast<double>(*fewest) / list_.layers[stage + 1]) /
                              2;
    return static_cast<double>(list_.layers[stage]) / *max * neighbours;
  }

  bool gains(const Fix& fix) const {
    if (!fix.price.gains()) return false;
    const ModelError& error = model_.error();
    return !fix.changes.changes_order() || fix.price.saving_ns > std::abs(error.order_ns - error.recorded_ns);
  }

  void price() {
    auto worlds = mapped<Changes>(list_.fixes, &Fix::changes);
    const std::vector<Price> prices = model_.prices(worlds);
    const size_t own = options_.own.size();
    list_.tried = worlds.size() - own;
    std::vector<Fix> kept;
    for (size_t i = 0; i < prices.size(); ++i) {
      Fix& fix = list_.fixes[i];
      fix.price = prices[i];
      if (i >= own && !gains(fix)) {
        ++list_.no_gain;
        continue;
      }
      say_bytes(fix.id == "balance" ? balanced_ : list_.layers, fix);
      kept.push_back(std::move(fix));
    }
    list_.fixes = std::move(kept);
    const Fix* balance = nullptr;
    for (const Fix& fix : list_.fixes)
      if (fix.id == "balance") balance = &fix;
    if (!list_.layers.empty())
      list_.new_layers = balance ? balanced_ : list_.layers;  // a split that saves nothing moves nothing
    // If replicas differ, whole layers may save more than means do; then the mean is not a bound.
    std::erase_if(list_.fixes, [&](const Fix& fix) {
      const bool beaten = fix.bound && fix.id != "jitter" && balance && fix.price.saving_ns < balance->price.saving_ns;
      list_.no_gain += beaten ? 1 : 0;
      return beaten;
    });
    for (Fix& fix : list_.fixes)
      if (fix.id == "even" || fix.id == "fair-stage") add_layout(balance ? &balanced_ : nullptr, fix);
  }

  // Takes the best fix and adds, one at a time, the one that saves most in addition. They are replayed together, since
  // savings do not add up.
  void combine() {
    std::vector<size_t> singles;
    for (size_t i = options_.own.size(); i < list_.fixes.size(); ++i)
      if (!list_.fixes[i].bound) singles.push_back(i);
    if (singles.size() < 2) return;
    size_t best = singles.front();
    for (const size_t i : singles)
      if (list_.fixes[i].price.saving_ns > list_.fixes[best].price.saving_ns) best = i;
    std::vector<size_t> parts = {best};
    Changes together = list_.fixes[best].changes;
    double saved = list_.fixes[best].price.saving_ns;
    std::vector<Fix> found;
    const auto layers_with = [&](size_t more) -> const std::vector<int32_t>& {
      const auto splits = [&](size_t p) { return list_.fixes[p].id == "balance"; };
      return splits(more) || std::ranges::any_of(parts, splits) ? balanced_ : list_.layers;
    };
    while (parts.size() < kMaxParts) {
      std::vector<size_t> others;
      std::vector<Changes> worlds;
      for (const size_t i : singles) {
        const Fix& fix = list_.fixes[i];
        if (std::any_of(parts.begin(), parts.end(), [&](size_t p) { return excludes(list_.fixes[p], fix); })) continue;
        Changes world = combined(together, fix.changes);
        const bool own_memory = !fix.changes.more_in_flight.empty() || !together.more_in_flight.empty();
        if (!world.more_in_flight.empty() && !world.schedule.empty()) continue;  // it is 1f1b's own
        if (limited() ? !within_limit(world, layers_with(i))
                      : world.changes_order() && !(own_memory || within_memory(world)))
          continue;
        others.push_back(i);
        worlds.push_back(std::move(world));
      }
      const std::vector<Price> prices = model_.prices(worlds);
      size_t max = SIZE_MAX;
      for (size_t k = 0; k < prices.size(); ++k)
        if (prices[k].gains() && (max == SIZE_MAX || prices[k].saving_ns > prices[max].saving_ns)) max = k;
      if (max == SIZE_MAX || prices[max].saving_ns - saved < kMinShare * prices[max].recorded_ns) break;
      parts.push_back(others[max]);
      together = worlds[max];
      saved = prices[max].saving_ns;
      auto of = mapped<const Fix*>(parts, [&](const size_t p) { return &list_.fixes[p]; });
      found.push_back(fix_of("combined", together, combined_words(of)));
      found.back().price = prices[max];
      say_bytes(layers_with(parts.front()), found.back());
    }
    for (Fix& fix : found) list_.fixes.push_back(std::move(fix));
  }

  // Where bytes are limited these decide, otherwise what is held now.
  bool within_memory(const Changes& changes) const {
    if (limited()) return within_limit(changes, list_.layers);
    const Result<OrderPlan> plan = model_.plan_of(changes);
    return options_.more_memory || (plan && plan->max_held() <= model_.order().present().max_held() + kMoreHeld);
  }

  // Returns true when two fixes exclude each other: those of one family do, except that different workers may be
  // replaced together.
  static bool excludes(const Fix& a, const Fix& b) {
    if (a.id != b.id) return false;
    return a.id != "worker" || a.changes == b.changes || a.changes.replaced.empty();
  }

  WhatIf& model_;
  FixOptions options_;
  std::optional<StageBytes> bytes_;  // with what the run measured
  FixList list_;
  std::vector<int32_t> balanced_;  // the best split that was replayed; empty: none
};

}  // namespace

Text bytes_of_change(const WhatIf& model, const StageBytes& bytes, const Changes& changes,
                     const std::vector<int32_t>& before, const std::vector<int32_t>& after) {
  const Result<Schedule> now = model.schedule_of({}), then = model.schedule_of(changes);
  return now && then ? bytes_words(bytes, bytes.most(*now, before), bytes.most(*then, after)) : Text();
}

FixList price_fixes(WhatIf& model, const FixOptions& options) { return Finder(model, options).find(); }

}  // namespace stageline
