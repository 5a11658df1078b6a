#include "diagnosis/causes/rank_windows.h"

#include "model/message_names.h"
#include "model/row_names.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

constexpr double kMinFilled = 0.5;  // share of the windows' time, and of a window

class Windows {
 public:
  explicit Windows(std::vector<RankWindow> windows) : all_(std::move(windows)) {
    sort_stably(all_, {}, [](const RankWindow& a) { return std::pair(a.part, a.from_ns); });
    for (const RankWindow& window : all_) ns_ += length(window);
  }

  static double length(const RankWindow& window) { return window.to_ns - window.from_ns; }
  const std::vector<RankWindow>& all() const { return all_; }
  // Calls body(number of the window, ns of it) for windows of the part that a row lies in.
  template <class Body> void under(int32_t part, int64_t start_ns, int64_t end_ns, Body body) const {
    auto at = std::ranges::partition_point(
        all_, [&](const RankWindow& w) { return w.part < part || (w.part == part && w.to_ns <= start_ns); });
    for (; at != all_.end() && at->part == part && at->from_ns < end_ns; ++at)
      body(static_cast<size_t>(at - all_.begin()),
           static_cast<double>(std::min(at->to_ns, end_ns) - std::max(at->from_ns, start_ns)));
  }
  template <class Name> std::string max(const std::map<Name, double>& filled_ns) const {
    for (const auto& [name, ns] : filled_ns)
      if (ns >= kMinFilled * ns_) return std::string(name);
    return {};
  }

 private:
  std::vector<RankWindow> all_;
  double ns_ = 0;
};

// The innermost slice of the host in each window that is about as long as the window: what is longer holds other work
// as well.
std::string call_that_fills(const Trace& trace, const Windows& windows) {
  struct Inner {
    const Part* part = nullptr;
    uint32_t slice = 0;
    int64_t dur_ns = INT64_MAX;
    double ns = 0;
  };
  std::vector<Inner> inner(windows.all().size());
  for (size_t w = 0; w < inner.size(); ++w) {
    const int32_t p = windows.all()[w].part;
    if (w > 0 && windows.all()[w - 1].part == p) continue;
    const Part& part = trace.parts[p];
    const Slices& s = part.slices;
    if (!s.has_facts()) continue;
    for (const Lane& lane : part.lanes)
      for (size_t i = lane.begin; lane.kind != LaneKind::kDeviceStream && i < lane.end; ++i)
        windows.under(p, s.start_ns[i], s.end_ns(i), [&](size_t at, double ns) {
          const double window = Windows::length(windows.all()[at]);
          const int64_t dur = s.end_ns(i) - s.start_ns[i];
          if (ns < kMinFilled * window || kMinFilled * dur > window || dur > inner[at].dur_ns ||
              is_communication_call(trace.names.text(s.name_id[i])))
            return;
          inner[at] = {&part, static_cast<uint32_t>(i), dur, ns};
        });
  }
  std::map<std::string, double> filled_ns;
  for (const Inner& one : inner)
    if (one.part) filled_ns[name_with_line(trace, *one.part, one.slice)] += one.ns;
  return windows.max(filled_ns);
}

}  // namespace

std::string name_that_fills(const Trace& trace, std::vector<RankWindow> of) {
  const Windows windows(std::move(of));
  if (windows.all().empty()) return {};
  const Cells& cells = trace.cells;
  std::map<std::string_view, double> filled_ns;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.kind[i] == CellKind::kOther)
      windows.under(cells.part[i], cells.start_ns[i], cells.end_ns[i],
                    [&](size_t, double ns) { filled_ns[phase_name(trace.slice_name(cells.at(i)))] += ns; });
  std::string name = windows.max(filled_ns);
  return name.empty() ? call_that_fills(trace, windows) : name;
}

}  // namespace stageline
