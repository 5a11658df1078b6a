#include "diagnosis/profile/profile_headline.h"

#include <algorithm>
#include <string>

#include "base/number.h"
#include "base/words.h"
#include "diagnosis/profile/loss_findings.h"
#include "model/finding_words.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kNamedShare = 0.01;  // share of the span; a smaller part of the loss gets no sentence

void add_span_parts(const ProfileFacts& f, const ProfileAccount& account, Headline& h) {
  const double span = f.whole.span_ns;
  const auto part = [&](const std::string& id, double ns) {
    if (ns > 0) h.parts.push_back(span_part(id, "profile.part." + id, share_or_zero(ns, span)));
  };
  part("compute", f.whole.compute_ns);
  part("comm-wait", f.comm_wait_ns);
  part("comm", f.whole.exposed_comm_ns - f.comm_wait_ns);
  part("memory", f.whole.exposed_memory_ns);
  if (f.accounted) {
    add_idle_parts(account, h);
  } else {
    part("idle", f.whole.idle_ns);
  }
}

// "3 steps", for a number above zero.
Text counted(std::string_view sentence, size_t count) {
  const Text number{grouped(static_cast<int64_t>(count)), std::to_string(count)};
  return words(sentence, Args().set("count", number).flag("one", count == 1));
}

void say(Headline& h, const Text& title, const Text& lead) {
  h.title = title;
  h.lead = lead;
}

// Says where devices should be visible and why they may not be.
void say_no_devices(const Trace& trace, const Args& window, Headline& h) {
  const Text title = words("profile.title.no_devices", window);
  if (trace.device_family == DeviceFamily::kNpu) {
    const bool sums = std::any_of(trace.parts.begin(), trace.parts.end(),
                                  [](const Part& part) { return !part.step_summaries.empty(); });
    say(h, sums ? words("profile.title.sums_alone") : title, words("profile.lead.no_devices_npu"));
  } else if (trace.format == "xplane") {
    say(h, title, words("profile.lead.no_devices_xla"));
  } else {
    say(h, title, trace.writer.empty() ? words("profile.lead.no_devices") : Text{});
  }
}

}  // namespace

Headline profile_headline(const ProfileFacts& f, const Trace& trace, const ProfileAccount& account) {
  const size_t rank_count = f.ranks.empty() ? trace.parts.size() : f.ranks.size();
  Headline h;
  Args args;
  args.set("window", human_duration(f.window_ns));
  if (f.step_count > 0) args.set("steps", counted("steps", f.step_count));
  if (f.ranks.empty()) {
    say_no_devices(trace, args, h);
    return h;
  }
  args.set("lost", percent(1 - share_or_zero(f.whole.compute_ns, f.whole.span_ns))).flag("several", f.ranks.size() > 1);
  if (f.step_count > 1) args.set("step", human_duration(f.step_ns));
  args.set("ranks", counted("profile.ranks", rank_count));
  Text lead = words("profile.lead", args);
  add_span_parts(f, account, h);
  const SpanPart* worst = nullptr;
  for (const SpanPart& p : h.parts)
    if (p.id != "compute" && (!worst || p.share > worst->share)) worst = &p;
  if (worst && worst->share >= kNamedShare)
    lead += words("profile.lead.worst", Args().set("part", worst->label).set("share", percent(worst->share)));
  if (rank_count == 1) lead += words("profile.lead.one_rank");
  say(h, words("profile.title", args), lead);
  return h;
}

void warn_of_runs(const Trace& trace, Headline& h) {
  if (trace.diagnostics.count("kineto.truncated") > 0)
    h.title = words("profile.title.cut_off", Args().set("title", h.title));
  if (trace.diagnostics.count("kineto.far_apart") > 0)
    h.lead = words("profile.lead.far_apart", Args().set("lead", h.lead));
}

}  // namespace stageline
