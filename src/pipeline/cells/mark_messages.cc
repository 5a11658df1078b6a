#include "base/parallel.h"
#include "pipeline/cells/marks.h"

namespace stageline {
namespace {

class PartMessageMarks {
 public:
  // `marks` are those of one part.
  PartMessageMarks(const Trace& trace, std::vector<CellMark> marks) : trace_(trace) {
    for (CellMark& mark : marks)
      if (is_compute(mark.kind) && mark.kind != CellKind::kWeightGrad && !mark.piece) work_.push_back(mark);
    sort_stably(work_, {}, &CellMark::start_ns);
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
  sort_stably(marks, {}, &CellMark::start_ns);
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

// The maximum distance of the operators of a kernel's messages before its launch, in slices.
constexpr uint32_t kFarthestBefore = 256;
// The maximum number of operators that are searched above a kernel: c10d::send, record_param_comms, nccl:coalesced …
constexpr int kFarthestOwner = 8;

// Returns the arguments of the collective: the kernel's own, else those of an operator around its launch.
const CollectiveFact* collective_of(const Part& part, uint32_t kernel) {
  const Slices& s = part.slices;
  if (const CollectiveFact* own = fact_of(part.collectives, kernel)) return own;
  uint32_t at = s.parent[kernel] != kNoSliceIndex ? s.parent[kernel] : s.partner[kernel];
  for (int up = 0; up < kFarthestOwner && at != kNoSliceIndex; ++up, at = s.parent[at])
    if (const CollectiveFact* fact = fact_of(part.collectives, at)) return fact;
  return nullptr;
}

int32_t stage_of_rank(const Trace& trace, int64_t rank) {
  const auto at = std::ranges::lower_bound(trace.parts, rank, {}, &Part::rank);
  return at != trace.parts.end() && at->rank == rank ? at->stage : kUnknown;
}

MessageKind kind_of(const Trace& trace, const Part& part, const CollectiveFact* fact, std::string_view name,
                    const CellMark* around, int32_t chunks) {
  const bool send = fact != nullptr && name == "send";
  const bool receive = fact != nullptr && (name == "recv" || name == "receive");  // HCCL's word is the second
  if (!send && !receive) {
    // SendRecv kernels also run all-to-all, so without arguments a kernel of this name may be either.
    const bool either = name == "batchSendRecv" || (fact == nullptr && name.find("SendRecv") != std::string_view::npos);
    return {CellKind::kCollective, !either && name != "wait" && name != "coalesced"};
  }
  const auto directed = [&](bool forward) {
    return MessageKind{send ? (forward ? CellKind::kSendForward : CellKind::kSendBackward)
                            : (forward ? CellKind::kRecvForward : CellKind::kRecvBackward),
                       true};
  };
  if (around != nullptr && is_compute(around->kind) && around->kind != CellKind::kForwardBackward)
    return directed(around->kind == CellKind::kForward);
  const int32_t peer = stage_of_rank(trace, send ? fact->dst_rank : fact->src_rank);
  if (peer == kUnknown || part.stage == kUnknown || peer == part.stage) return {};
  const bool wraps = chunks > 1 && std::abs(peer - part.stage) == trace.pipeline_stages - 1;
  if (wraps && trace.pipeline_stages == 2) return {};  // the next stage is also the previous one
  const bool to_later = wraps ? peer < part.stage : peer > part.stage;
  return directed(send == to_later);
}

// Returns sends and receives that were batched (batch_isend_irecv). Their operators stand right before the
// "nccl:coalesced" that launched one kernel for all of them.
std::vector<const CollectiveFact*> coalesced(const Trace& trace, const Part& part, uint32_t kernel) {
  const Slices& s = part.slices;
  uint32_t at = s.parent[kernel] != kNoSliceIndex ? s.parent[kernel] : s.partner[kernel];
  for (int up = 0; up < kFarthestOwner && at != kNoSliceIndex; ++up, at = s.parent[at])
    if (trace.names.text(s.name_id[at]).ends_with(":coalesced")) break;
  std::vector<const CollectiveFact*> found;
  if (at == kNoSliceIndex || !trace.names.text(s.name_id[at]).ends_with(":coalesced")) return found;
  const auto lane = std::ranges::upper_bound(part.lanes, at, {}, &Lane::begin);
  const auto begin = static_cast<uint32_t>((lane - 1)->begin);
  for (uint32_t i = at; i-- > begin && at - i <= kFarthestBefore;) {
    const std::string_view name = trace.names.text(s.name_id[i]);
    if (!name.starts_with("c10d::") && !name.starts_with("nccl:") && name != "record_param_comms") break;
    if (name.ends_with(":coalesced")) break;
    const CollectiveFact* fact = fact_of(part.collectives, i);
    if (fact == nullptr) continue;
    const std::string_view what = trace.names.text(fact->name);
    if (what == "send" || what == "recv") found.push_back(fact);
  }
  std::ranges::reverse(found);
  return found;
}

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

std::vector<MessageKind> message_kinds(const Trace& trace, size_t part_index, uint32_t kernel, const CellMark* around,
                                       int32_t chunks) {
  const Part& part = trace.parts[part_index];
  const CollectiveFact* fact = collective_of(part, kernel);
  const std::string_view name = trace.names.text(fact != nullptr ? fact->name : part.slices.name_id[kernel]);
  std::vector<MessageKind> kinds;
  if (fact == nullptr || name == "coalesced")
    for (const CollectiveFact* one : coalesced(trace, part, kernel)) {
      // Messages of both directions may share the kernel, so the peer is asked first and the work around it second.
      MessageKind kind = kind_of(trace, part, one, trace.names.text(one->name), nullptr, chunks);
      if (!kind.known) kind = kind_of(trace, part, one, trace.names.text(one->name), around, chunks);
      const auto same = [&](const MessageKind& k) { return k.kind == kind.kind; };
      if (kind.known && std::ranges::none_of(kinds, same)) kinds.push_back(kind);
    }
  if (kinds.empty()) kinds.push_back(kind_of(trace, part, fact, name, around, chunks));
  return kinds;
}

}  // namespace stageline
