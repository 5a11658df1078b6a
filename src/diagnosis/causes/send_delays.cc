#include "diagnosis/causes/send_delays.h"

#include "model/intervals.h"
#include "model/run_extent.h"
#include "pipeline/replay/recorded_messages.h"

namespace stageline {

namespace {

// All that a rank did by its cells, or all that it computed, on its own clock.
std::map<int32_t, CoveredTime> busy_times(const Cells& cells, bool computing) {
  std::map<int32_t, std::vector<Interval>> of_part;
  for (size_t i = 0; i < cells.size(); ++i)
    if (computing ? is_compute(cells.kind[i]) : cells.kind[i] != CellKind::kOther)
      of_part[cells.part[i]].push_back({cells.start_ns[i], cells.end_ns[i]});
  std::map<int32_t, CoveredTime> busy;
  for (auto& [part, intervals] : of_part) busy.try_emplace(part, union_of(std::move(intervals)));
  return busy;
}

}  // namespace

LateSends::LateSends(const CauseScene& scene) {
  const StepGraph& g = scene.graph;
  const Cells& cells = scene.trace.cells;
  if (g.source != GraphSource::kComputeCells || !g.messages_recorded) return;
  const RecordedMessages recorded(scene.trace);
  const std::map<int32_t, CoveredTime> busy = busy_times(cells, false);
  // A host's receive ends when the host waits for it, which it does after its work, however early the message came.
  const std::map<int32_t, CoveredTime> working =
      of_hosts_alone(scene.trace) ? busy_times(cells, true) : std::map<int32_t, CoveredTime>();
  std::vector<LateSend> all;
  std::vector<double> times, work;
  for (size_t s = 0; s < g.steps.size(); ++s)
    for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op) {
      if (scene.counts[s] && is_compute(g.kind[op])) work.push_back(g.dur_ns[op]);
      if (!is_message(g.kind[op]) || g.cell[op] != kNoCell || g.waits(op).size() != 1) continue;
      const uint32_t cell = g.cell[g.waits(op).front()];
      if (cell == kNoCell) continue;
      const Cell made = cells.at(cell);
      const bool forward = g.kind[op] == CellKind::kRecvForward;
      const auto* row = recorded.sent({made.part, made.step, forward, std::max(made.chunk, 0), made.micro_batch});
      if (const auto* received =
              recorded.received({g.part[op], made.step, forward, std::max(g.chunk[op], 0), g.micro_batch[op]})) {
        const int64_t late = scene.trace.common_ns(g.part[op], received->start_ns) -
                             scene.trace.common_ns(made.part, row ? row->start_ns : made.end_ns);
        const int64_t from = received->start_ns + std::max<int64_t>(0, -late), length = received->end_ns - from;
        const auto own = working.find(g.part[op]);
        if (late > received->end_ns - received->start_ns ||
            (own != working.end() && 2 * own->second.within(from, received->end_ns) > length))
          hidden_.insert(op);
      }
      if (!row) continue;
      // Other work of the rank, and messages that its thread or stream was in, come before the send rightly.
      const int64_t idle = row->start_ns - made.end_ns - busy.at(made.part).within(made.end_ns, row->start_ns);
      all.push_back({op, s, made.part, cell, static_cast<double>(idle), row->start_ns});
      if (!scene.counts[s]) continue;
      times.push_back(idle);
      ++sent[made.part];
    }
  if (times.empty() || work.empty()) return;
  usual_ns = std::max(0.0, median_of(std::move(times)));
  const double min = kLateStart * median_of(std::move(work));
  std::map<std::pair<int32_t, size_t>, std::vector<Interval>> holes;  // by part and step
  for (LateSend& one : all) {
    one.ns = std::min(one.ns - usual_ns, g.dur_ns[one.op]);
    if (!(one.ns > min)) continue;
    late_[one.op] = one.ns;
    holes[{one.part, one.step}].push_back({one.sent_ns - static_cast<int64_t>(one.ns), one.sent_ns});
    if (scene.counts[one.step]) list.push_back(one);
  }
  for (auto& [at, intervals] : holes) {
    const CoveredTime late(union_of(std::move(intervals)));
    for (uint32_t op = g.steps[at.second].begin; op < g.steps[at.second].end; ++op) {
      if (g.part[op] != at.first || !is_compute(g.kind[op]) || g.cell[op] == kNoCell || !(g.delay_ns[op] > 0)) continue;
      const int64_t start = cells.start_ns[g.cell[op]];
      const int64_t held = late.within(start - static_cast<int64_t>(g.delay_ns[op]), start);
      if (held > 0) held_[op] = static_cast<double>(held);
    }
  }
}

}  // namespace stageline
