// Waits of jobs that recorded compute cells, and perhaps collectives, but no message that could be trusted: the order
// of every rank, trace.links between stages, and a message of its own between two ranks, which takes what messages
// between these two stages in this direction usually take.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/parallel.h"
#include "model/overlapped_pairs.h"
#include "model/stage_costs.h"
#include "pipeline/step_draft.h"

namespace stageline {
namespace {

bool takes_part(CellKind kind) {
  return is_compute(kind) || kind == CellKind::kOptimizer || kind == CellKind::kCollective;
}

// (stage it leaves, stage it reaches, forward): the classes that share a latency.
using Edge = std::tuple<int32_t, int32_t, bool>;

class CellWaits {
 public:
  CellWaits(const Trace& trace, std::vector<GraphType>& types) : trace_(trace), cells_(trace.cells), types_(types) {}

  std::vector<StepDraft> drafts() {
    take_cells();
    rank_order();
    messages();
    collectives();
    gradients_together(drafts_, types_);
    return std::move(drafts_);
  }

 private:
  struct Place {
    uint32_t draft = UINT32_MAX, op = 0;
  };
  DraftOp& op(const Place& at) { return drafts_[at.draft].ops[at.op]; }

  uint16_t type_of(CellKind kind, bool overlapped = false) {
    std::optional<uint16_t>& type = type_[overlapped ? 1 : 0][static_cast<size_t>(kind)];
    if (!type) {
      type = static_cast<uint16_t>(types_.size());
      const std::string name = kind == CellKind::kRecvForward    ? "forward message"
                               : kind == CellKind::kRecvBackward ? "backward message"
                                                                 : std::string(kind_name(kind));
      types_.push_back({(overlapped ? "overlapped " : "") + name, kind,
                        is_message(kind) || kind == CellKind::kCollective, overlapped});
    }
    return *type;
  }

  void take_cells() {
    place_.resize(cells_.size());
    // A half of an overlapped pair shares its device with the other half: its time says nothing of such work alone.
    const std::vector<uint32_t> pairs = overlapped_pairs(cells_);
    for (const StepRange& range : step_ranges(cells_)) {
      if (range.step == kUnknown) continue;
      StepDraft draft;
      draft.step = range.step;
      for (size_t i = range.begin; i < range.end; ++i) {
        if (!takes_part(cells_.kind[i])) continue;
        place_[i] = {static_cast<uint32_t>(drafts_.size()), static_cast<uint32_t>(draft.ops.size())};
        const int32_t part = cells_.part[i];
        const int64_t start = trace_.common_ns(part, cells_.start_ns[i]);
        draft.ops.push_back({static_cast<uint32_t>(i), type_of(cells_.kind[i], pairs[i] != kNoPair), cells_.kind[i],
                             part, cells_.chunk[i], cells_.micro_batch[i], start,
                             std::max(start, trace_.common_ns(part, cells_.end_ns[i]))});
      }
      if (!draft.ops.empty()) drafts_.push_back(std::move(draft));
    }
    before_end_.resize(drafts_.size());
  }

  // Each operation follows the one of its rank that ended last before it started; whatever overlaps it runs beside it.
  // Rounded stamps overlap where work does not: seconds since 1970 in a double are good to a quarter of a microsecond,
  // a table in milliseconds to one. What reaches over a start by no more than two stamps of one moment may differ by –
  // of compute also a tenth of its length, as no start is late by less –, and never by more than half of itself, has
  // ended there. It still began first, so nobody waits for what follows.
  static int64_t surely_ended_ns(const DraftOp& o) {
    const int64_t dur = o.end_ns - o.start_ns;
    const int64_t rounded = is_compute(o.kind) ? std::max(kSameNs, dur / 10) : kSameNs;
    return o.end_ns - std::min(rounded, dur / 2);
  }

  void rank_order() {
    parallel_for(drafts_.size(), [&](size_t d) {
      StepDraft& draft = drafts_[d];
      std::vector<int64_t>& before_end = before_end_[d];
      before_end.assign(draft.ops.size(), INT64_MIN);
      std::vector<uint32_t> by_end;
      for (uint32_t begin = 0; begin < draft.ops.size();) {
        uint32_t end = begin;
        while (end < draft.ops.size() && draft.ops[end].part == draft.ops[begin].part) ++end;
        by_end.resize(end - begin);
        std::iota(by_end.begin(), by_end.end(), begin);
        const auto ended = [&](uint32_t k) { return surely_ended_ns(draft.ops[k]); };
        std::stable_sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) { return ended(a) < ended(b); });
        size_t next = 0;
        for (uint32_t k = begin; k < end; ++k) {
          // Of cells without length at one moment, those that come first in order go first.
          while (next < by_end.size() &&
                 std::pair(ended(by_end[next]), by_end[next]) < std::pair(draft.ops[k].start_ns, k))
            ++next;
          if (next == 0) continue;
          const uint32_t before = by_end[next - 1];
          draft.wait(k, before);
          before_end[k] = draft.ops[before].end_ns;
        }
        begin = end;
      }
    });
  }

  static bool carries(CellKind kind) { return is_compute(kind); }

  // The smallest part of the gaps is transfer, the rest is somebody being late: the lower quartile of the gaps of those
  // that did wait for it stands for the class.
  void messages() {
    std::map<Edge, std::vector<int64_t>> gaps;
    const auto usable = [&](const Link& link) {
      const Place &from = place_[link.from_cell], &to = place_[link.to_cell];
      return from.draft != UINT32_MAX && from.draft == to.draft && carries(cells_.kind[link.from_cell]) &&
             carries(cells_.kind[link.to_cell]);
    };
    const auto edge_of = [&](const Link& link) {
      const Part &from = trace_.parts[static_cast<size_t>(cells_.part[link.from_cell])],
                 &to = trace_.parts[static_cast<size_t>(cells_.part[link.to_cell])];
      const bool forward = cells_.kind[link.from_cell] == CellKind::kForward ||
                           (cells_.kind[link.from_cell] == CellKind::kForwardBackward &&
                            cells_.kind[link.to_cell] == CellKind::kForward);
      return Edge{from.stage, to.stage, forward};
    };
    for (const Link& link : trace_.links) {
      if (!usable(link) || cells_.part[link.from_cell] == cells_.part[link.to_cell]) continue;
      const Place to = place_[link.to_cell];
      const int64_t sent = op(place_[link.from_cell]).end_ns;
      if (before_end_[to.draft][to.op] <= sent) gaps[edge_of(link)].push_back(op(to).start_ns - sent);
    }
    std::map<Edge, int64_t> latency;
    for (auto& [edge, list] : gaps) {
      std::sort(list.begin(), list.end());
      latency[edge] = std::max<int64_t>(0, static_cast<int64_t>(percentile_of_sorted(list, 0.25)));
    }
    for (const Link& link : trace_.links) {
      if (!usable(link)) continue;
      const Place from = place_[link.from_cell], to = place_[link.to_cell];
      StepDraft& draft = drafts_[to.draft];
      if (cells_.part[link.from_cell] == cells_.part[link.to_cell]) {
        draft.wait(to.op, from.op);
        continue;
      }
      const Edge edge = edge_of(link);
      const auto known = latency.find(edge);
      const int64_t sent = op(from).end_ns;
      const int64_t took = std::clamp<int64_t>(op(to).start_ns - sent, 0, known == latency.end() ? 0 : known->second);
      const CellKind kind = std::get<bool>(edge) ? CellKind::kRecvForward : CellKind::kRecvBackward;
      const auto message = static_cast<uint32_t>(draft.ops.size());
      const DraftOp& reached = op(to);
      draft.ops.push_back(
          {kNoCell, type_of(kind), kind, reached.part, reached.chunk, reached.micro_batch, sent, sent + took});
      draft.wait(message, from.op);
      draft.wait(to.op, message);
    }
  }

  // The k-th collective of a name on one stage is one over its replicas, where all have as many and no member had ended
  // before another began.
  void collectives() {
    parallel_for(drafts_.size(), [&](size_t d) {
      StepDraft& draft = drafts_[d];
      draft.group.assign(draft.ops.size(), kNoGroup);
      std::map<std::tuple<int32_t, std::string_view>, std::map<int32_t, std::vector<uint32_t>>> lists;
      for (uint32_t k = 0; k < draft.ops.size(); ++k) {
        const DraftOp& o = draft.ops[k];
        if (o.kind != CellKind::kCollective || o.cell == kNoCell) continue;
        const int32_t stage = trace_.parts[static_cast<size_t>(o.part)].stage;
        lists[{stage, trace_.slice_name(cells_.at(o.cell))}][o.part].push_back(k);
      }
      for (const auto& [key, by_part] : lists) {
        const size_t count = by_part.begin()->second.size();
        if (by_part.size() < 2 || std::any_of(by_part.begin(), by_part.end(),
                                              [&](const auto& entry) { return entry.second.size() != count; }))
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
    });
  }

  const Trace& trace_;
  const Cells& cells_;
  std::vector<GraphType>& types_;
  std::array<std::array<std::optional<uint16_t>, kCellKindCount>, 2> type_{};  // [overlapped][kind]
  std::vector<Place> place_;                                                   // by cell
  std::vector<std::vector<int64_t>> before_end_;  // by draft and operation: end of what its rank did before; INT64_MIN
  std::vector<StepDraft> drafts_;
};

}  // namespace

std::vector<StepDraft> draft_cells(const Trace& trace, std::vector<GraphType>& types, Diagnostics& notes) {
  std::vector<StepDraft> drafts = CellWaits(trace, types).drafts();
  if (!drafts.empty())
    notes.add("graph.from_cells", Severity::kInfo,
              trace.links.empty()
                  ? "no messages were recorded and nothing links the stages: each rank waits only for itself"
                  : "waits come from the order of every rank and of micro-batches over stages; a message takes the "
                    "lower quartile of the gaps between its two stages");
  return drafts;
}

}  // namespace stageline
