#include <ctime>

#include "diagnosis/profile/profile_findings.h"

namespace stageline {
namespace {

constexpr size_t kMaxRanksNamed = 8;

// A time of the host's clock: "2026-11-23 04:21:07.123 UTC".
Text clock_text(int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  if (ns <= 0 || !gmtime_r(&seconds, &parts)) return words("flight.unknown_time");
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  const std::string ms = std::to_string(1000 + ns / 1'000'000 % 1000);
  const std::string stamp = std::string(text, size) + "." + ms.substr(1) + " UTC";
  return {stamp, stamp};
}

// "rank 3", "ranks 3, 4 and 2 more"; `start` begins with a capital, for the start of a sentence.
Text ranks_text(const std::vector<int32_t>& ranks, bool start = false) {
  std::vector<Text> named;
  for (size_t i = 0; i < std::min(ranks.size(), kMaxRanksNamed); ++i)
    named.push_back({std::to_string(ranks[i]), std::to_string(ranks[i])});
  Args args;
  args.set("list", joined(named, words("list.comma"))).flag("one", ranks.size() == 1).flag("start", start);
  const int64_t all = ranks.size(), more = all - std::ssize(named);
  args.set("beyond", more > 0 ? Text{grouped(more), grouped(all)} : Text());
  return words("flight.ranks", args);
}
Text starting(const std::vector<int32_t>& ranks) { return ranks.empty() ? Text() : ranks_text(ranks, true); }

// "all_reduce 7 of default_pg (group 0)", "message 3 from rank 0 to rank 1 of pipeline"
Text what_text(const Trace& trace, const FlightProblem& p) {
  Args args;
  args.set("group", flight_group_text(trace.flight_groups[p.group])).set("sequence", p.sequence);
  if (!p.is_p2p) return words("flight.call", args.set("op", std::string(trace.names.text(p.op))));
  return words("flight.message", args.set("src", int64_t{p.src}).set("dst", int64_t{p.dst}));
}

const FlightCall* call_of(const Trace& trace, int32_t part, uint32_t slice) {
  if (part < 0 || slice == kNoSliceIndex) return nullptr;
  return fact_of(trace.parts[part].flight_calls, slice);
}

// Returns the last call of a rank that never arrived.
Text last_call(const Trace& trace, const FlightProblem& p) {
  Args args;
  args.set("rank", int64_t{trace.parts[p.part].rank});
  const FlightCall* last = call_of(trace, p.part, p.slice);
  if (!last) return words("flight.last.none", args);
  args.set("call", flight_call_text(trace, *last)).set("frame", flight_frame_text(trace, p.part, p.slice));
  return words("flight.last", args.flag("through", last->state == FlightState::kCompleted));
}

Finding finding_of(const Trace& trace, const FlightProblem& p) {
  Finding f;
  f.evidence = {"flight-recorder", "flight-problems"};
  if (p.part >= 0) f.rank = trace.parts[p.part].rank;
  if (!p.culprits.empty()) f.places = {{.kind = PlaceKind::kRanks, .ranks = p.culprits}};
  f.value = counted(p.waiting.size(), "rank", "ranks");
  Args args;
  args.set("what", what_text(trace, p)).set("since", clock_text(p.since_ns)).set("expected", p.expected);
  args.set("found", p.found).set("frame", flight_frame_text(trace, p.part, p.slice));
  args.set("waiting", starting(p.waiting)).flag("one", p.waiting.size() == 1);
  args.set("culprits", starting(p.culprits)).flag("several", p.culprits.size() > 1);
  args.set("enqueued", starting(p.not_started)).flag("one_enqueued", p.not_started.size() == 1);
  f.value_note = words("flight.value", args);
  switch (p.verdict) {
    case FlightVerdict::kMissing:
      f.id = "collective.missing";
      say(f, "flight.missing", args);
      f.detail += last_call(trace, p);
      break;
    case FlightVerdict::kType:
    case FlightVerdict::kSizes:
    case FlightVerdict::kDtype: {
      f.id = "collective.mismatch";
      const bool operation = p.verdict == FlightVerdict::kType;
      args.flag("operation", operation);
      args.set("kind", words(operation                            ? "flight.kind.operation"
                             : p.verdict == FlightVerdict::kSizes ? "flight.kind.sizes"
                                                                  : "flight.kind.types"));
      args.set("waits", p.waiting.empty() ? Text() : words("flight.mismatch.waits", args));
      say(f, "flight.mismatch", args);
      if (p.culprits.empty())
        f.title = words(operation ? "flight.mismatch.operations" : "flight.mismatch.values", args);
      break;
    }
    case FlightVerdict::kStuck:
    case FlightVerdict::kUnfinished:
      f.id = "collective.stuck";
      if (p.verdict == FlightVerdict::kUnfinished && !p.without_dump.empty()) {
        f.places = {{.kind = PlaceKind::kRanks, .ranks = p.without_dump}};
        args.set("absent", ranks_text(p.without_dump)).flag("one_absent", p.without_dump.size() == 1);
        say(f, "flight.undumped", args);
        return f;
      }
      args.set("behind", p.not_started.empty() ? Text() : words("flight.stuck.behind", args));
      say(f, "flight.stuck", args);
      break;
  }
  if (p.without_dump.empty()) return f;
  Args missing;
  missing.set("ranks", ranks_text(p.without_dump)).flag("one", p.without_dump.size() == 1);
  f.detail += words("flight.no_dump", missing);
  return f;
}

Finding cycle_finding(const FlightReport& report, const Trace& trace) {
  Finding f{.id = "collective.cycle",
            .value = counted(report.cycle.size(), "rank", "ranks"),
            .rank = report.cycle.front(),
            .evidence = {"flight-recorder", "flight-waits"}};
  say(f, "flight.cycle", Args().set("ranks", starting(report.cycle)));
  for (size_t i = 0; i < report.cycle.size(); ++i) {
    const int32_t rank = report.cycle[i], next = report.cycle[(i + 1) % report.cycle.size()];
    const auto wait = std::ranges::find_if(report.waits, [&](const FlightWait& w) { return w.rank == rank; });
    Args args;
    args.flag("further", i > 0).set("rank", int64_t{rank}).set("next", int64_t{next});
    args.set("call", flight_call_text(trace, trace.parts[wait->part].flight_calls[wait->call]));
    f.detail += words("flight.cycle.wait", args);
  }
  f.detail += words("flight.cycle.rule");
  return f;
}

}  // namespace

Findings flight_findings(const Run& run) {
  const Trace& trace = run.trace();
  const FlightReport& report = flight_of(run);
  Findings out;
  Headline& h = out.headline;
  if (!report.cycle.empty()) out.list.push_back(cycle_finding(report, trace));
  // One finding for each group and kind: later problems follow from the first one.
  std::set<std::tuple<int32_t, FlightVerdict, int32_t, int32_t>> reported;
  int64_t unfinished = 0;
  for (const FlightProblem& problem : report.problems) {
    if (problem.verdict == FlightVerdict::kUnfinished && problem.without_dump.empty()) {
      ++unfinished;
      continue;
    }
    if (reported.insert({problem.group, problem.verdict, problem.src, problem.dst}).second)
      out.list.push_back(finding_of(trace, problem));
  }
  // Weights only keep the order: a dump has no times that a fix could save.
  for (size_t i = 0; i < out.list.size(); ++i) out.list[i].weight = 1.0 / (i + 1);
  const bool roots = !out.list.empty() && !report.roots.empty() && report.cycle.empty();
  Args args;
  args.count("ranks", trace.parts.size()).count("calls", report.calls);
  args.count("groups", trace.flight_groups.size()).set("judged", grouped(report.judged));
  h.lead = words("flight.lead", args);
  if (report.overwritten > 0)
    add_lead(h, words("flight.lead.overwritten", Args().set("overwritten", grouped(report.overwritten))));
  if (unfinished > 0) add_lead(h, words("flight.lead.unfinished", args.count("unfinished", unfinished)));
  if (roots) {
    args.set("roots", starting(report.roots)).flag("one_root", report.roots.size() == 1);
    add_lead(h, words("flight.lead.roots", args));
  }
  h.closing = words("flight.closing");
  if (out.list.empty()) {
    h.title = words("flight.title", args);
    out.list.push_back(nothing_found("flight.nothing"));
  } else {
    h.title = words("clause", Args().set("clause", out.list.front().title));
  }
  return out;
}

}  // namespace stageline
