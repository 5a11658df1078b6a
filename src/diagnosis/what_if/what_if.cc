#include "diagnosis/what_if/what_if.h"

#include "base/error_words.h"
#include "diagnosis/what_if/fitted_order.h"
#include "diagnosis/what_if/problems.h"
#include "model/run_extent.h"
#include "pipeline/order/recognise.h"
#include "pipeline/sums/pipeline_sums.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

bool fits(int32_t wanted, int32_t value) { return wanted == kUnknown || wanted == value; }

}  // namespace

bool Price::gains() const {
  if (!why_not.empty() || !(share() >= kMinShare)) return false;
  return !(error_ns > 0) || saving_ns > kSureErrors * error_ns;
}

Changes combined(const Changes& a, const Changes& b) {
  Changes both = a;
  both.scales.insert(both.scales.end(), b.scales.begin(), b.scales.end());
  both.replaced.insert(both.replaced.end(), b.replaced.begin(), b.replaced.end());
  if (both.stage_factor.empty()) {
    both.stage_factor = b.stage_factor;
  } else {
    for (size_t s = 0; s < std::min(both.stage_factor.size(), b.stage_factor.size()); ++s)
      for (size_t d = 0; d < kDirections; ++d) both.stage_factor[s][d] *= b.stage_factor[s][d];
  }
  if (b.fair_stage != kUnknown) both.fair_stage = b.fair_stage;
  both.fair_cells |= b.fair_cells;
  both.fair_links |= b.fair_links;
  both.no_delay |= b.no_delay;
  if (b.latency_ns) both.latency_ns = b.latency_ns;
  if (!b.schedule.empty()) {
    both.schedule = b.schedule;
    both.chunks = b.chunks;
    both.group = b.group;
  }
  if (b.micro_batches > 0) both.micro_batches = b.micro_batches;
  if (!b.more_in_flight.empty()) both.more_in_flight = b.more_in_flight;
  return both;
}

// Replaced ranks are in a table, so that each operation finds its own at once.
struct WhatIf::World {
  const Changes* changes = nullptr;
  std::vector<uint8_t> replaced;  // [dp · stages + stage]
  bool plain = false;             // only the order changes
};

WhatIf::World WhatIf::world_of(const Changes& changes) const {
  World world{&changes, {}, false};
  if (!changes.replaced.empty() && graph_->dp_count * static_cast<size_t>(graph_->stage_count) <= graph_->size()) {
    world.replaced.assign(graph_->dp_count * static_cast<size_t>(graph_->stage_count), 0);
    for (const auto& [dp, stage] : changes.replaced)
      if (has_stage(stage, dp)) world.replaced[dp * static_cast<size_t>(graph_->stage_count) + stage] = 1;
  }
  world.plain = changes.scales.empty() && changes.replaced.empty() && changes.stage_factor.empty() &&
                changes.fair_stage == kUnknown && !changes.fair_cells && !changes.fair_links && !changes.no_delay &&
                !changes.latency_ns;
  return world;
}

// Applies rule after rule to the whole stretch: few worlds have more than one rule, and columns that no rule uses are
// not read.
void WhatIf::apply(const World& world, const WorldStretch& stretch) const {
  const auto each = [&](auto&& rule) {
    double *dur = stretch.dur_ns, *delay = stretch.delay_ns;
    for (uint32_t op = stretch.begin; op < stretch.end; ++op, dur += stretch.width, delay += stretch.width)
      rule(op, *dur, *delay);
  };
  each([&](uint32_t op, double& dur, double& delay) {
    dur = graph_->dur_ns[op];
    const double late = graph_->delay_ns[op];
    delay = is_compute(graph_->kind[op]) ? late : std::min(late, launch_ns_[graph_->type[op]]);
  });
  if (world.plain) return;
  const Changes& c = *world.changes;
  if (c.no_delay) each([](uint32_t, double&, double& delay) { delay = std::min(delay, 0.0); });
  if (c.fair_cells && !usual_ns_.empty())
    each([&](uint32_t op, double& dur, double&) {
      if (!is_compute(graph_->kind[op])) return;
      if (const double usual = usual_ns_[place_of_[op]]; !std::isnan(usual)) dur = usual;
    });
  if (!world.replaced.empty() && !others_ns_.empty())
    each([&](uint32_t op, double& dur, double&) {
      const int32_t stage = graph_->stage(op), dp = graph_->dp(op);
      if (stage < 0 || dp < 0 || std::isnan(others_ns_[op])) return;
      const size_t at = dp * static_cast<size_t>(graph_->stage_count) + stage;
      if (world.replaced[at]) dur = others_ns_[op];
    });
  if (c.fair_stage != kUnknown && !fair_ns_.empty())
    each([&](uint32_t op, double& dur, double&) {
      if (graph_->stage(op) == c.fair_stage) dur = fair_ns_[graph_->type[op]];
    });
  if (!c.stage_factor.empty())
    each([&](uint32_t op, double& dur, double&) {
      const int32_t stage = graph_->stage(op);
      if (!is_compute(graph_->kind[op]) || stage < 0 || stage >= order_.sizes().stages) return;
      const size_t vs = order_.virtual_stage_of(stage, std::max(0, graph_->chunk[op]));
      if (vs < c.stage_factor.size()) dur *= c.stage_factor[vs][direction_of(graph_->kind[op])];
    });
  if (c.latency_ns || (c.fair_links && !link_factor_.empty()))
    each([&](uint32_t op, double& dur, double&) {
      if (!is_message(graph_->kind[op])) return;
      dur = c.latency_ns ? *c.latency_ns : dur * link_factor_[place_of_[op]];
    });
  for (const CellScale& s : c.scales)
    each([&](uint32_t op, double& dur, double&) {
      if (fits_op(s, op)) dur = s.set_ns ? *s.set_ns : dur * s.by;
    });
}

bool WhatIf::fits_op(const CellScale& s, size_t op) const {
  return (s.kind ? *s.kind == graph_->kind[op] : is_compute(graph_->kind[op])) && fits(s.stage, graph_->stage(op)) &&
         fits(s.dp, graph_->dp(op)) && fits(s.chunk, graph_->chunk[op]) &&
         fits(s.micro_batch, graph_->micro_batch[op]) && fits(s.rank, rank_of(op)) &&
         (s.step == kUnknown || s.step == graph_->steps[step_of(op)].step);
}

uint32_t WhatIf::step_of(size_t op) const {
  const auto after = std::ranges::upper_bound(graph_->steps, op, {}, &GraphStep::begin);
  return static_cast<uint32_t>(after - graph_->steps.begin()) - 1;
}

WhatIf::Touched WhatIf::touched(const CellScale& scale) const {
  Touched count;
  for (size_t op = 0; op < graph_->size(); ++op)
    if (fits_op(scale, op)) ++count.all, count.counted += counts_[step_of(op)];
  return count;
}

OpTimesView::Rule WhatIf::rule_of(const World& world) const {
  return [this, &world](uint32_t op) {
    OpTimesView::OpTime time;
    apply(world, {op, op + 1, 0, 1, 1, &time.dur_ns, &time.delay_ns});
    return time;
  };
}

bool WhatIf::has_stage(int32_t stage, int32_t dp) const {
  return stage >= 0 && stage < graph_->stage_count && dp >= 0 && dp < graph_->dp_count;
}

WhatIf WhatIf::of(const Run& run, std::shared_ptr<const StepGraph> graph, Diagnostics& notes, WhatIfUse use) {
  const Trace& trace = run.trace();
  WhatIf w;
  w.gap_ns_ = step_means_of(run).usual.gap_ns;
  w.graph_ = std::move(graph);
  w.hosts_alone_ = of_hosts_alone(trace);
  w.one_host_ = trace.machine_count() == 1 && trace.parts.front().machine != kUnknown;
  w.ranks_ = mapped<int32_t>(trace.parts, &Part::rank);
  w.take_steps(sums_of(run).outliers, notes);
  w.look_for_stages(trace.pipeline_stages, notes);
  // The theoretical times of cells are not needed here, and for a large run they take 28 B per cell. So only the
  // schedule is recognised unless the theory has been made before.
  if (const TheoryRun* theory = made_theory_of(run)) {
    w.order_ = OrderModel::of(trace, *w.graph_, theory->recognition, &theory->lists);
  } else {
    RankLists lists;
    Recognition recognition = recognise(trace, &lists);
    w.order_ = OrderModel::of(trace, *w.graph_, std::move(recognition), &lists);
  }
  if (!w.order_.known()) notes.add(problem::what_if_no_schedule, Args().set("why_not", w.order_.why_not()));
  else w.set_layers(std::vector<int32_t>(w.order_.stages().cost_ns.size(), 1));
  w.launch_ns_ = launch_delays(*w.graph_);
  if (use == WhatIfUse::kAll) {
    w.fair_ns_ = fair_times(*w.graph_);  // first, since it takes memory that the others keep
    w.measure_others();
    w.measure_usual();
    w.measure_links(trace);
  }
  w.measure_error();
  return w;
}

// Outliers do not count.
void WhatIf::take_steps(const std::vector<int32_t>& outliers, Diagnostics& notes) {
  for (const GraphStep& step : graph_->steps)
    counts_.push_back(!std::binary_search(outliers.begin(), outliers.end(), step.step));
  if (!outliers.empty()) notes.add(problem::what_if_outliers, {}, outliers.size());
  if (std::count(counts_.begin(), counts_.end(), 1) == 1) notes.add(problem::what_if_one_step);
}

void WhatIf::look_for_stages(int32_t pipeline_stages, Diagnostics& notes) {
  const int32_t stages = std::max(pipeline_stages, graph_->stage_count);
  std::vector<uint8_t> seen(std::min<int64_t>(stages, static_cast<int64_t>(graph_->size()) + 1));
  for (size_t op = 0; op < graph_->size(); ++op)
    if (const int32_t stage = graph_->stage(op); stage >= 0 && static_cast<size_t>(stage) < seen.size())
      seen[stage] = 1;
  whole_ = std::ranges::find(seen, 0) == seen.end();
  if (!whole_) notes.add(problem::what_if_stages_missing);
}

// Replays the run as it was, in both ways: the differences from the recorded steps are the errors of other answers.
void WhatIf::measure_error() {
  const Changes nothing;
  const World present = world_of(nothing);
  graph_step_ns_ = replay_world(*graph_, [&](const WorldStretch& s) { apply(present, s); });
  order_step_ns_.assign(graph_->steps.size(), kNaN);
  if (order_.known()) order_step_ns_ = order_.step_ns(*graph_, present_times(), layers_, order_.present());
  double count = 0, whole = 0, whole_recorded = 0;
  for (size_t s = 0; s < graph_->steps.size(); ++s) {
    if (!counts_[s]) continue;
    const double span = graph_->steps[s].span_ns;
    error_.recorded_ns += span;
    error_.graph_ns += graph_step_ns_[s];
    ++count;
    if (std::isnan(order_step_ns_[s])) continue;
    error_.order_ns += order_step_ns_[s];
    whole_recorded += span;
    ++whole;
  }
  if (count > 0) {
    error_.recorded_ns = error_.recorded_ns / count + gap_ns_;
    error_.graph_ns = error_.graph_ns / count + gap_ns_;
  }
  // Steps that are not whole have no order replay, so this error is that of the whole ones.
  error_.order_ns = whole > 0 ? error_.recorded_ns + (error_.order_ns - whole_recorded) / whole : kNaN;
}

Price WhatIf::price_of(const std::vector<double>& before, const std::vector<double>& after, double held) const {
  Price price;
  price.held = held;
  double sum = 0, squares = 0, recorded = 0;
  for (size_t s = 0; s < before.size(); ++s) {
    if (!counts_[s] || std::isnan(before[s]) || std::isnan(after[s])) continue;
    sum += before[s] - after[s];
    recorded += graph_->steps[s].span_ns;
    ++price.steps;
  }
  if (price.steps == 0) {
    price.why_not = words("order.no_step");
    return price;
  }
  const double n = price.steps;
  price.saving_ns = sum / n;
  price.recorded_ns = recorded / n + gap_ns_;
  price.step_ns = price.recorded_ns - price.saving_ns;
  for (size_t s = 0; s < before.size(); ++s) {
    if (!counts_[s] || std::isnan(before[s]) || std::isnan(after[s])) continue;
    const double off = before[s] - after[s] - price.saving_ns;
    squares += off * off;
  }
  price.error_ns = price.steps > 1 ? std::sqrt(squares / (n - 1) / n) : kNaN;
  return price;
}

// Returns the order that a scenario asks for; the present schedule's if the scenario names none.
Result<Schedule> WhatIf::schedule_of(const Changes& changes) const {
  if (!order_.known())
    return worded_error(ErrorCode::kUnavailable, "refused.no_schedule.order", Args().set("why", order_.why_not()), {},
                        "stageline analyze schedule shows what was compared");
  const ScheduleCandidate& best = order_.recognition().best();
  const std::string name = changes.schedule.empty() ? best.name : changes.schedule;
  ScheduleSizes sizes = best.sizes;
  if (changes.micro_batches > 0) sizes.micro_batches = changes.micro_batches;
  if (name != best.name || changes.chunks > 0 || changes.group > 0) {
    const ScheduleDef* def = find_schedule(name);
    if (!def)
      return make_error(ErrorCode::kUsage, "no schedule \"" + name + "\"", "stageline help schedules lists them");
    sizes.chunks = changes.chunks > 0 ? changes.chunks : name == best.name ? sizes.chunks : def->default_chunks;
    sizes.group = changes.group;
    if ((name == "dualpipe") != (best.name == "dualpipe"))
      return worded_error(ErrorCode::kUnavailable, "order.dualpipe", {}, {}, "dualpipe-v holds them once");
  }
  if (!changes.more_in_flight.empty() && name == "1f1b" && sizes.chunks == 1)
    return fitted_1f1b(sizes.stages, sizes.micro_batches, changes.more_in_flight);
  return order_of(name, sizes);
}

Result<OrderPlan> WhatIf::plan_of(const Changes& changes) const {
  TRY(schedule, schedule_of(changes));
  return compile_schedule(std::move(*schedule));
}

// Scales step times of another order to the run's number of micro-batches.
void WhatIf::to_present_size(const OrderPlan& plan, std::vector<double>& step_ns) const {
  const double scale = order_.sizes().micro_batches / static_cast<double>(plan.schedule.sizes.micro_batches);
  for (double& ns : step_ns) ns *= scale;
}

std::vector<double> WhatIf::order_times(const World& world, const OrderPlan& plan) const {
  const OpTimesView::Rule rule = rule_of(world);
  const OpTimesView times = world.plain ? present_times() : OpTimesView(rule);
  std::vector<double> step_ns = order_.step_ns(*graph_, times, layers_, plan);
  to_present_size(plan, step_ns);
  return step_ns;
}

std::vector<Price> WhatIf::prices(std::span<const Changes> worlds) const {
  std::vector<Price> prices(worlds.size());
  std::vector<World> kept;  // worlds that keep the order
  std::vector<size_t> index, plain_index;
  std::vector<OrderPlan> plain;  // plans of scenarios in which only the order changes
  for (size_t i = 0; i < worlds.size(); ++i) {
    if (!worlds[i].changes_order()) {
      kept.push_back(world_of(worlds[i]));
      index.push_back(i);
      continue;
    }
    Result<OrderPlan> plan = plan_of(worlds[i]);
    if (!plan) {
      prices[i].why_not = error_text(plan.error());
      continue;
    }
    if (const World world = world_of(worlds[i]); !world.plain) {
      prices[i] = price_of(order_step_ns_, order_times(world, *plan), plan->max_held());
      continue;
    }
    plain.push_back(std::move(*plan));
    plain_index.push_back(i);
  }
  if (!plain.empty()) {
    auto plans = mapped<const OrderPlan*>(plain, [&](const OrderPlan& plan) { return &plan; });
    std::vector<std::vector<double>> step_ns = order_.steps_ns(*graph_, present_times(), layers_, plans);
    for (size_t k = 0; k < plain.size(); ++k) {
      to_present_size(plain[k], step_ns[k]);
      prices[plain_index[k]] = price_of(order_step_ns_, step_ns[k], plain[k].max_held());
    }
  }
  const WorldTimes times = replay_worlds(*graph_, kept.size(), [&](const WorldStretch& s) {
    for (size_t w = s.first; w < s.first + s.count; ++w) apply(kept[w], s.of_world(w));
  });
  std::vector<double> after(graph_->steps.size());
  for (size_t k = 0; k < kept.size(); ++k) {
    for (size_t s = 0; s < after.size(); ++s) after[s] = times.ns(s, k);
    prices[index[k]] = price_of(graph_step_ns_, after, order_.known() ? order_.present().max_held() : kNaN);
  }
  return prices;
}

WhatIf::Priced WhatIf::priced(const Changes& changes) const {
  Priced priced{{}, std::vector<double>(graph_->steps.size(), kNaN)};
  const World world = world_of(changes);
  double held = order_.known() ? order_.present().max_held() : kNaN;
  std::vector<double> after;
  if (changes.changes_order()) {
    const Result<OrderPlan> plan = plan_of(changes);
    if (!plan) {
      priced.price.why_not = error_text(plan.error());
      return priced;
    }
    held = plan->max_held();
    after = order_times(world, *plan);
  } else {
    after = replay_world(*graph_, [&](const WorldStretch& s) { apply(world, s); });
  }
  const std::vector<double>& before = changes.changes_order() ? order_step_ns_ : graph_step_ns_;
  priced.price = price_of(before, after, held);
  for (size_t s = 0; s < after.size(); ++s) priced.step_ns[s] = graph_->steps[s].span_ns - (before[s] - after[s]);
  return priced;
}

std::vector<WhatIf::WorldCell> WhatIf::step_cells(const Changes& changes, uint32_t step, int32_t dp) const {
  const auto wanted = [dp](int32_t replica) { return dp == kUnknown || replica == kUnknown || replica == dp; };
  std::vector<WorldCell> cells;
  const World world = world_of(changes);
  if (changes.changes_order()) {
    const Result<OrderPlan> plan = plan_of(changes);
    if (!plan) return cells;
    const OpTimesView::Rule rule = rule_of(world);
    const OpTimesView times = world.plain ? present_times() : OpTimesView(rule);
    for (const OrderCell& c : order_.step_cells(*graph_, times, layers_, *plan, step))
      if (wanted(c.dp))
        cells.push_back({kUnknown, c.dp, c.stage, c.chunk, c.micro_batch, kNoCell, c.kind, c.start_ns, c.end_ns});
    return cells;
  }
  const GraphStep& of = graph_->steps[step];
  OpTimes times{std::vector<double>(of.end - of.begin), std::vector<double>(of.end - of.begin)};
  apply(world, {of.begin, of.end, 0, 1, 1, times.dur_ns.data(), times.delay_ns.data()});
  const ReplayedOps replayed = replay_step_ops(*graph_, of, times);
  for (uint32_t op = of.begin; op < of.end; ++op)
    if (graph_->cell[op] != kNoCell && wanted(graph_->dp(op)))
      cells.push_back({graph_->part[op], graph_->dp(op), graph_->stage(op), graph_->chunk[op], graph_->micro_batch[op],
                       graph_->cell[op], graph_->kind[op], replayed.start_ns[op - of.begin],
                       replayed.end_ns[op - of.begin]});
  return cells;
}

std::vector<WhatIf::WorkerStep> WhatIf::workers() const {
  if (graph_->dp_count < 2) return {};
  const size_t workers = graph_->dp_count * static_cast<size_t>(graph_->stage_count);
  if (workers > graph_->size() || workers * graph_->steps.size() > graph_->size() * 4 + 4096) return {};
  if (others_ns_.empty()) return {};
  std::vector<WorkerStep> all(workers * graph_->steps.size());
  for (size_t s = 0; s < graph_->steps.size(); ++s)
    for (size_t op = graph_->steps[s].begin; op < graph_->steps[s].end; ++op) {
      if (std::isnan(others_ns_[op])) continue;
      WorkerStep& worker =
          all[s * workers + graph_->dp(op) * static_cast<size_t>(graph_->stage_count) + graph_->stage(op)];
      worker.own_ns += graph_->dur_ns[op];
      worker.others_ns += others_ns_[op];
    }
  return all;
}

Result<WhatIf> what_if_of(const Run& run, Diagnostics& notes) {
  const RunGraph& made = graph_of(run, LaunchRule::kFree);
  notes.merge(made.notes);
  if (!made.graph) return *made.error;
  return WhatIf::of(run, made.graph, notes);
}

}  // namespace stageline
