#include "diagnosis/share_findings.h"

#include "diagnosis/causes/link_times.h"

namespace stageline {

double part_share(const Headline& headline, std::string_view id) {
  return sum_over<double>(headline.parts, [&](const SpanPart& part) { return part.id == id ? part.share : 0; });
}

namespace {

// Returns the share of a step that the breakdown lines with this id take once all named causes are removed; 0 when
// there is no such line.
double left_share(const CauseList& causes, std::string_view id) {
  double left_ns = sum_over<double>(causes.left, [&](const AccountLine& line) { return line.id == id ? line.ns : 0; });
  return causes.step_ns > 0 ? left_ns / causes.step_ns : 0;
}

// The standard error of left_share(), in ns of a step; 0 where one step gives none.
double left_error_ns(const CauseList& causes, std::initializer_list<std::string_view> ids) {
  double variance = 0;
  for (const AccountLine& line : causes.left)
    if (std::ranges::find(ids, line.id) != ids.end() && line.error_ns > 0) variance += line.error_ns * line.error_ns;
  return std::sqrt(variance);
}

Finding of_share(const char* id, double share, const CauseList& causes, double error_ns) {
  return Finding{.id = id,
                 .weight = share,
                 .value = percent(share),
                 .value_note = words("note.step"),
                 .lost_ns_per_step = share * causes.step_ns,
                 .uncertainty_ns = half_interval(error_ns, causes.steps)};
}

// The median time of messages in words ("" without any), and whether messages into every stage take about the same.
struct UsualMessage {
  std::string words;
  bool alike = true;
};
UsualMessage usual_message(const StepGraph& graph, bool whole) {
  constexpr double kAlike = 1.5;  // maximum ratio of the slowest link to the fastest
  std::vector<double> all;
  std::map<std::pair<int32_t, bool>, std::vector<double>> links;  // key: receiving stage, forward
  const bool chunked = std::ranges::any_of(graph.chunk, [](int32_t chunk) { return chunk > 0; });
  for (size_t i = 0; i < graph.size(); ++i) {
    const bool forward = graph.kind[i] == CellKind::kRecvForward;
    if (!forward && graph.kind[i] != CellKind::kRecvBackward) continue;
    if (!whole && other_end_read(graph, static_cast<uint32_t>(i), chunked) == kUnknown) continue;
    all.push_back(std::max(0.0, graph.dur_ns[i]));
    links[{graph.stage(i), forward}].push_back(all.back());
  }
  if (all.empty()) return {};
  double min = std::numeric_limits<double>::infinity(), max = 0;
  for (auto& [link, durations] : links) {
    const double median = median_of(std::move(durations));
    min = std::min(min, median), max = std::max(max, median);
  }
  return {human_duration(median_of(std::move(all))), max <= kAlike * min};
}

// The replica that the others wait for.
struct LastReplica {
  int32_t dp = kUnknown;  // the replica that is last most often
  int64_t replicas = 0;
  int64_t last_in = 0, steps = 0, others = 0;  // steps in which it is; all; how many replicas are last in some step
  double median_wait_ns = 0;                   // of the median replica, a step
  double error_ns = 0;                         // its standard error over steps; NaN for one
};
LastReplica last_replica(const StepGraph& graph) {
  std::map<int32_t, int64_t> last_in;
  LastReplica found;
  std::vector<double> median_waits;  // by step
  for (const GraphStep& step : graph.steps) {
    std::map<int32_t, int64_t> ends;  // for each replica
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (is_compute(graph.kind[op]) && graph.dp(op) != kUnknown) {
        int64_t& end = ends.try_emplace(graph.dp(op), INT64_MIN).first->second;
        end = std::max(end, graph.ended_ns(op));
      }
    if (ends.empty()) continue;
    const auto last = std::ranges::max_element(ends, {}, [](const auto& of) { return of.second; });
    found.replicas = std::max<int64_t>(found.replicas, ends.size());
    ++found.steps;
    ++last_in[last->first];
    auto waits = mapped<double>(ends, [&](const auto& entry) { return last->second - entry.second; });
    median_waits.push_back(median_of(std::move(waits)));
  }
  if (!median_waits.empty()) found.median_wait_ns = mean_of(median_waits);
  found.error_ns = sample_std(median_waits) / std::sqrt(median_waits.size());
  found.others = last_in.size();
  for (const auto& [dp, count] : last_in)
    if (count > found.last_in) found.dp = dp, found.last_in = count;
  return found;
}

// The time by which cells start late.
struct LateTime {
  double fed = 1;           // the share of it in cells of which all that they wait for was read
  int32_t rank = kUnknown;  // the rank that holds nearly all of this share; kUnknown: there is none
};
LateTime late_time(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage) {
  std::map<int32_t, double> fed_ns;  // by part
  double all_ns = 0;
  for (uint32_t op = 0; op < graph.size(); ++op) {
    if (!is_compute(graph.kind[op]) || !(graph.delay_ns[op] >= kLateStart * graph.dur_ns[op])) continue;
    all_ns += graph.delay_ns[op];
    if (graph.cell[op] == kNoCell || coverage.fed(graph.cell[op])) fed_ns[graph.part[op]] += graph.delay_ns[op];
  }
  double sum_ns = sum_over<double>(fed_ns, [&](const auto& entry) { return entry.second; });
  LateTime late{.fed = all_ns > 0 ? sum_ns / all_ns : 1};
  for (const auto& [part, ns] : fed_ns)
    if (ns >= kEverywhere * sum_ns) late.rank = trace.parts[part].rank;
  return late;
}

// Returns whether a cause can make one replica later than the others.
bool is_of_a_replica(const Cause& c) {
  return c.kind->takes("replica-jitter") ||
         std::ranges::any_of(c.places, [](const Place& place) { return place.replica != kUnknown; });
}
// Returns whether a cause compares links with each other.
bool compares_links(const Cause& c) { return c.kind->takes("message") && c.kind->measured == Measured::kInferred; }

void add_replicas(const Trace& trace, double share, const CauseList& causes, const StepGraph& graph,
                  ShareFindings& out) {
  const LastReplica last = last_replica(graph);
  if (share < kLargePart || last.steps == 0) return;
  const bool same = 2 * last.last_in > last.steps && last.steps > 1;
  Args args;
  args.flag("replicas", trace.context_parallel <= 1);  // with context parallelism, one replica may be several pipelines
  args.flag("same", same).set("replica", int64_t{last.dp}).set("share", percent(share));
  args.set("last", grouped(last.last_in)).set("steps", grouped(last.steps)).set("others", grouped(last.others));
  args.set("unit", words(trace.context_parallel <= 1 ? "replicas.unit.replica" : "replicas.unit.pipeline"));
  args.set("who", words(same              ? "replicas.last.same"
                        : last.steps == 1 ? "replicas.last.alone"
                                          : "replicas.last.varies",
                        args));
  args.set("late", words(same ? "replicas.late.same" : "replicas.late.slowest", args));
  out.replicas = words("replicas.share", args);
  // The loss is the wait of the usual replica. The mean over all replicas includes the last one, which never waits.
  if (last.replicas > 2) share = std::max(share, last.median_wait_ns / causes.step_ns);
  // The delay of the last replica has its own finding, or several in turn that leave little of this. Delays of all
  // replicas are not part of this.
  double by_causes_ns = 0, max_ns = 0;
  for (const Cause& c : causes.causes)
    if (is_of_a_replica(c)) by_causes_ns += c.price.lost_ns, max_ns = std::max(max_ns, c.price.lost_ns);
  // A late rank that too few steps prove may be what the others wait for.
  for (const Cause& c : causes.doubtful)
    if (is_of_a_replica(c) || c.kind->takes("late")) max_ns = std::max(max_ns, c.price.lost_ns);
  const double half_ns = share * causes.step_ns / 2;
  const bool explained = by_causes_ns >= half_ns && left_share(causes, "replica-jitter") * causes.step_ns < half_ns;
  if (max_ns >= half_ns || explained) return;
  // A cause in the last replica alone is one reason for the wait, and has its own cost.
  double named_ns = 0;
  for (const Cause& c : causes.causes)
    if (std::ranges::any_of(c.places, [&](const Place& place) { return place.replica == last.dp; }))
      named_ns += c.price.lost_ns;
  share -= named_ns / causes.step_ns;
  if (share < kLargePart) return;
  args.flag("one", last.steps == 1);
  args.set("advice", words(named_ns > 0      ? "replicas.wait.named"
                           : same            ? "replicas.wait.same"
                           : last.steps == 1 ? "replicas.wait.one_step"
                                             : "replicas.wait.varies"));
  Finding f = of_share("replicas.wait", share, causes, last.error_ns);
  say(f, "replicas.wait", args.set("share", percent(share)));
  f.evidence = {"waterfall", "waterfall-steps"};
  out.list.push_back(std::move(f));
}

}  // namespace

ShareFindings share_findings(const Trace& trace, const Headline& headline, const CauseList& causes,
                             const StepGraph& graph, const RunCoverage& coverage) {
  ShareFindings out;
  std::vector<Finding>& findings = out.list;
  if (!(causes.step_ns > 0)) return out;
  const bool whole = coverage.any_whole_replica();
  const bool recorded = graph.source != GraphSource::kComputeCells || graph.messages_recorded;
  if (whole) add_replicas(trace, part_share(headline, "replicas"), causes, graph, out);
  // The time that messages, and starts without a reason, still take after replays without every named cause. The time
  // that the closing sentence suspects is subtracted: it is within noise, or unknown until the causes above are fixed.
  // A run without a whole replica has no such breakdown, but what its recorded messages cost is known. The cost of a
  // named link is a part of it.
  // Where stages were not read, these may be what cells wait for, and why replays miss the run.
  const LateTime late = late_time(trace, graph, coverage);
  double messages = left_share(causes, "message"), rest = left_share(causes, "late") * late.fed;
  if (coverage.whole()) rest += left_share(causes, "rest");
  const bool by_links = std::ranges::any_of(causes.causes, [](const Cause& c) { return c.kind->takes("message"); });
  if (!whole) messages = recorded && !by_links ? causes.messages_ns / causes.step_ns : 0, rest = 0;
  // Where recorded messages take equally long on every link, a link that is suspected nevertheless does not reduce what
  // messages cost.
  const UsualMessage usual = messages >= kLargePart ? usual_message(graph, coverage.whole()) : UsualMessage{};
  const bool alike = usual.alike && !usual.words.empty();
  for (const std::vector<Cause>* suspected : {&causes.doubtful, &causes.hidden})
    for (const Cause& c : *suspected) {
      const double share = c.price.lost_ns / causes.step_ns;
      if (c.kind->takes("late")) rest -= share;
      if (c.kind->takes("message") && !(compares_links(c) && alike)) messages -= share;
    }
  if (messages >= kLargePart) {
    double error_ns = left_error_ns(causes, {"message"});
    // As for every cause, the finding gives the cost in the run as it was, unless late starts hide nearly all of it.
    // Links that are named have their cost in their own finding.
    if (!by_links && causes.messages_ns >= kLargePart * causes.step_ns)
      messages = causes.messages_ns / causes.step_ns, error_ns = causes.messages_error_ns;
    Finding f = of_share("messages.slow", messages, causes, error_ns);
    const bool pair = graph.stage_count == 2;
    Place link{.kind = PlaceKind::kLink};
    if (pair) link.from_stage = 0, link.stage = 1, link.both_ways = true;
    f.places = {link};
    f.key = "messages";
    Args args;
    args.set("share", f.value).set("usual", usual.words).flag("alike", usual.alike).flag("pair", pair);
    const bool links = std::ranges::any_of(causes.causes, compares_links);
    args.set("known", words(!recorded             ? "messages.slow.inferred"
                            : usual.words.empty() ? "messages.slow.unknown"
                                                  : "messages.slow.recorded",
                            args));
    args.set("note", links                                      ? words("messages.slow.elsewhere")
                     : usual.alike && !pair && coverage.whole() ? words("messages.slow.everywhere")
                                                                : Text());
    say(f, "messages.slow", args);
    if (!recorded) f.title = words("messages.slow.inferred.title", args);
    f.evidence = {"links", ""};
    findings.push_back(std::move(f));
  }
  if (rest >= kLargePart && !coverage.holed()) {
    Finding f = of_share("unexplained", rest, causes, left_error_ns(causes, {"late", "rest"}));
    // Where a cause is named that starts cells late, the rank may be its rank.
    const bool named = std::ranges::any_of(causes.causes, [](const Cause& c) { return c.kind->takes("late"); });
    const int32_t rank = named ? kUnknown : late.rank;
    if (rank != kUnknown) f.places = {{.kind = PlaceKind::kHost, .ranks = {rank}}};
    Args args = Args().set("share", f.value).flag("more", !causes.causes.empty());
    say(f, "unexplained", args.set("rank", rank == kUnknown ? "" : std::to_string(rank)));
    f.evidence = {"theory", "late-reasons"};
    findings.push_back(std::move(f));
  }
  return out;
}

void add_share_findings(ShareFindings shares, std::vector<Finding>& findings) {
  // Late starts everywhere and late starts without a reason are one thing to look at.
  const auto late = std::ranges::find(findings, "host.late_starts", &Finding::id);
  const auto rest = std::ranges::find(shares.list, "unexplained", &Finding::id);
  if (late != findings.end() && rest != shares.list.end()) {
    late->detail.en += " ";
    late->detail += words("unexplained.too", Args().set("share", rest->value));
    shares.list.erase(rest);
  }
  for (Finding& f : findings) {
    if (shares.replicas.empty() || (f.id != "sequence.long" && f.id != "rank.slow")) continue;
    f.detail.en += " ";
    f.detail += shares.replicas;
    break;
  }
  for (Finding& f : shares.list) findings.push_back(std::move(f));
}

}  // namespace stageline
