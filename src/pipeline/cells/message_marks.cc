#include "pipeline/cells/message_marks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stageline {
namespace {

class PartMessageMarks {
 public:
  // `marks` are those of one part.
  PartMessageMarks(const Trace& trace, std::vector<CellMark> marks) : trace_(trace) {
    for (CellMark& mark : marks)
      if (is_compute(mark.kind) && mark.kind != CellKind::kWeightGrad && !mark.piece) work_.push_back(mark);
    std::ranges::stable_sort(work_, {}, &CellMark::start_ns);
  }

  void find(const Part& part, StringId send, StringId receive, std::vector<CellMark>& out) {
    const Slices& s = part.slices;
    for (uint32_t l = 0; l < part.lanes.size(); ++l)
      for (size_t i = part.lanes[l].begin; i < part.lanes[l].end; ++i) {
        if (s.name_id[i] != send && s.name_id[i] != receive) continue;
        if (trace_.categories[s.category_id[i]].kind == Category::kCpuOp)
          take(s, static_cast<uint32_t>(i), l, s.name_id[i] == send);
      }
    for (const auto& [of, mark] : found_) out.push_back(mark);
  }

 private:
  void take(const Slices& s, uint32_t slice, uint32_t lane, bool is_send) {
    const int64_t start = s.start_ns[slice];
    const auto after =
        std::ranges::partition_point(work_, [&](const CellMark& work) { return work.start_ns <= start; });
    const bool inside = after != work_.begin() && start < (after - 1)->end_ns;
    if (is_send || inside ? after == work_.begin() : after == work_.end()) return;
    const CellMark& work = is_send || inside ? *(after - 1) : *after;
    CellMark mark = work;
    mark.lane = lane, mark.slice = slice;
    mark.start_ns = start, mark.end_ns = s.end_ns(slice);
    const bool forward = work.kind == CellKind::kForward;
    mark.kind = is_send ? (forward ? CellKind::kSendForward : CellKind::kSendBackward)
                        : (forward ? CellKind::kRecvForward : CellKind::kRecvBackward);
    const auto [known, fresh] = found_.try_emplace({&work - work_.data(), is_send}, mark);
    if (!fresh && (mark.start_ns < known->second.start_ns) == is_send) known->second = mark;
  }

  const Trace& trace_;
  std::vector<CellMark> work_;                            // in order of start
  std::map<std::pair<ptrdiff_t, bool>, CellMark> found_;  // key: index of work_, whether it is a send
};

}  // namespace

std::vector<CellMark> message_marks(const Trace& trace, const std::vector<CellMark>& marks) {
  std::vector<CellMark> out;
  const auto send = trace.names.find("c10d::send"), receive = trace.names.find("c10d::recv_");
  if (!send || !receive || std::ranges::any_of(marks, [](const CellMark& mark) { return is_message(mark.kind); }))
    return out;
  for (auto begin = marks.begin(); begin != marks.end();) {
    const auto end = std::find_if(begin, marks.end(), [&](const CellMark& m) { return m.part != begin->part; });
    const Part& part = trace.parts[begin->part];
    if (std::ranges::none_of(part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; }))
      PartMessageMarks(trace, {begin, end}).find(part, *send, *receive, out);
    begin = end;
  }
  return out;
}

}  // namespace stageline
