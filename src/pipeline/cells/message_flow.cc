#include "pipeline/cells/message_flow.h"

#include <algorithm>
#include <string_view>

#include "base/parallel.h"

namespace stageline {
namespace {

// Returns true for "c10d::send", "gloo:send" and "nccl:send 0->1".
bool is_send(std::string_view name) {
  const size_t colon = name.find(':');
  return name == "c10d::send" || (colon != std::string_view::npos && colon <= 8 && name.substr(colon + 1, 4) == "send");
}

// Returns when the host sent, by names and by arguments of collectives (for kernels: when they were launched).
std::vector<int64_t> send_times(const Trace& trace, const Part& part, const std::vector<uint8_t>& sends) {
  std::vector<int64_t> times;
  const Slices& s = part.slices;
  for (const Lane& lane : part.lanes)
    for (size_t i = lane.begin; lane.kind != LaneKind::kDeviceStream && i < lane.end; ++i)
      if (sends[s.name_id[i]] != 0) times.push_back(s.start_ns[i]);
  for (const CollectiveFact& fact : part.collectives) {
    if (trace.names.text(fact.name) != "send") continue;
    const uint32_t launch = s.has_facts() ? s.partner[fact.slice] : kNoSliceIndex;
    times.push_back(s.start_ns[launch != kNoSliceIndex ? launch : fact.slice]);
  }
  return times;
}

struct Sent {  // for one part: how many pieces of work there are, and how many of them a send follows
  int64_t forwards = 0, forwards_sent = 0, backwards = 0, backwards_sent = 0;
  bool sends_forward() const { return forwards > 0 && forwards_sent * 2 >= forwards; }
  bool sends_backward() const { return backwards > 0 && backwards_sent * 2 >= backwards; }
};

Sent sent_by(std::vector<CellMark> marks, const std::vector<int64_t>& times) {
  std::erase_if(marks, [](const CellMark& m) { return !is_compute(m.kind) || m.kind == CellKind::kWeightGrad; });
  std::ranges::stable_sort(marks, {}, &CellMark::start_ns);
  std::vector<bool> sent(marks.size(), false);
  for (const int64_t time : times) {
    const auto after = std::ranges::upper_bound(marks, time, {}, &CellMark::start_ns);
    if (after != marks.begin()) sent[after - marks.begin() - 1] = true;
  }
  Sent out;
  for (size_t m = 0; m < marks.size(); ++m) {
    const bool forward = marks[m].kind == CellKind::kForward;
    ++(forward ? out.forwards : out.backwards);
    (forward ? out.forwards_sent : out.backwards_sent) += sent[m] ? 1 : 0;
  }
  return out;
}

}  // namespace

bool sends_flow(const Trace& trace, const std::vector<CellMark>& marks) {
  std::vector<uint8_t> sends(trace.names.size());
  for (StringId name = 0; name < sends.size(); ++name) sends[name] = is_send(trace.names.text(name)) ? 1 : 0;
  std::vector<std::vector<CellMark>> own(trace.parts.size());
  for (const CellMark& mark : marks) own[mark.part].push_back(mark);
  std::vector<Sent> parts(own.size());
  parallel_for(own.size(), [&](size_t p) {
    if (!own[p].empty()) parts[p] = sent_by(std::move(own[p]), send_times(trace, trace.parts[p], sends));
  });
  bool has_backward = false, forward = false, backward = false, end = false, silent = false;
  for (const Sent& part : parts) {
    if (part.forwards + part.backwards == 0) continue;
    has_backward |= part.backwards > 0;
    forward |= part.sends_forward();
    backward |= part.sends_backward();
    end |= part.sends_forward() != part.sends_backward();
    silent |= !part.sends_forward() && !part.sends_backward();
  }
  return has_backward ? forward && backward && end && !silent : forward && silent;
}

}  // namespace stageline
