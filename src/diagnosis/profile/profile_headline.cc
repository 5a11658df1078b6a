#include "diagnosis/profile/finding_parts.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kNamedShare = 0.01;  // share of the span; a smaller part of the loss gets no sentence

// Idle time by cause, and other work.
void add_idle_parts(const ProfileAccount& account, Headline& headline) {
  const double window = window_of(account);
  const auto part = [&](const std::string& id, auto&& of) {
    const double ns = sum_over<double>(account, [&](const RankAccount& a) { return of(a); });
    if (ns > 0) headline.parts.push_back(span_part(id, "profile.part." + id, share_or_zero(ns, window)));
  };
  part("rest", [](const RankAccount& a) { return a.other_work_ns; });
  for (size_t cause = 0; cause < kIdleCauses; ++cause)
    part("idle-" + std::string(kIdleCauseNames[cause]), [&](const RankAccount& a) { return a.idle_ns[cause]; });
}

void add_span_parts(const ProfileFacts& facts, const ProfileAccount& account, Headline& headline) {
  const double span = facts.whole.span_ns;
  const auto part = [&](const std::string& id, double ns) {
    if (ns > 0) headline.parts.push_back(span_part(id, "profile.part." + id, share_or_zero(ns, span)));
  };
  part("compute", facts.whole.compute_ns - facts.whole_graphs_ns);
  part("graphs", facts.whole_graphs_ns);
  part("comm-wait", facts.comm_wait_ns);
  part(facts.only_communication ? "transfer" : "comm", facts.whole.exposed_comm_ns - facts.comm_wait_ns);
  part("memory", facts.whole.exposed_memory_ns);
  if (facts.accounted) add_idle_parts(account, headline);
  else part("idle", facts.whole.idle_ns);
}

// "3 steps", for a number above zero.
Text counted(std::string_view sentence, size_t count) {
  const Text number{grouped(count), std::to_string(count)};
  return words(sentence, Args().set("count", number).flag("one", count == 1));
}

void say(Headline& headline, const Text& title, const Text& lead) {
  headline.title = title;
  headline.lead = lead;
}

// Returns the longest time in which no rank recorded anything.
int64_t hole_ns(const Trace& trace) {
  std::vector<Interval> events;
  for (const Part& part : trace.parts)
    for (const Lane& lane : part.lanes) {
      const size_t first = events.size();  // slices of a lane are in order, so those that touch are joined at once
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (trace.categories[part.slices.category_id[i]].kind == Category::kSpan) continue;
        const int64_t start = part.slices.start_ns[i], end = part.slices.end_ns(i);
        if (events.size() > first && start <= events.back().end) events.back().end = std::max(events.back().end, end);
        else events.push_back({start, end});
      }
    }
  events = union_of(std::move(events));
  int64_t longest = 0;
  for (size_t k = 1; k < events.size(); ++k)
    longest = std::max(longest, between_ns(events[k - 1].end, events[k].start));
  return longest;
}

// Says where devices should be visible and why they may not be.
void say_no_devices(const Trace& trace, const Args& window, Headline& headline) {
  const Text title = words("profile.title.no_devices", window);
  if (trace.device_family == DeviceFamily::kNpu) {
    const bool sums = std::ranges::any_of(trace.parts, [](const Part& part) { return !part.step_summaries.empty(); });
    say(headline, sums ? words("profile.title.sums_alone") : title, words("profile.lead.no_devices_npu"));
  } else if (trace.diagnostics.count(trace.format + ".lost_work") > 0) {
    say(headline, title, words("profile.lead.lost_devices"));
  } else if (trace.format == "xplane") {
    say(headline, title, words("profile.lead.no_devices_xla"));
  } else {
    // Advice for torch.profiler is for its traces: those with kinds of events that only torch writes.
    const bool torch = trace.writer.empty() && (trace.format == "kineto" || trace.format == "perfetto") &&
                       std::ranges::any_of(trace.categories, [](const CategoryInfo& c) {
                         return c.kind == Category::kCpuOp || c.kind == Category::kPythonFunction;
                       });
    say(headline, title, torch ? words("profile.lead.no_devices") : Text{});
  }
}

// Returns whether a rank has work on several devices. Its times are then those in which any of them works.
bool drives_several_devices(const Trace& trace) {
  return std::ranges::any_of(trace.parts, [&](const Part& part) {
    std::set<std::string_view> devices;
    const auto& category = part.slices.category_id;
    for (const Lane& lane : part.lanes)
      for (size_t i = lane.begin; lane.kind == LaneKind::kDeviceStream && i < std::min(lane.end, category.size()); ++i)
        if (is_device_work(trace.categories[category[i]].kind)) devices.insert(lane.pid);
    return devices.size() > 1;
  });
}

}  // namespace

std::vector<std::string> printed_shares(const Headline& headline) {
  auto shares = mapped<double>(headline.parts, &SpanPart::share);
  return percents(shares);
}

Headline profile_headline(const ProfileFacts& facts, const Trace& trace, const ProfileAccount& account) {
  const size_t rank_count = trace.parts.size();  // also those of which nothing was recorded
  Headline h;
  Args args;
  args.set("window", human_duration(facts.window_ns));
  if (facts.step_count > 0) args.set("steps", counted("steps", facts.step_count));
  if (facts.ranks.empty()) {
    // A hole that is longer than the window lies between recordings, and is not part of it.
    const double hole = facts.step_count > 0 ? 0 : static_cast<double>(hole_ns(trace));
    if (2 * hole > facts.window_ns && hole < facts.window_ns) args.set("hole", human_duration(hole));
    say_no_devices(trace, args, h);
    return h;
  }
  args.set("lost", percent(1 - share_or_zero(facts.whole.compute_ns, facts.whole.span_ns)))
      .flag("several", facts.ranks.size() > 1);
  if (facts.whole_graphs_ns > 0) args.set("graphs", percent(share_or_zero(facts.whole_graphs_ns, facts.whole.span_ns)));
  if (facts.step_count > 1) args.set("step", human_duration(facts.step_ns));
  args.set("ranks", counted("profile.ranks", rank_count)).flag("shared", drives_several_devices(trace));
  const double known = 1 - share_or_zero(facts.unknown_ns, facts.unknown_ns + facts.whole.span_ns);
  args.set("known", percent(known));
  Text lead = words(facts.only_communication ? "profile.lead.communication" : "profile.lead", args);
  add_span_parts(facts, account, h);
  if (facts.only_communication) {
    say(h, words("profile.title.communication", args), lead);
    return h;
  }
  const SpanPart* worst = nullptr;
  for (const SpanPart& p : h.parts)
    if (p.id != "compute" && p.id != "graphs" && (!worst || p.share > worst->share)) worst = &p;
  if (worst && worst->share >= kNamedShare)
    lead += words("profile.lead.worst",
                  Args().set("part", worst->label).set("share", printed_shares(h)[worst - h.parts.data()]));
  // Without communication the job may have no other rank.
  if (rank_count == 1 && facts.whole.comm_ns > 0) lead += words("profile.lead.one_rank");
  const char* title = known < 0.99 ? "profile.title.unknown" : "profile.title";
  say(h, words(facts.whole_graphs_ns > 0 ? "profile.title.graphs" : title, args), lead);
  return h;
}

void warn_of_runs(const Trace& trace, Headline& headline) {
  if (trace.diagnostics.count("kineto.truncated") > 0)
    headline.title = words("profile.title.cut_off", Args().set("title", headline.title));
  if (trace.diagnostics.count("kineto.far_apart") > 0)
    headline.lead = words("profile.lead.far_apart", Args().set("lead", headline.lead));
}

void close_account(const std::vector<Finding>& list, Headline& headline) {
  constexpr double kWorthALine = 0.01;
  std::vector<SpanPart> parts;
  double others = 0, computing = 0;
  for (const SpanPart& part : headline.parts) {
    if (part.id == "graphs" && part.share >= kWorthALine) {
      headline.closing = words("profile.closing.graphs", Args().set("share", percent(part.share)));
      return;
    }
    if (part.id == "compute" || part.share >= kWorthALine) parts.push_back(part);
    else others += part.share;
    computing += part.id == "compute" ? part.share : 0;
  }
  if (others > 0) parts.push_back(span_part("others", "part.others", others));
  const bool any = std::ranges::any_of(list, [](const Finding& finding) { return finding.weight > 0; });
  Args args;
  args.flag("quiet", !any && computing >= kMostlyComputing).set("parts", parts_text(parts));
  headline.closing = words("profile.closing", args);
}

}  // namespace stageline
