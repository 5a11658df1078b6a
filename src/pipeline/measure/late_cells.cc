#include "pipeline/measure/late_cells.h"

#include "base/parallel.h"
#include "model/lanes.h"

namespace stageline {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Finds message cells by (step, part, kind, micro-batch, chunk).
class Messages {
 public:
  explicit Messages(const Cells& cells) : cells_(cells) {
    for (uint32_t i = 0; i < cells.size(); ++i)
      if (is_message(cells.kind[i]) && cells.micro_batch[i] != kUnknown) rows_.push_back(i);
    std::ranges::sort(rows_, {}, [&](uint32_t a) { return std::tuple(key(a), cells.end_ns[a], a); });
  }

  // End of the last message of this kind for the cell's work that ended by `by_ns`; INT64_MIN when there is none. A
  // message with an unknown chunk matches every chunk.
  int64_t end(const Cell& of, CellKind kind, int64_t by_ns) const {
    int64_t best = INT64_MIN;
    for (const int32_t chunk : {of.chunk, kUnknown}) {
      const Key wanted{of.step, of.part, kind, of.micro_batch, chunk};
      auto at = std::lower_bound(rows_.begin(), rows_.end(), wanted,
                                 [&](uint32_t row, const Key& k) { return key(row) < k; });
      const auto last = std::upper_bound(at, rows_.end(), std::pair(wanted, by_ns), [&](const auto& k, uint32_t row) {
        return k < std::pair(key(row), cells_.end_ns[row]);
      });
      if (last != at) best = std::max(best, cells_.end_ns[*(last - 1)]);
    }
    return best;
  }
  bool empty() const { return rows_.empty(); }

 private:
  using Key = std::tuple<int32_t, int32_t, CellKind, int32_t, int32_t>;
  Key key(uint32_t i) const {
    return {cells_.step[i], cells_.part[i], cells_.kind[i], cells_.micro_batch[i], cells_.chunk[i]};
  }
  const Cells& cells_;
  std::vector<uint32_t> rows_;
};

// Marks names of operators that a host thread sits in while torch communicates, and torch's mark for a receive under
// way.
std::vector<bool> waiting_names(const Trace& trace) {
  std::vector<bool> waiting(trace.names.size());
  for (StringId id = 0; id < waiting.size(); ++id)
    waiting[id] = trace.names.text(id).starts_with("c10d::") || trace.names.text(id) == "gloo:recv";
  return waiting;
}

// The time that a thread or stream of a rank was inside sends and receives: the union of these times for each (part,
// lane), with running sums. They are the message cells. On host threads of ranks without device work, which do nothing
// else meanwhile, torch's own communication counts too. So does the part of a cell's range before its first operator,
// because the cell waits there for its input. A message during which its own lane begins to compute is in flight: it
// blocks nothing.
class Blocked {
 public:
  Blocked(const Trace& trace, const Cells& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      if (const auto lane = lane_of_cell(trace, cells, i); is_compute(cells.kind[i]) && lane >= 0)
        computes_[{cells.part[i], lane}].push_back(cells.start_ns[i]);
    for (auto& [place, starts] : computes_) std::ranges::sort(starts);
    for (size_t i = 0; i < cells.size(); ++i)
      if (const auto lane = lane_of_cell(trace, cells, i); is_message(cells.kind[i]) && lane >= 0)
        add_blocking({cells.part[i], lane}, cells.start_ns[i], cells.end_ns[i]);
    std::vector<bool> waiting;
    for (uint32_t p = 0; p < trace.parts.size(); ++p) {
      const Part& part = trace.parts[p];
      if (!part.slices.has_facts() ||
          std::ranges::any_of(part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; }))
        continue;
      if (part.lanes.empty()) continue;
      if (waiting.empty()) waiting = waiting_names(trace);
      host_only_.insert(p);
      for (size_t l = 0; l < part.lanes.size(); ++l)
        for (size_t i = part.lanes[l].begin; i < part.lanes[l].end; ++i)
          if (waiting[part.slices.name_id[i]])
            add_blocking({static_cast<int32_t>(p), static_cast<int32_t>(l)},
                         trace.common_ns(p, part.slices.start_ns[i]), trace.common_ns(p, part.slices.end_ns(i)));
    }
    for (size_t i = 0; i < cells.size() && !host_only_.empty(); ++i) {
      if (!is_compute(cells.kind[i]) || !host_only_.contains(cells.part[i])) continue;
      const Part& part = trace.parts[cells.part[i]];
      const int32_t lane = lane_of_cell(trace, cells, i);
      if (lane < 0) continue;
      const int64_t begins = trace.common_ns(cells.part[i], part.slices.start_ns[cells.slice[i]]);
      if (begins < cells.start_ns[i]) by_lane_[{cells.part[i], lane}].push_back({begins, cells.start_ns[i], 0});
    }
    for (auto& [place, spans] : by_lane_) {
      std::ranges::sort(spans, {}, &Span::start_ns);
      size_t kept = 0;
      for (const Span& span : spans)
        if (kept > 0 && span.start_ns <= spans[kept - 1].end_ns)
          spans[kept - 1].end_ns = std::max(spans[kept - 1].end_ns, span.end_ns);
        else spans[kept++] = span;
      spans.resize(kept);
      int64_t sum = 0;
      for (Span& span : spans) span.before_ns = sum, sum = sum_or_limit(sum, span.end_ns - span.start_ns);
    }
  }
  bool empty() const { return by_lane_.empty(); }
  int64_t within(int32_t part, int32_t lane, int64_t from_ns, int64_t to_ns) const {
    const auto at = by_lane_.find({part, lane});
    if (at == by_lane_.end() || from_ns >= to_ns) return 0;
    return until(at->second, to_ns) - until(at->second, from_ns);
  }

 private:
  struct Span {
    int64_t start_ns, end_ns, before_ns;
  };
  using Place = std::pair<int32_t, int32_t>;  // part, lane

  static int32_t lane_of_cell(const Trace& trace, const Cells& cells, size_t i) {
    return static_cast<int32_t>(lane_of(trace.parts[cells.part[i]], cells.slice[i]));
  }
  void add_blocking(Place place, int64_t start_ns, int64_t end_ns) {
    const auto computes = computes_.find(place);
    if (computes != computes_.end()) {
      const auto next = std::ranges::upper_bound(computes->second, start_ns);
      if (next != computes->second.end() && *next < end_ns) return;
    }
    by_lane_[place].push_back({start_ns, end_ns, 0});
  }
  static int64_t until(const std::vector<Span>& spans, int64_t ns) {
    const auto after = std::ranges::upper_bound(spans, ns, {}, &Span::start_ns);
    if (after == spans.begin()) return 0;
    const Span& last = *(after - 1);
    return sum_or_limit(last.before_ns, std::min(ns, last.end_ns) - last.start_ns);
  }
  std::map<Place, std::vector<Span>> by_lane_;
  std::map<Place, std::vector<int64_t>> computes_;  // when compute cells begin
  std::set<int32_t> host_only_;
};

// When the host launched the kernel that a cell begins with; INT64_MIN when the trace does not say.
int64_t launched_at(const Part& part, int64_t start_ns) {
  const Slices& s = part.slices;
  if (!s.has_facts() || s.partner.empty()) return INT64_MIN;
  for (const Lane& lane : part.lanes) {
    if (lane.kind != LaneKind::kDeviceStream) continue;
    const auto from = s.start_ns.begin();
    auto at = std::lower_bound(from + lane.begin, from + lane.end, start_ns);
    for (size_t i = at - from; i < lane.end && s.start_ns[i] == start_ns; ++i)
      if (s.class_of(i) == KernelClass::kComputation && s.partner[i] != kNoSliceIndex) return s.start_ns[s.partner[i]];
  }
  return INT64_MIN;
}

// The wait of one cell (a token of a list), and the parts of its gap.
struct Wait {
  uint32_t token = kNone;  // an index into RankLists::tokens, of the same group
  bool on_rank = false;
  int64_t gap_ns = 0, message_ns = 0, launch_ns = 0, blocked_ns = 0;
  int64_t unexplained_ns() const { return gap_ns - message_ns - launch_ns - blocked_ns; }
};

void add_chain(const LateChain& own, LateChain& sum) {
  sum.steps += own.steps;
  sum.actual_ns += own.actual_ns;
  sum.theory_ns += own.theory_ns;
  sum.longer_ns += own.longer_ns;
  sum.message_ns += own.message_ns;
  sum.launch_ns += own.launch_ns;
  sum.blocked_ns += own.blocked_ns;
  sum.unexplained_ns += own.unexplained_ns;
  sum.slack_ns += own.slack_ns;
}

// Shared data of all steps and replicas. The references must outlive it.
struct Scene {
  Scene(const Trace& of, const TheoryRun& its)
      : trace(of), mapped(of.alignment == AlignState::kMapped ? std::optional(of.common_cells()) : std::nullopt),
        cells(mapped ? *mapped : of.cells), run(its), messages(cells), blocked(of, cells),
        position(list_positions(its.lists, of.parts.size())) {}

  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  const Trace& trace;
  std::optional<Cells> mapped;
  const Cells& cells;  // on common time
  const TheoryRun& run;
  Messages messages;
  Blocked blocked;
  std::vector<int32_t> position;
};

// The lists [first, last) of one step and replica, and its theory.
struct Group {
  size_t first, last;
  const TheoryStep* theory;
};
std::vector<Group> groups_of(const TheoryRun& run) {
  std::vector<Group> groups;
  size_t step = 0;
  for (size_t first = 0; first < run.lists.lists.size();) {
    const size_t last = run.lists.group_end(first);
    const RankList& list = run.lists.lists[first];
    // A group of which theory places no cell has no TheoryStep.
    while (step < run.theory.steps.size() &&
           std::pair(run.theory.steps[step].step, run.theory.steps[step].dp) < std::pair(list.step, list.dp))
      ++step;
    if (step < run.theory.steps.size() && run.theory.steps[step].step == list.step &&
        run.theory.steps[step].dp == list.dp)
      groups.push_back({first, last, &run.theory.steps[step]});
    first = last;
  }
  return groups;
}

// Adds what it finds to `out`; without `min_ns` only to its chain.
class Finder {
 public:
  Finder(const Scene& scene, std::optional<int64_t> min_ns, LateCells& out)
      : trace_(scene.trace), cells_(scene.cells), run_(scene.run), lists_(scene.run.lists), min_ns_(min_ns), out_(out),
        messages_(scene.messages), blocked_(scene.blocked), position_(scene.position) {
    if (min_ns_) out_.by_stage.resize(lists_.stages);
  }

  void look_at(const Group& one) { group(one.first, one.last, *one.theory); }

 private:
  int64_t start(size_t token) const { return cells_.start_ns[lists_.cell[token]]; }
  int64_t end(size_t token) const { return cells_.end_ns[lists_.cell[token]]; }
  bool paired(const RankList& list, size_t token) const {  // the F of an overlapped pair
    return lists_.tokens[token].fused && lists_.tokens[token].kind == CellKind::kForward && token + 1 < list.end &&
           lists_.tokens[token + 1].fused;
  }

  size_t slot(bool backward, int32_t vstage, int32_t micro_batch, int32_t position) const {
    return ((static_cast<size_t>(position) * 2 + (backward ? 1 : 0)) * micro_batches_ + micro_batch) * vstages_ +
           vstage;
  }
  // Slot of a token's own work or, with `by`, of the virtual stage that many further on; SIZE_MAX outside the schedule.
  size_t slot_of(const RankList& list, const WorkToken& t, bool backward, int32_t by) const {
    if (t.micro_batch < 0 || t.micro_batch >= micro_batches_ || t.chunk < 0 || t.chunk >= schedule_->sizes.chunks)
      return SIZE_MAX;
    const int32_t vstage = virtual_stage(*schedule_, list.stage, t.chunk) + by;
    if (vstage < 0 || vstage >= vstages_) return SIZE_MAX;
    // With two directions a virtual stage occurs twice, but its micro-batches differ, so slots do not collide.
    return slot(backward, vstage, t.micro_batch, position_[list.part]);
  }

  void group(size_t first, size_t last, const TheoryStep& theory) {
    const size_t begin = lists_.lists[first].begin, end_token = lists_.lists[last - 1].end;
    const TheorySize* size = nullptr;
    int32_t max_positions = 1;
    for (size_t l = first; l < last; ++l) {
      if (!size) size = run_.size(l);
      max_positions = std::max(max_positions, position_[lists_.lists[l].part] + 1);
    }
    if (!size) return;
    schedule_ = &size->schedule;
    vstages_ = virtual_stage_count(*schedule_);
    micro_batches_ = schedule_->sizes.micro_batches;
    const size_t slots = static_cast<size_t>(max_positions) * 2 * micro_batches_ * vstages_;
    done_.assign(slots <= (end_token - begin) * 64 + 4096 ? slots : 0, kNone);
    for (size_t l = first; l < last && !done_.empty(); ++l)
      for (uint32_t t = lists_.lists[l].begin; t < lists_.lists[l].end; ++t) {
        const WorkToken& token = lists_.tokens[t];
        if (token.kind == CellKind::kWeightGrad) continue;
        const size_t at = slot_of(lists_.lists[l], token, is_backward(token.kind), 0);
        if (at != SIZE_MAX) done_[at] = t;
      }
    waits_.assign(end_token - begin, {});
    base_ = begin;
    uint32_t latest = kNone;
    for (size_t l = first; l < last; ++l) {
      list_waits(lists_.lists[l], theory);
      for (uint32_t t = lists_.lists[l].begin; t < lists_.lists[l].end; ++t) {
        if (!run_.theory.has(lists_.cell[t])) continue;
        if (latest == kNone || end(t) > end(latest)) latest = t;
        if (min_ns_) judge(lists_.lists[l], t);
      }
    }
    const std::vector<int32_t>& outliers = run_.theory.outliers;
    if (latest != kNone && !std::ranges::binary_search(outliers, theory.step)) follow(latest, theory);
  }

  uint32_t producer_of(const RankList& list, const WorkToken& t) const {
    if (done_.empty()) return kNone;
    size_t at = SIZE_MAX;
    if (t.kind == CellKind::kForward) {
      at = slot_of(list, t, false, -1);
    } else if (t.kind == CellKind::kWeightGrad) {
      at = slot_of(list, t, true, 0);
    } else {
      at = slot_of(list, t, true, 1);
      if (at == SIZE_MAX) at = slot_of(list, t, false, 0);
    }
    return at == SIZE_MAX ? kNone : done_[at];
  }

  void list_waits(const RankList& list, const TheoryStep& theory) {
    uint32_t before = kNone;  // of the tokens so far, the one that ends last
    for (size_t t = list.begin; t < list.end; ++t) {
      const size_t halves = paired(list, t) ? 2 : 1;
      Wait wait{before, before != kNone};
      int64_t ready = before == kNone ? INT64_MIN : end(before);
      for (size_t h = t; h < t + halves; ++h) {
        const uint32_t producer = producer_of(list, lists_.tokens[h]);
        if (producer == kNone || (producer >= t && producer < t + halves) || end(producer) <= ready) continue;
        ready = end(producer);
        wait.token = producer;
        wait.on_rank = false;
      }
      if (wait.token == kNone) ready = theory.start_ns;
      int64_t starts = start(t);
      if (halves == 2) starts = std::min(starts, start(t + 1));
      wait.gap_ns = starts > ready ? sum_or_limit(starts, -ready) : 0;
      if (wait.gap_ns > 0) explain(list, t, halves, ready, starts, wait);
      for (size_t h = t; h < t + halves; ++h) {
        waits_[h - base_] = wait;
        if (before == kNone || end(h) >= end(before)) before = static_cast<uint32_t>(h);
      }
      t += halves - 1;
    }
  }

  // Splits a gap by what was recorded in it.
  void explain(const RankList& list, size_t token, size_t halves, int64_t ready, int64_t starts, Wait& wait) const {
    int64_t here = ready;
    for (size_t h = token; h < token + halves && !messages_.empty(); ++h) {
      const WorkToken& t = lists_.tokens[h];
      const uint32_t producer = producer_of(list, t);
      if (producer == kNone) continue;
      const Cell cell = cells_.at(lists_.cell[h]), from = cells_.at(lists_.cell[producer]);
      if (from.part == cell.part) continue;
      const bool forward = t.kind == CellKind::kForward;
      int64_t came = messages_.end(cell, forward ? CellKind::kRecvForward : CellKind::kRecvBackward, starts);
      if (came == INT64_MIN)
        came = messages_.end(from, forward ? CellKind::kSendForward : CellKind::kSendBackward, starts);
      here = std::max(here, came);
    }
    wait.message_ns = here - ready;
    // Slices are on the rank's own clock, so the cell's raw timestamp is needed.
    int64_t stamp = trace_.cells.start_ns[lists_.cell[token]];
    if (halves == 2) stamp = std::min(stamp, trace_.cells.start_ns[lists_.cell[token + 1]]);
    int64_t launched = launched_at(trace_.parts[list.part], stamp);
    if (launched != INT64_MIN) launched = trace_.common_ns(list.part, launched);
    if (launched > here) {
      wait.launch_ns = std::min(launched, starts) - here;
      here = std::min(launched, starts);
    }
    if (blocked_.empty()) return;
    const size_t row = lists_.cell[token];
    const auto lane = static_cast<int32_t>(lane_of(trace_.parts[list.part], cells_.slice[row]));
    wait.blocked_ns = std::min(starts - here, blocked_.within(list.part, lane, here, starts));
  }

  void judge(const RankList& list, size_t token) {
    const uint32_t row = lists_.cell[token];
    if (token > list.begin && lists_.cell[token - 1] == row) return;  // the other half of an F&B cell
    const int64_t late = sum_or_limit(cells_.start_ns[row], -run_.theory.start_ns[row]);
    if (late <= 0) return;
    const Wait& wait = waits_[token - base_];
    LateCell found{row,
                   wait.token == kNone ? kNone : lists_.cell[wait.token],
                   LateReason::kUnexplained,
                   late,
                   std::min(wait.gap_ns, late),
                   wait.message_ns,
                   wait.launch_ns,
                   wait.blocked_ns};
    int64_t longest = late - wait.gap_ns;  // how late it would be, had it started as soon as it could
    if (wait.token != kNone && longest > 0) found.reason = wait.on_rank ? LateReason::kRank : LateReason::kProducer;
    else longest = 0;
    const auto consider = [&](int64_t ns, LateReason reason) {
      if (ns <= longest) return;
      longest = ns;
      found.reason = reason;
    };
    consider(wait.message_ns, LateReason::kMessage);
    consider(wait.launch_ns, LateReason::kLaunch);
    consider(wait.blocked_ns, LateReason::kBlocked);
    consider(wait.unexplained_ns(), LateReason::kUnexplained);
    LateSum& sum = out_.by_stage[list.stage][found.reason];
    ++sum.count;
    sum.late_ns += late;
    sum.gap_ns += found.gap_ns;
    sum.max_ns = std::max(sum.max_ns, late);
    if (late < *min_ns_) return;
    ++out_.found;
    if (out_.cells.size() < kMaxLateCells) out_.cells.push_back(found);
  }

  // Follows the chain of waits from the last cell of a step back to its first.
  void follow(uint32_t latest, const TheoryStep& theory) {
    LateChain own;
    uint32_t at = latest;
    for (size_t hops = 0; hops <= waits_.size(); ++hops) {
      const uint32_t row = lists_.cell[at];
      if (run_.theory.has(row))
        own.longer_ns += cells_.dur_ns(row) - static_cast<double>(run_.theory.end_ns[row] - run_.theory.start_ns[row]);
      else own.longer_ns += cells_.dur_ns(row);
      const Wait& wait = waits_[at - base_];
      own.message_ns += wait.message_ns;
      own.launch_ns += wait.launch_ns;
      own.blocked_ns += wait.blocked_ns;
      own.unexplained_ns += wait.unexplained_ns();
      // The chain's beginning, or timestamps that contradict each other and would lead in circles.
      if (wait.token == kNone || start(wait.token) >= start(at)) break;
      at = wait.token;
    }
    own.steps = 1;
    own.actual_ns = theory.actual_end_ns - static_cast<double>(theory.actual_start_ns);
    own.theory_ns = theory.end_ns - static_cast<double>(theory.start_ns);
    own.slack_ns = own.longer_ns + own.message_ns + own.launch_ns + own.blocked_ns + own.unexplained_ns -
                   (own.actual_ns - own.theory_ns);
    add_chain(own, out_.chain);
  }

  const Trace& trace_;
  const Cells& cells_;
  const TheoryRun& run_;
  const RankLists& lists_;
  std::optional<int64_t> min_ns_;
  LateCells& out_;
  const Messages& messages_;
  const Blocked& blocked_;
  const std::vector<int32_t>& position_;
  // State of the group at hand.
  const Schedule* schedule_ = nullptr;
  int32_t vstages_ = 0, micro_batches_ = 0;
  size_t base_ = 0;
  std::vector<uint32_t> done_;
  std::vector<Wait> waits_;  // by token, counted from base_
};

}  // namespace

std::string_view late_reason_name(LateReason reason) {
  static constexpr auto kTexts =
      texts_by<LateReason::kUnexplained>({"producer", "rank", "message", "blocked", "launch", "unexplained"});
  return kTexts[reason];
}

LateCells late_cells(const Trace& trace, const TheoryRun& run, int64_t min_ns) {
  LateCells out;
  if (!run.theory.known() || run.theory.by_rank) return out;
  const Scene scene(trace, run);
  Finder finder(scene, min_ns, out);
  for (const Group& group : groups_of(run)) finder.look_at(group);
  return out;
}

LateChain late_chain(const Trace& trace, const TheoryRun& run) {
  LateChain sum;
  if (!run.theory.known() || run.theory.by_rank) return sum;
  const Scene scene(trace, run);
  const std::vector<Group> groups = groups_of(run);
  std::vector<LateChain> chains(groups.size());
  parallel_for(groups.size(), [&](size_t g) {
    LateCells own;
    Finder(scene, std::nullopt, own).look_at(groups[g]);
    chains[g] = own.chain;
  });
  for (const LateChain& chain : chains) add_chain(chain, sum);
  return sum;
}

}  // namespace stageline
