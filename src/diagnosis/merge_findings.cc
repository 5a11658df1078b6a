#include "diagnosis/explain.h"
#include "diagnosis/profile/profile_findings.h"
#include "profile/flight_match.h"

namespace stageline {
namespace {

double share_of_parts(const Headline& headline, std::string_view prefix) {
  return sum_over<double>(headline.parts,
                          [&](const SpanPart& part) { return part.id.starts_with(prefix) ? part.share : 0; });
}

// Returns the waiting of ranks within the pipeline, for any reason.
double waiting_share(const Headline& headline) {
  double share = 0;
  for (const char* cause : {"bubble", "waiting", "imbalance", "jitter", "message", "rest"})
    share += share_of_parts(headline, cause);
  return share;
}

// Returns true when a finding is about idle time that may be waiting for a message, since the host sits in it as well.
// Waits for input, garbage collection and memory never are.
bool is_idle(const Finding& x) {
  return x.id == "device.idle" || x.id == "host.sync" || x.id == "host.busy" || x.id == "host.blocked" ||
         x.id == "host.collective" || x.id == "launch.bound";
}

// While a rank waits for a message, its device is idle or runs a receive kernel. So if the pipeline's waits are at
// least half of idle time and exposed communication together, these are taken to be such waits.
void explain_by_bubble(Findings& pipeline, Findings& devices) {
  Finding* bubble = find_finding(pipeline.list, "bubble");
  if (!bubble) bubble = find_finding(pipeline.others, "bubble");
  const double idle = share_of_parts(devices.headline, "idle"), exposed = share_of_parts(devices.headline, "comm");
  if (!bubble || waiting_share(pipeline.headline) < 0.5 * (idle + exposed)) return;
  const bool says_idle = std::ranges::any_of(devices.list, is_idle),
             says_comm = has_finding(devices.list, "comm.exposed");
  if (!says_idle && !says_comm) return;
  std::erase_if(devices.list, [](const Finding& x) { return is_idle(x) || x.id == "comm.exposed"; });
  Args args;
  args.set("idle", percent(idle)).set("exposed", percent(exposed));
  bubble->detail += words(!says_comm   ? "finding.bubble.idle"
                          : !says_idle ? "finding.bubble.exposed"
                                       : "finding.bubble.both",
                          args);
}

}  // namespace

Findings merge_findings(Findings pipeline, Findings devices) {
  explain_by_bubble(pipeline, devices);
  Headline& of_devices = devices.headline;
  (of_devices.host_alone ? pipeline.headline.host_parts : pipeline.headline.device_parts) = of_devices.parts;
  // Stages have different work, so ranks are compared within their stage; the pipeline's findings do that.
  const auto of_pipeline = [&](const Finding& x) {
    return x.id == "none" || x.id == "rank.late" || x.id == "rank.slow" || x.id == "step.outlier" ||
           has_finding(pipeline.list, x.id);
  };
  std::erase_if(devices.list, of_pipeline);
  if (!devices.list.empty()) std::erase_if(pipeline.list, [](const Finding& x) { return x.id == "none"; });
  for (Finding& finding : devices.list) pipeline.list.push_back(std::move(finding));
  by_weight(pipeline.list);
  return pipeline;
}

bool is_profile(const Trace& trace) {
  return std::ranges::any_of(trace.parts,
                             [](const Part& part) { return part.event_count > 0 && part.slices.has_facts(); });
}

Findings findings_of(const Run& run) {
  const Trace& trace = run.trace();
  if (has_flight_calls(trace)) return flight_findings(run);
  if (has_allocators(trace)) return allocator_findings(run);
  if (!is_profile(trace)) return find_findings(run);
  Findings of_slices = profile_findings(run);
  if (trace.cells.size() == 0) return of_slices;
  return merge_findings(find_findings(run), std::move(of_slices));
}

}  // namespace stageline
