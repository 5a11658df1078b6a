// Figures of where the time of a step goes: the bars of explain, and what findings leave of them.
#include "engine/engine.h"
#include "engine/figures/figures.h"

namespace stageline::figures {
namespace {

// The bars of the devices' time: those of a profile, or the second bars of a pipeline in a profile.
const std::vector<SpanPart>& device_parts(const SharedRun& run, const Explanation& e) {
  static const std::vector<SpanPart> kNone;
  if (run->trace().cells.size() > 0) return e.headline.device_parts;
  return e.headline.host_alone ? kNone : e.parts;
}

// Time per rank and step of those bars whose id is one of `ids` or, for idle time, begins with one of them.
std::vector<Figure> device_time(const SharedRun& run, const char* name, const std::vector<std::string_view>& ids) {
  const Explanation& e = explained_run(*run);
  const std::vector<SpanPart>& parts = device_parts(run, e);
  if (parts.empty() || !(e.parts_of_ns > 0)) return {{.name = name, .why_unknown = words("figure.no_devices")}};
  double share = 0;
  for (const SpanPart& part : parts)
    if (std::ranges::any_of(
            ids, [&](std::string_view id) { return part.id == id || (id.ends_with('-') && part.id.starts_with(id)); }))
      share += part.share;
  return {{.name = name, .value = share * e.parts_of_ns}};
}

}  // namespace

std::vector<Figure> compute(const SharedRun& run) { return device_time(run, "compute", {"compute"}); }
std::vector<Figure> comm_exposed(const SharedRun& run) { return device_time(run, "comm_exposed", {"comm"}); }
std::vector<Figure> comm_wait(const SharedRun& run) { return device_time(run, "comm_wait", {"comm-wait"}); }
std::vector<Figure> copies_exposed(const SharedRun& run) { return device_time(run, "copies_exposed", {"memory"}); }
std::vector<Figure> idle(const SharedRun& run) { return device_time(run, "idle", {"idle", "idle-"}); }

std::vector<Figure> part(const SharedRun& run) {
  const Explanation& e = explained_run(*run);
  std::vector<Figure> out;
  for (const SpanPart& part : e.parts) {
    Figure figure{.name = "part." + part.id};
    if (e.parts_of_ns > 0) figure.value = part.share * e.parts_of_ns;
    else figure.why_unknown = words("figure.no_steps");
    out.push_back(std::move(figure));
  }
  return out;
}

std::vector<Figure> left(const SharedRun& run) {
  std::vector<Figure> out;
  for (const AccountPart& part : explained_run(*run).account.parts)
    out.push_back({.name = "left." + part.id + (part.name.empty() ? "" : "." + part.name), .value = part.ns});
  return out;
}

}  // namespace stageline::figures
