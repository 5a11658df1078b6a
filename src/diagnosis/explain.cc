#include "diagnosis/explain.h"

#include "base/error_words.h"
#include "diagnosis/causes/long_step_words.h"
#include "diagnosis/causes/place_text.h"
#include "diagnosis/profile/finding_parts.h"
#include "diagnosis/share_findings.h"
#include "diagnosis/what_if/layer_price.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "facts/profile_sums.h"
#include "model/pipeline_words.h"
#include "pipeline/measure/training_time.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

// A headline has cost and saving where the cost is this much larger.
constexpr double kCostsMore = 1.1;
constexpr int64_t kManySteps = 20;  // with this many steps, more would not help

Text suspicion(const Cause& c) {
  return words("suspicion." + std::string(c.kind->id), Args().set("where", place_text(c.place())));
}

// Returns a sentence on the largest cause that costs enough but may be noise (CauseList::doubtful). Otherwise it is on
// the error of an estimated price, or else on jitter of at least 5 % of a step that the breakdown leaves. "" if there
// is none of these. A cause that makes one of a few steps long is reported with that step.
Text doubt_words(const CauseList& causes, const std::vector<Finding>& known) {
  if (causes.not_analysable || !(causes.step_ns > 0)) return {};
  Args args;
  args.flag("few", causes.steps < kManySteps);
  args.set("steps", words("steps", Args().set("count", grouped(causes.steps)).flag("one", causes.steps == 1)));
  const auto doubtful = std::ranges::find_if(causes.doubtful, [&](const Cause& c) {
    return std::ranges::none_of(known, [&](const Finding& f) { return !shared_places(f.places, c.places).empty(); });
  });
  if (doubtful != causes.doubtful.end()) {
    const Cause& c = *doubtful;
    args.set("what", suspicion(c)).set("share", percent(c.price.lost_ns / causes.step_ns));
    return words("doubt.cause", args);
  }
  // An estimate that may be off by more than the least cost worth telling could hide a cause.
  for (const Cause& c : causes.causes)
    if (const double off_ns = c.price.half_interval_ns(c.price.lost_ns, c.price.lost_error_ns, causes.steps);
        c.estimated && off_ns >= kMinLost * causes.step_ns)
      return words("doubt.estimate", args.set("share", percent(off_ns / causes.step_ns)));
  double jitter = sum_over<double>(
      undealt(causes), [&](const AccountLine& line) { return line.id == "jitter" ? line.ns / causes.step_ns : 0; });
  if (jitter < kLargePart) return {};
  return words("doubt.jitter", args.set("share", percent(jitter)));
}

// The largest cause that holds the step up only after the found causes are gone (CauseList::hidden); "" where there is
// none.
Text hidden_words(const CauseList& causes) {
  if (causes.hidden.empty()) return {};
  const Cause& c = causes.hidden.front();
  Args args;
  args.set("what", suspicion(c)).set("share", percent(c.price.lost_ns / causes.step_ns));
  return words("doubt.hidden", args.flag("one", causes.causes.size() == 1));
}

// The name of the words for a run in which nothing was found.
std::string quiet_words(const Explanation& e) {
  return e.left_out > 0 ? "quiet.left_out" : e.run.empty() || e.steps > int64_t{kMaxFewSteps} ? "quiet" : "quiet.few";
}

void say_run(const Trace& trace, const Recognition& recognition, const RunCoverage& coverage, Explanation& e) {
  const Extent extent = extent_of(trace);
  Args args;
  // The schedule of a part says nothing of the whole run's.
  args.set("schedule", recognition.recognised && !coverage.lacks_end() ? recognition.best().name : "");
  args.set("what", run_text(trace, extent, coverage.stages(), coverage.part(), coverage.part_of_all()));
  set_micro_batches(args, trace, recognition.recognised ? recognition.best().sizes.micro_batches : 0, coverage.holed());
  args.count("steps", extent.step_count).set("time", human_duration(e.step_ns));
  const bool numbered = args.of("micro_batches", false) != "0";
  e.run = words(numbered ? "explain.run" : "explain.run.unnumbered",
                args.set("over", e.steps < extent.step_count ? grouped(e.steps) : ""));
}

void set_explanation_note(Explanation& e, const Text& text) { e.note = text; }

void say_coverage(const RunCoverage& coverage, Explanation& e) {
  set_explanation_note(e, coverage.notes());
  if (!coverage.not_analysable()) return;
  const Text why = coverage.why_not_analysed();
  e.why_not = why.en;
  set_explanation_note(e, words("explain.not_analysed", Args().set("why", why)));
}

// Offers the best other schedule and the best other number of micro-batches, each by itself, priced by what-if's
// replays.
void make_offers(WhatIf model, const StageBytes* bytes, Explanation& e) {
  FixOptions orders{.only = FixOptions::Only::kOrders, .bytes = bytes};
  const FixList list = price_fixes(model, orders);
  for (const char* id : {"schedule", "micro-batches"}) {
    const auto best = std::ranges::find_if(list.fixes, [&](const Fix& fix) { return fix.id == id; });
    if (best == list.fixes.end() || !best->price.gains() || best->price.share() < kMinLost) continue;
    Finding f;
    f.id = std::string("offer.") + id;
    f.weight = e.step_ns > 0 ? best->price.saving_ns / e.step_ns : best->price.share();
    f.value = "−" + percent(f.weight);
    const bool other_size = best->id == "micro-batches";  // a step then takes longer, and does more
    f.value_note = words("explain.offer", Args().flag("other_size", other_size));
    f.title = best->name;
    f.detail = best->how;
    f.price.fix = best->name;
    f.price.saving_ns = best->price.saving_ns;
    f.price.assumption = best->assumes;
    f.uncertainty_ns = half_interval(best->price.error_ns, best->price.steps);
    e.offers.push_back(std::move(f));
  }
  sort_stably(e.offers, std::greater(), &Finding::weight);
}

// Returns the finding without the advice: the part before the colon of "Stage 2 takes 1.40× the time of the other
// stages: move layers away".
std::string first_clause(const std::string& title, const char* colon) { return title.substr(0, title.find(colon)); }

// Returns `size`, or nothing where the text says it already: "4.1 %" is in "cost 4.1 % of a step", not in "14.1 %".
std::string unless_known(const Text& title, const std::string& size) {
  for (size_t at = title.en.find(size); at != std::string::npos; at = title.en.find(size, at + 1))
    if (at == 0 || (title.en[at - 1] != '.' && (title.en[at - 1] < '0' || title.en[at - 1] > '9'))) return {};
  return size;
}

// The schedule's own bubble, with the digits of the bar above it.
Args bubble_args(const Explanation& e) {
  auto shares = mapped<double>(e.parts, &SpanPart::share);
  const std::vector<std::string> printed = percents(shares);
  Args args;
  for (size_t p = 0; p < printed.size(); ++p)
    if (e.parts[p].id == "bubble") args.set("share", printed[p]);
  return args.set("time", human_duration(e.bubble_share * e.parts_of_ns));
}

// Adds what findings leave out: their total cost, and a large bubble, which is the schedule's own and not a fault.
void say_costs(const Headline& headline, Explanation& e) {
  const auto bubble = part_share(headline, "bubble");
  if (bubble >= kLargePart) {
    e.bubble_share = bubble;
    e.bubble = words("explain.bubble.shrink", bubble_args(e).flag("offers", !e.offers.empty()));
  }
  if (e.findings.empty() || !(e.lost_ns > 0)) return;
  Args args;
  args.set("lost", human_duration(e.lost_ns)).set("share", percent(e.lost_share()));
  args.flag("part", std::ranges::any_of(e.findings,
                                        [](const Finding& f) { return f.weight > 0 && !f.value.starts_with("−"); }));
  e.opening = words("explain.opening", args.set("step", human_duration(e.wall_ns)));
}

// Puts first on a page the culprit and its cost, or that the run is healthy. Step time and computing time follow below.
// Where nothing is sure the step's time stays the headline.
void say_culprit(bool cells, bool cut_off, Explanation& e) {
  Headline& h = e.headline;
  // The headline of a recording that is cut off says so first, and stays.
  if (h.title.empty() || !e.why_not.empty() || cut_off) return;
  Text title;
  Args args;
  const bool priced = !e.findings.empty() && e.findings.front().value.starts_with("−");
  // A remark has no weight: it names no loss of a profile.
  if (!e.findings.empty() && (cells || priced || e.findings.front().weight > 0)) {
    const Finding& f = e.findings.front();
    if (!(f.weight > 0) && !priced) return;
    if (cells) {
      const bool costs = priced || f.is_time;
      const Text clause{first_clause(f.title.en, ": "), first_clause(f.title.zh, "：")};
      const std::string share = priced ? f.value.substr(std::string("−").size()) : percent(f.weight);
      args.set("clause", clause).set("share", costs ? unless_known(clause, share) : "");
      args.set("time", human_duration(priced ? f.price.saving_ns : f.lost_ns_per_step));
      args.flag("at_most", f.price.at_most).set("lost", human_duration(f.lost_ns_per_step));
      const bool costs_more = f.lost_ns_per_step > kCostsMore * f.price.saving_ns && e.wall_ns > 0;
      if (costs_more) args.set("lost_share", percent(f.lost_ns_per_step / e.wall_ns));
      title = words(args.of("share", false).empty() ? "explain.culprit"
                    : priced && costs_more          ? "explain.culprit.both"
                    : priced                        ? "explain.culprit.saves"
                                                    : "explain.culprit.costs",
                    args);
    } else {
      args.set("title", f.title).set("value", unless_known(f.title, f.value));
      const bool costs = f.lost_ns_per_step > 0 && f.value.find("×") == std::string::npos;
      title =
          words(costs ? "explain.culprit.profile.costs" : "explain.culprit.profile", args.set("note", f.value_note));
      const Finding& largest = *std::ranges::max_element(e.findings, {}, &Finding::lost_ns_per_step);
      if (costs && !(largest.price.saving_ns > 0) && largest.lost_ns_per_step > f.lost_ns_per_step)
        h.lead += words("explain.order");
    }
  } else {
    const auto computing = std::ranges::find_if(e.parts, [](const SpanPart& p) { return p.id == "compute"; });
    if (!e.doubt.empty() || computing == e.parts.end()) return;
    if (much_is_left(e.account, e.step_ns)) return;  // what no finding names
    // Without device work (then the headline has no step) it is unknown whether devices computed.
    if (!cells && (computing->share < kMostlyComputing || !(h.step_ns > 0))) return;
    title = e.bubble_share > 0 ? words("explain.bubble", bubble_args(e))
                               : words(cells ? "explain.healthy" : "explain.healthy.devices",
                                       args.set("quiet", quiet_title(e)).set("share", percent(computing->share)));
    if (!cells) h.lead = words("explain.healthy.next", Args().set("lead", h.lead));
  }
  add_lead(h, e.opening);
  begin_lead(h, h.title);
  h.title = title;
}

void take_step_times(const StepMeans& times, Explanation& e) {
  e.steps = times.usual.steps, e.step_ns = times.usual.period_ns(), e.gap_ns = times.usual.gap_ns;
  e.wall_ns = times.all.period_ns();
  e.parts_of_ns = e.step_ns, e.parts_of_steps = e.steps;
}

// Where causes are priced, what they cost together is a part of their own mean step.
void take_cause_times(const CauseList& causes, Explanation& e) {
  e.step_ns = causes.step_ns, e.steps = causes.mean_of_steps, e.gap_ns = causes.gap_ns, e.wall_ns = causes.wall_ns;
  e.lost_ns = causes.together_ns;
  e.lost_error_ns = half_interval(causes.together_error_ns, causes.steps);
}

// Breaks a step down, without the lines that findings by share report.
Account step_account(const Trace& trace, const Headline& headline, const CauseList& causes, const RunCoverage& coverage,
                     const ShareFindings& shares) {
  AccountFacts facts{coverage.holed(), 0};
  if (!coverage.holed() && micro_batch_range(trace).between_ranks)
    facts.uneven_replicas_ns = part_share(headline, "replicas") * causes.step_ns;
  std::set<std::string_view> reported;
  for (const Finding& f : shares.list) {
    // Replays of a part of the run keep the waits for what was not read, so that the schedule's part holds them.
    if (f.id == "replicas.wait" && !coverage.whole()) facts.uneven_replicas_ns = f.lost_ns_per_step;
    if (f.id == "messages.slow") reported.insert("message");
    if (f.id == "unexplained") reported.insert({"late", "rest"});
    if (f.id == "replicas.wait") reported.insert({"replicas", "replica-jitter"});
  }
  return account_of(causes, reported, facts);
}

// Ranks that meet inside cells lengthen the cells of a stage. In the bar, that cost is not an imbalance of stages.
void tell_peers_apart(const CauseList& causes, std::vector<SpanPart>& parts) {
  double lost_ns = sum_over<double>(
      causes.causes, [&](const Cause& cause) { return cause.kind->id == "peers" ? cause.price.lost_ns : 0; });
  const auto imbalance = std::ranges::find(parts, "imbalance", &SpanPart::id);
  if (!(lost_ns > 0) || imbalance == parts.end() || !(causes.step_ns > 0)) return;
  const double share = std::clamp(lost_ns / causes.step_ns, 0.0, std::max(0.0, imbalance->share));
  imbalance->share -= share;
  parts.insert(imbalance, span_part("imbalance-peers", "part.imbalance-peers", share));
}

// Explains a run whose causes can be priced by simulations of its graph.
void explain_priced(const Run& run, const StepGraph& graph, const Headline& headline, bool with_offers,
                    const StageBytes* bytes, std::vector<Finding>& known, Explanation& e) {
  const Trace& trace = run.trace();
  const TheoryRun& theory = theory_of(run);
  const RunCoverage& coverage = coverage_of(run);
  CauseList causes = causes_in_layers(run, bytes);
  take_cause_times(causes, e);
  explain_uneven(trace, causes, known);
  e.doubt = doubt_words(causes, known);
  e.next = hidden_words(causes);
  const bool whole = !causes.not_analysable && coverage.any_whole_replica();
  tell_peers_apart(causes, e.parts);
  e.part_read = !coverage.whole() || coverage.replicas_unread() > 0;
  e.left_out = sums_of(run).incomplete.size();
  ShareFindings shares;
  if (!causes.not_analysable) shares = share_findings(trace, headline, causes, graph, coverage);
  if (whole) e.account = step_account(trace, headline, causes, coverage, shares);
  // Nothing is known of the time that unread replicas would take with another order or more micro-batches.
  const bool offers = with_offers && coverage.replicas_unread() == 0;
  if (whole && coverage.whole() && (offers || has_links_to_hide(causes))) {
    if (const RunGraph& free = graph_of(run, LaunchRule::kFree); free.graph) {
      Diagnostics notes;
      WhatIf model = WhatIf::of(run, free.graph, notes, WhatIfUse::kOrders);
      price_in_flight(model, bytes, causes);
      if (offers) make_offers(std::move(model), bytes, e);
    }
  }
  e.findings = cause_findings(trace, causes, theory.recognition);
  add_long_steps(causes, long_step_findings(trace, causes), e.findings);
  add_share_findings(std::move(shares), e.findings);
  if (whole) say_costs(headline, e);
  say_run(trace, theory.recognition, coverage, e);
}

// Explains the pipeline of a run: what its cells show. Adds to the findings that are known from sums what is behind
// them.
void explain_cells(const Run& run, const Headline& headline, bool with_offers, const StageBytes* bytes,
                   std::vector<Finding>& known, Explanation& e) {
  const RunCoverage& coverage = coverage_of(run);
  const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
  say_coverage(coverage, e);
  take_step_times(step_means_of(run), e);
  if (made.graph) return explain_priced(run, *made.graph, headline, with_offers, bytes, known, e);
  if (coverage.not_analysable()) return;
  e.unpriced = true;
  e.why_not = made.error->what;
  set_explanation_note(e, words("explain.no_price", Args().set("why", error_text(*made.error))));
}

// Adds the findings of the run's figures that no cause reports.
void add_known(std::vector<Finding> known, Explanation& e) {
  std::set<std::string> shown = mapped<std::set>(e.findings, &Finding::id);
  for (Finding& f : known) {
    if (f.id == "none" || shown.contains(f.id)) continue;
    if (f.is_time && f.lost_ns_per_step <= 0) f.lost_ns_per_step = f.weight * e.step_ns;
    e.findings.push_back(std::move(f));
  }
}

// Sorts findings by the price shown next to them; those without one by what is lost. A cause that costs much comes
// before lines of the breakdown: these name no culprit, and no fix saves all of their time. Where no cause has a price,
// every cause comes before them.
void sort_findings(Explanation& e) {
  constexpr double kMuch = 0.05;
  const auto price = [](const Finding& f) { return f.price.saving_ns > 0 ? f.price.saving_ns : f.lost_ns_per_step; };
  const auto messages = std::ranges::find(e.findings, "messages.slow", &Finding::id);
  const double messages_ns = messages == e.findings.end() ? 0 : price(*messages);
  const auto leads = [&](const Finding& f) {
    if (e.unpriced) return !f.is_time && !key_of(f).empty();
    // Ranks that wait for their own sends wait for messages; if these cost more, they are the larger culprit.
    if (f.id == "sends.blocking" && messages_ns > price(f)) return false;
    return f.price.saving_ns > 0 && std::max(f.price.saving_ns, f.lost_ns_per_step) >= kMuch * e.step_ns;
  };
  sort_stably(e.findings, [&](const Finding& a, const Finding& b) {
    if (leads(a) != leads(b)) return leads(a);
    return price(a) != price(b) ? price(a) > price(b) : a.weight > b.weight;
  });
  if (e.findings.size() > kMaxFindings) e.findings.resize(kMaxFindings);
}

}  // namespace

Explanation explain(const Run& run, bool with_offers, const StageBytes* bytes) {
  const Trace& trace = run.trace();
  if (const TrainingTime training = training_time(trace); training.reported) return explain_training(training);
  Explanation e;
  const bool cells = trace.cells.size() > 0;
  Findings known = findings_of(run);
  const bool nothing_known = known.list.empty();
  e.headline = known.headline;
  e.parts = known.headline.parts;
  if (!cells) e.step_ns = known.headline.step_ns, e.wall_ns = known.headline.step_ns, e.steps = known.headline.steps;
  e.parts_of_ns = e.step_ns, e.parts_of_steps = e.steps;
  if (cells) explain_cells(run, known.headline, with_offers, bytes, known.list, e);
  add_known(std::move(known.list), e);
  e.others = std::move(known.others);
  sort_findings(e);
  const bool has_steps = std::ranges::any_of(
      trace.parts, [](const Part& part) { return !part.steps.empty() || !part.step_summaries.empty(); });
  if (!cells && !has_steps && nothing_known && e.headline.parts.empty()) {
    const Text why = words("explain.unread", Args().set("names", longest_names(trace)));
    e.why_not = why.en;
    set_explanation_note(e, words("explain.not_analysed", Args().set("why", why)));
  }
  for (const Diagnostic& d : trace.diagnostics.items())
    if (d.name == "layout.stages_contradicted")
      set_explanation_note(e, words("explain.doubtful", Args().set("why", d.message).set("note", e.note)));
  say_culprit(cells, trace.diagnostics.count("kineto.truncated") > 0, e);
  if (e.run.empty() && !e.headline.sizes.empty()) {  // no line above says the sizes
    begin_lead(e.headline, e.headline.sizes);
    e.headline.sizes = {};
  }
  // Findings of a profile may be about the same time, so all that is certain is that the largest of them is lost.
  if (!cells)
    for (const Finding& f : e.findings) e.lost_ns = std::max(e.lost_ns, f.lost_ns_per_step);
  return e;
}

Text quiet_title(const Explanation& e) { return words(quiet_words(e) + ".title", Args().count("steps", e.steps)); }

Text quiet_limits(const Explanation& e) {
  if (quiet_words(e) == "quiet") return {};
  return words(quiet_words(e) + ".limits", Args().count("steps", e.left_out > 0 ? e.left_out : e.steps));
}

Findings explained_findings(const Explanation& e) {
  Findings findings{e.headline, e.findings, e.offers, e.others};
  Headline& h = findings.headline;
  begin_lead(h, h.sizes);
  add_lead(h, e.note);
  if (!findings.list.empty()) {
    add_lead(h, e.doubt);
    add_lead(h, e.next);
    return findings;
  }
  Finding none = nothing_found(e.headline.host_alone ? "profile.nothing.host" : "explain.nothing");
  if (e.headline.host_alone) none.detail = e.headline.closing;
  if (!e.headline.host_alone)
    none.title = quiet_title(e), none.detail = joined({none.detail, quiet_limits(e)}, {" ", ""});
  if (!e.bubble.empty()) {
    none.title = words("explain.bubble", bubble_args(e));
    none.detail = joined({none.detail, e.bubble}, {" ", ""});
  }
  if (!e.doubt.empty()) none.title = words("explain.unsure.title"), none.detail = e.doubt;
  if (!e.why_not.empty()) none.title = words("explain.not_analysed.title"), none.detail = e.note;
  findings.list.push_back(std::move(none));
  return findings;
}

}  // namespace stageline
