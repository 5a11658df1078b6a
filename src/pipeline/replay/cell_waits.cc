// Finds the waits of jobs that recorded compute cells, and perhaps collectives, but no reliable messages. They are the
// order of every rank, trace.links between stages, and a separate message between two ranks. If receives were recorded
// next to the compute cells, the message lasts until its own one ended, else as messages between these two stages in
// this direction usually do.
//
// A collective that starts while a cell of its rank runs, as a reduction behind the last backward does, is launched by
// that cell. It has the same waits as the cell, and later operations wait for both.
//
//     cells        ▐▐▐▐ B6 ▐▐▐▐        ▐▐▐▐▐▐ B7 ▐▐▐▐▐▐
//     message                  ├──────▶│
//     reduction                        │← delay →├───────────────┤  optimizer
//
// A cell in which ranks meet (peer_cells.h) takes its own work alone. Behind it comes the meeting of all these
// ranks, a group that begins when the last of them has done its work, and later operations wait for that.
#include "base/parallel.h"
#include "base/spares.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/cells/problems.h"
#include "pipeline/replay/peer_cells.h"
#include "pipeline/replay/problems.h"
#include "pipeline/replay/recorded_messages.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {
namespace {

bool takes_part(CellKind kind) {
  return is_compute(kind) || kind == CellKind::kOptimizer || kind == CellKind::kCollective;
}

// (stage it leaves, stage it reaches, forward): messages with the same key share a latency.
using Edge = std::tuple<int32_t, int32_t, bool>;

class CellWaits {
 public:
  explicit CellWaits(const Trace& trace)
      : trace_(trace), cells_(trace.cells), recorded_(trace), inner_(find_inner_meetings(trace)),
        same_ns_(same_moment_ns(trace)) {
    for (const StepRange& range : step_ranges(cells_))
      if (range.step != kUnknown &&
          std::any_of(cells_.kind.begin() + range.begin, cells_.kind.begin() + range.end, takes_part))
        steps_.emplace_back().range = range;
    // A half of an overlapped pair shares its device with the other half: its time says nothing of such work alone.
    pairs_ = overlapped_pairs(cells_);
    if (std::ranges::all_of(pairs_, [](uint32_t pair) { return pair == kNoPair; }))
      std::vector<uint32_t>().swap(pairs_);  // of a large run it takes as much as a column of the graph
    op_of_.assign(cells_.size(), kNoCell);
    share_links();
    find_busy();
    Spares<StepDraft> drafts;
    parallel_for(steps_.size(), [&](size_t s) { scan_step(steps_[s], *Spares<StepDraft>::Lent(drafts)); });
    number_types();
    measure_latencies();
    check_recorded_messages();
  }

  const std::vector<GraphType>& types() const { return types_; }
  bool messages_recorded() const { return messages_recorded_; }
  bool grouped() const { return std::ranges::find(cells_.kind, CellKind::kCollective) != cells_.kind.end(); }
  std::vector<uint32_t> op_counts() const {
    return mapped<uint32_t>(steps_, [&](const Step& step) {
      return static_cast<uint32_t>(step.previous.size()) + step.messages + step.meetings + (step.together ? 1 : 0);
    });
  }

  void draft(size_t s, StepDraft& draft) const {
    const Step& step = steps_[s];
    draft.step = step.range.step;
    draft.ops.reserve(step.previous.size() + step.messages + 1);
    draft.waits.reserve(step.previous.size() + 2 * size_t{step.messages});
    take_cells(step, draft);
    for (uint32_t k = 0; k < step.previous.size(); ++k)
      if (step.previous[k] != kNothing) draft.wait(k, step.previous[k]);
    for (const auto& [op, cell] : step.after) draft.wait(op, cell);
    add_messages(step, draft);
    group_collectives(draft);
    if (step.together) gradients_together(draft, gradients_, same_ns_);
    if (step.meetings > 0) add_meetings(draft);
  }

 private:
  static constexpr uint32_t kNothing = UINT32_MAX;  // an operation follows no other
  static constexpr size_t kTypes = 2 * size_t{kCellKindCount};
  static size_t type_index(CellKind kind, bool overlapped) {
    return (overlapped ? size_t{kCellKindCount} : 0) + static_cast<size_t>(kind);
  }

  struct Step {
    StepRange range;
    std::span<const Link> links;         // those that leave its cells
    std::vector<uint32_t> previous;      // by operation: the one of its rank that it follows
    std::vector<int64_t> busy_until_ns;  // by part: the end of its step before; empty: all of that was over
    std::vector<std::pair<uint32_t, uint32_t>>
        beside;  // (collective, cell of its rank that runs when it begins), by cell
    std::vector<std::pair<uint32_t, uint32_t>> after;  // (operation, cell that it follows in addition to `previous`)
    std::map<Edge, std::vector<int64_t>> gaps;
    std::vector<size_t> first_seen;  // types in the order of their first cells
    // Index of the first message forward, and of the first backward.
    std::array<size_t, 2> first_link{SIZE_MAX, SIZE_MAX};
    uint32_t messages = 0, meetings = 0;
    bool together = false;  // the result of gradients_together()
  };

  // Gives each step its links. If they are not ordered by the cell they leave, a sorted copy is made; also where ranks
  // are missing, which cells wait for all the same.
  void share_links() {
    const auto from = [](const Link& a, const Link& b) { return a.from_cell < b.from_cell; };
    over_missing_ = links_over_missing(trace_);
    links_ = trace_.links;
    if (!over_missing_.empty() || !std::ranges::is_sorted(links_, from)) {
      sorted_links_.assign(links_.begin(), links_.end());
      sorted_links_.insert(sorted_links_.end(), over_missing_.begin(), over_missing_.end());
      sort_stably(sorted_links_, from);
      links_ = sorted_links_;
    }
    const std::span<const Link> links = links_;
    std::ranges::sort(over_missing_, link_less);
    size_t at = 0;
    for (Step& step : steps_) {
      while (at < links.size() && cells_.step[links[at].from_cell] < step.range.step) ++at;
      const size_t first = at;
      at = std::partition_point(links.begin() + at, links.end(),
                                [&](const Link& link) { return cells_.step[link.from_cell] <= step.range.step; }) -
           links.begin();
      step.links = links.subspan(first, at - first);
    }
  }

  // Where no barrier ends a step, ranks begin the next one while others still work on theirs.
  void find_busy() {
    for (size_t s = 1; s < steps_.size(); ++s) {
      const StepRange &last = steps_[s - 1].range, &own = steps_[s].range;
      if (own.step != last.step + 1) continue;
      int64_t begins = INT64_MAX;
      for (size_t i = own.begin; i < own.end; ++i)
        if (takes_part(cells_.kind[i])) begins = std::min(begins, trace_.common_ns(cells_.part[i], cells_.start_ns[i]));
      for (size_t i = last.begin; i < last.end; ++i) {
        const int64_t end = takes_part(cells_.kind[i]) ? trace_.common_ns(cells_.part[i], cells_.end_ns[i]) : INT64_MIN;
        if (end <= begins + kSameNs) continue;
        std::vector<int64_t>& until = steps_[s].busy_until_ns;
        if (until.empty()) until.assign(trace_.parts.size(), INT64_MIN);
        until[cells_.part[i]] = std::max(until[cells_.part[i]], end);
      }
    }
  }

  static bool link_less(const Link& a, const Link& b) {
    return std::pair(a.from_cell, a.to_cell) < std::pair(b.from_cell, b.to_cell);
  }
  bool is_over_missing(const Link& link) const {
    return !over_missing_.empty() && std::ranges::binary_search(over_missing_, link, link_less);
  }

  bool overlapped(size_t cell) const { return !pairs_.empty() && pairs_[cell] != kNoPair; }

  void take_cells(const Step& step, StepDraft& draft) const {
    for (size_t i = step.range.begin; i < step.range.end; ++i) {
      const CellKind kind = cells_.kind[i];
      if (!takes_part(kind) || inner_.is_inside(i)) continue;
      const int32_t part = cells_.part[i];
      const int64_t start = trace_.common_ns(part, cells_.start_ns[i]);
      draft.ops.push_back({static_cast<uint32_t>(i), type_[type_index(kind, overlapped(i))], kind, part,
                           cells_.chunk[i], cells_.micro_batch[i], start,
                           std::max(start, trace_.common_ns(part, cells_.end_ns[i]))});
    }
  }

  // Finds out everything about a step that must be known before drafts are made.
  void scan_step(Step& step, StepDraft& draft) {
    draft.clear();
    draft.ops.reserve(step.range.end - step.range.begin);
    take_cells(step, draft);  // types are not known yet
    std::array<bool, kTypes> seen{};
    for (uint32_t k = 0; k < draft.ops.size(); ++k) {
      const DraftOp& op = draft.ops[k];
      op_of_[op.cell] = k;
      step.meetings += inner_.any() && inner_.meets_as[op.cell] != InnerMeetings::kNone;
      const size_t type = type_index(op.kind, overlapped(op.cell));
      if (!seen[type]) step.first_seen.push_back(type);
      seen[type] = true;
    }
    rank_order(draft, step.previous);
    find_beside(draft, step);
    std::array<std::pair<Edge, std::vector<int64_t>*>, 2> known{};  // by direction: the last one, mostly the same
    for (const Link& link : step.links) {
      if (!usable(link) || on_one_rank(link)) continue;
      const Edge own = edge_of(link);
      const size_t way = std::get<bool>(own) ? 0 : 1;
      size_t& first = step.first_link[way];
      if (first == SIZE_MAX) first = &link - links_.data();
      ++step.messages;
      const uint32_t to = op_of_[link.to_cell], previous = step.previous[to];
      const int64_t sent = draft.ops[op_of_[link.from_cell]].end_ns;
      if (previous != kNothing && draft.ops[previous].end_ns > sent) continue;
      if (previous == kNothing && !step.busy_until_ns.empty() && step.busy_until_ns[draft.ops[to].part] > sent)
        continue;
      if (!known[way].second || known[way].first != own) known[way] = {own, &step.gaps[own]};
      known[way].second->push_back(draft.ops[to].start_ns - sent);
    }
    draft.group.assign(draft.ops.size(), kNoGroup);
    step.together = gradients_together(draft, 0, same_ns_);
  }

  // Rounded timestamps overlap where work does not: seconds since 1970 in a double are exact to a quarter of a
  // microsecond, a table in milliseconds to one millisecond. So an operation counts as ended at the start of another if
  // it exceeds that start by at most kSameNs. A compute cell may exceed it by a tenth of its own length, because a
  // smaller delay of a start does not matter. No operation may exceed it by more than half of its length. It still
  // started first, so it never waits for the other.
  static int64_t surely_ended_ns(const DraftOp& o) {
    const int64_t dur = o.end_ns - o.start_ns;
    const int64_t rounded = is_compute(o.kind) ? std::max(kSameNs, dur / 10) : kSameNs;
    return o.end_ns - std::min(rounded, dur / 2);
  }

  // Each operation follows the one of its rank that ended last before it started; operations that overlap it run in
  // parallel.
  static void rank_order(const StepDraft& draft, std::vector<uint32_t>& previous) {
    previous.assign(draft.ops.size(), kNothing);
    std::vector<uint32_t> by_end;
    const auto ended = [&](uint32_t k) { return surely_ended_ns(draft.ops[k]); };
    for (uint32_t begin = 0; begin < draft.ops.size();) {
      uint32_t end = begin;
      bool in_order = true;
      for (; end < draft.ops.size() && draft.ops[end].part == draft.ops[begin].part; ++end)
        in_order = in_order && (end == begin || ended(end - 1) <= ended(end));
      by_end = indexes<uint32_t>(end - begin, begin);
      if (!in_order) sort_stably(by_end, {}, ended);
      size_t next = 0;
      for (uint32_t k = begin; k < end; ++k) {
        // The first of several cells without length at the same moment goes first.
        while (next < by_end.size() &&
               std::pair(ended(by_end[next]), by_end[next]) < std::pair(draft.ops[k].start_ns, k))
          ++next;
        if (next > 0) previous[k] = by_end[next - 1];
      }
      begin = end;
    }
  }

  static void find_beside(const StepDraft& draft, Step& step) {
    uint32_t cell = kNothing;  // the last compute cell that began on this rank
    for (uint32_t k = 0; k < draft.ops.size(); ++k) {
      const DraftOp& op = draft.ops[k];
      if (cell != kNothing && draft.ops[cell].part != op.part) cell = kNothing;
      const uint32_t previous = step.previous[k];
      if (cell != kNothing) {
        const int64_t end = draft.ops[cell].end_ns;
        // A collective that starts in the second half of a cell keeps its distance to the end of the cell.
        if (op.kind == CellKind::kCollective && surely_ended_ns(draft.ops[cell]) > op.start_ns)
          (end - op.start_ns < op.start_ns - draft.ops[cell].start_ns ? step.after : step.beside).emplace_back(k, cell);
        else if (previous != kNothing && previous != cell && !is_compute(draft.ops[previous].kind) &&
                 draft.ops[previous].start_ns < draft.ops[cell].end_ns && draft.ops[cell].end_ns <= op.start_ns)
          step.after.emplace_back(k, cell);
      }
      if (is_compute(op.kind)) cell = k;
    }
    sort_stably(step.beside, {}, [](const auto& of) { return of.second; });
  }

  // Returns true for a message between compute cells of one step. Steps are compared first, because operations of other
  // steps may not be known yet.
  bool usable(const Link& link) const {
    return cells_.step[link.from_cell] == cells_.step[link.to_cell] && op_of_[link.from_cell] != kNoCell &&
           op_of_[link.to_cell] != kNoCell && is_compute(cells_.kind[link.from_cell]) &&
           is_compute(cells_.kind[link.to_cell]);
  }
  bool on_one_rank(const Link& link) const { return cells_.part[link.from_cell] == cells_.part[link.to_cell]; }
  Edge edge_of(const Link& link) const {
    const Part &from = trace_.parts[cells_.part[link.from_cell]], &to = trace_.parts[cells_.part[link.to_cell]];
    const bool forward =
        cells_.kind[link.from_cell] == CellKind::kForward ||
        (cells_.kind[link.from_cell] == CellKind::kForwardBackward && cells_.kind[link.to_cell] == CellKind::kForward);
    return Edge{from.stage, to.stage, forward};
  }

  // Numbers types in the order in which cells have them, then messages.
  void number_types() {
    std::array<bool, kTypes> known{};
    const auto add = [&](CellKind kind, bool overlapped) {
      const size_t index = type_index(kind, overlapped);
      if (std::exchange(known[index], true)) return;
      type_[index] = static_cast<uint16_t>(types_.size());
      const std::string name = kind == CellKind::kRecvForward    ? "forward message"
                               : kind == CellKind::kRecvBackward ? "backward message"
                                                                 : std::string(kind_name(kind));
      types_.push_back({(overlapped ? "overlapped " : "") + name, kind,
                        is_message(kind) || kind == CellKind::kCollective, overlapped});
    };
    std::array<size_t, 2> first_link{SIZE_MAX, SIZE_MAX};
    bool together = false;
    for (const Step& step : steps_) {
      for (const size_t index : step.first_seen)
        add(static_cast<CellKind>(index % kCellKindCount), index >= size_t{kCellKindCount});
      for (size_t way = 0; way < 2; ++way) first_link[way] = std::min(first_link[way], step.first_link[way]);
      together |= step.together;
    }
    const bool backward_first = first_link[1] < first_link[0];
    for (const bool backward : {backward_first, !backward_first})
      if (first_link[backward ? 1 : 0] != SIZE_MAX)
        add(backward ? CellKind::kRecvBackward : CellKind::kRecvForward, false);
    gradients_ = static_cast<uint16_t>(types_.size());
    if (together) types_.push_back(gradients_type());
    meetings_ = static_cast<uint16_t>(types_.size());
    if (inner_.any()) types_.push_back({"meeting in cells", CellKind::kCollective, true, false, true});
  }

  // The smallest part of the gaps is transfer; the rest is a late rank. The lower quartile of the gaps of cells that
  // did wait for a message is the latency of its edge.
  void measure_latencies() {
    std::map<Edge, std::vector<int64_t>> gaps;
    for (Step& step : steps_) {
      for (const auto& [edge, own] : step.gaps) gaps[edge].insert(gaps[edge].end(), own.begin(), own.end());
      step.gaps.clear();
    }
    for (auto& [edge, list] : gaps)
      latency_[edge] = std::max<int64_t>(0, static_cast<int64_t>(percentile_of(list, 0.25)));
  }

  // Recorded messages are used where nearly every message was recorded, and received between its producer's end and its
  // receiver's start; otherwise two different measures would be mixed. They are not used where micro-batches were
  // numbered by a guess, since then a message of another micro-batch would be found.
  void check_recorded_messages() {
    constexpr double kNearlyAll = 0.9;
    if (!recorded_.any_received() || trace_.diagnostics.count(problem::cells_schedule.name) > 0) return;
    size_t messages = 0, found = 0;
    for (const Link& link : links_) {
      if (!usable(link) || on_one_rank(link) || is_over_missing(link)) continue;
      ++messages;
      const auto* received = recorded_.received(place_of(link, link.to_cell));
      if (!received) continue;
      const int32_t from = cells_.part[link.from_cell], to = cells_.part[link.to_cell];
      const int64_t end_ns = trace_.common_ns(to, received->end_ns);
      found += end_ns + kSameNs >= trace_.common_ns(from, cells_.end_ns[link.from_cell]) &&
               end_ns <= trace_.common_ns(to, cells_.start_ns[link.to_cell]) + kSameNs;
    }
    messages_recorded_ = messages > 0 && found >= kNearlyAll * messages;
  }
  MessagePlace place_of(const Link& link, uint32_t cell) const {
    return {cells_.part[cell], cells_.step[cell], std::get<bool>(edge_of(link)), std::max(cells_.chunk[cell], 0),
            cells_.micro_batch[cell]};
  }
  // Returns when a message began to be sent; its producer's end where no send was recorded.
  int64_t begun_ns(const Link& link, int64_t produced_ns) const {
    const auto* sent = recorded_.sent(place_of(link, link.from_cell));
    return sent ? std::max(produced_ns, trace_.common_ns(cells_.part[link.from_cell], sent->start_ns)) : produced_ns;
  }
  // Returns the time of a message: from the end of its producer to the end of its receive. If the receive was posted
  // after the send, that delay is subtracted, because a late receiver does not make a message slow. nullopt when the
  // receive was not recorded.
  std::optional<int64_t> recorded_ns(const Link& link, int64_t produced_ns) const {
    const auto* received = recorded_.received(place_of(link, link.to_cell));
    if (!received) return std::nullopt;
    const int64_t sent_ns = begun_ns(link, produced_ns);
    const int32_t to = cells_.part[link.to_cell];
    const int64_t posted_late_ns = std::max<int64_t>(0, trace_.common_ns(to, received->start_ns) - sent_ns);
    return std::max<int64_t>(0, trace_.common_ns(to, received->end_ns) - produced_ns - posted_late_ns);
  }

  void add_messages(const Step& step, StepDraft& draft) const {
    std::array<std::optional<std::pair<Edge, int64_t>>, 2> last;     // latencies, one for each direction
    std::map<std::tuple<int32_t, int32_t, bool>, uint32_t> on_link;  // the message before, by both ranks and direction
    for (const Link& link : step.links) {
      if (!usable(link)) continue;
      const uint32_t from = op_of_[link.from_cell], to = op_of_[link.to_cell];
      const auto beside = std::equal_range(step.beside.begin(), step.beside.end(), std::pair(0U, to),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const auto wait_on = [&](uint32_t on) {
        draft.wait(to, on);
        for (auto own = beside.first; own != beside.second; ++own) draft.wait(own->first, on);
      };
      if (on_one_rank(link)) {
        wait_on(from);
        continue;
      }
      const Edge edge = edge_of(link);
      auto& known = last[std::get<bool>(edge) ? 0 : 1];
      if (!known || known->first != edge) known.emplace(edge, value_at(latency_, edge));
      int64_t sent = draft.ops[from].end_ns;
      const bool recorded = messages_recorded_ && !is_over_missing(link);
      uint32_t queued = kNothing;  // the message that it waits for, as a link carries one after another
      if (recorded) {
        uint32_t& ahead =
            on_link.try_emplace({draft.ops[from].part, draft.ops[to].part, std::get<bool>(edge)}, kNothing)
                .first->second;
        const int64_t begun = begun_ns(link, sent);
        const bool behind = ahead == kNothing ? !step.busy_until_ns.empty()  // behind one of the step before
                                              : std::abs(begun - draft.ops[ahead].end_ns) <= kSameNs;
        if (behind && begun > sent + kSameNs) queued = ahead, sent = begun;
        ahead = static_cast<uint32_t>(draft.ops.size());
      }
      const int64_t usual = recorded ? recorded_ns(link, sent).value_or(known->second) : known->second;
      const int64_t took = std::clamp<int64_t>(draft.ops[to].start_ns - sent, 0, usual);
      const CellKind kind = std::get<bool>(edge) ? CellKind::kRecvForward : CellKind::kRecvBackward;
      const auto message = static_cast<uint32_t>(draft.ops.size());
      const DraftOp reached = draft.ops[to];
      draft.ops.push_back({kNoCell, type_[type_index(kind, false)], kind, reached.part, reached.chunk,
                           reached.micro_batch, sent, sent + took});
      draft.wait(message, from);
      if (queued != kNothing) draft.wait(message, queued);
      wait_on(message);
    }
  }

  // The k-th collectives of one name on the ranks of a stage are one collective over its replicas. All ranks must have
  // the same number of them, and no member may have ended before another started.
  void group_collectives(StepDraft& draft) const {
    draft.group.assign(draft.ops.size(), kNoGroup);
    std::map<std::tuple<int32_t, std::string_view>, std::map<int32_t, std::vector<uint32_t>>> lists;
    for (uint32_t k = 0; k < draft.ops.size(); ++k) {
      const DraftOp& o = draft.ops[k];
      if (o.kind != CellKind::kCollective || o.cell == kNoCell) continue;
      const int32_t stage = trace_.parts[o.part].stage;
      lists[{stage, trace_.slice_name(cells_.at(o.cell))}][o.part].push_back(k);
    }
    for (const auto& [key, by_part] : lists) {
      const size_t count = by_part.begin()->second.size();
      if (by_part.size() < 2 ||
          std::ranges::any_of(by_part, [&](const auto& entry) { return entry.second.size() != count; }))
        continue;
      for (size_t k = 0; k < count; ++k) {
        int64_t latest = INT64_MIN, first_end = INT64_MAX;
        for (const auto& [part, ops] : by_part) {
          latest = std::max(latest, draft.ops[ops[k]].start_ns);
          first_end = std::min(first_end, draft.ops[ops[k]].end_ns);
        }
        if (latest > first_end) continue;
        for (const auto& [part, ops] : by_part) draft.group[ops[k]] = draft.group_count;
        ++draft.group_count;
      }
    }
  }

  // Expects that the draft has everything else.
  void add_meetings(StepDraft& draft) const {
    std::map<uint32_t, uint32_t> groups;  // by InnerMeetings::meets_as
    std::vector<uint32_t> met(draft.ops.size(), kNothing);
    const auto count = static_cast<uint32_t>(draft.ops.size());
    draft.group.resize(count, kNoGroup);
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t cell = draft.ops[k].cell;
      if (cell == kNoCell || inner_.meets_as[cell] == InnerMeetings::kNone) continue;
      const auto [group, fresh] = groups.try_emplace(inner_.meets_as[cell], draft.group_count);
      draft.group_count += fresh;
      DraftOp& work = draft.ops[k];
      DraftOp meeting = work;
      work.end_ns = std::max(work.start_ns, work.end_ns - inner_.wait_ns[cell]);
      meeting.cell = inner_.last_row[cell];
      meeting.type = meetings_, meeting.kind = CellKind::kCollective, meeting.start_ns = work.end_ns;
      met[k] = static_cast<uint32_t>(draft.ops.size());
      draft.ops.push_back(meeting);
      draft.group.push_back(group->second);
    }
    for (auto& [op, on] : draft.waits)
      if (met[on] != kNothing) on = met[on];
    for (uint32_t k = 0; k < count; ++k)
      if (met[k] != kNothing) draft.wait(met[k], k);
  }

  const Trace& trace_;
  const Cells& cells_;
  RecordedMessages recorded_;
  const InnerMeetings inner_;
  const int64_t same_ns_;
  bool messages_recorded_ = false;
  std::vector<Step> steps_;         // those that have operations
  std::vector<Link> sorted_links_;  // used when the trace's links are not sorted, or ranks are missing
  std::vector<Link> over_missing_;  // of links_; ascending
  std::span<const Link> links_;
  // For each cell: overlapped_pairs(), and its operation within its step or kNoCell.
  std::vector<uint32_t> pairs_;  // empty: no cells are pairs
  std::vector<uint32_t> op_of_;
  std::array<uint16_t, kTypes> type_{};  // index: type_index()
  std::vector<GraphType> types_;
  uint16_t gradients_ = 0, meetings_ = 0;
  std::map<Edge, int64_t> latency_;
};

}  // namespace

StepDrafts draft_cells(const Trace& trace, Diagnostics& notes) {
  const auto waits = std::make_shared<const CellWaits>(trace);
  StepDrafts drafts{waits->types(), waits->grouped(), waits->messages_recorded(), waits->op_counts(),
                    [waits](size_t step, StepDraft& draft) { waits->draft(step, draft); }};
  if (!drafts.op_count.empty())
    notes.add(trace.links.empty()          ? problem::graph_from_cells
              : waits->messages_recorded() ? problem::graph_from_cells_messages
                                           : problem::graph_from_cells_gaps);
  return drafts;
}

}  // namespace stageline
