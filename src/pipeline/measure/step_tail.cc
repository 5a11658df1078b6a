#include "pipeline/measure/step_tail.h"

#include "model/intervals.h"

namespace stageline {
namespace {

struct Work {
  int64_t start_ns, end_ns;
  TailPart part;
};

TailPart part_of(CellKind kind) {
  return kind == CellKind::kOptimizer    ? TailPart::kOptimizer
         : kind == CellKind::kCollective ? TailPart::kCollectives
                                         : TailPart::kOther;
}

// Time in [from, to) that is covered by works whose part is `last` or stands before it in TailPart; `works` are sorted
// by start.
double covered_ns(const std::vector<Work>& works, int64_t from, int64_t to, TailPart last) {
  double sum = 0;
  int64_t covered = from;
  for (const Work& work : works) {
    if (work.part > last) continue;
    const int64_t start = std::max(work.start_ns, covered), end = std::min(work.end_ns, to);
    if (end <= start) continue;
    sum += between_ns(start, end);
    covered = end;
  }
  return sum;
}

}  // namespace

std::string_view tail_part_name(TailPart part) {
  static constexpr auto kNames =
      texts_by<TailPart::kIdle>({"waiting for other replicas", "collectives", "optimizer", "other work", "idle"});
  return kNames[part];
}

StepTail step_tail(const Trace& trace, const RankLists& lists, size_t first, size_t last, const StepSums& step,
                   int64_t start_ns, int64_t end_ns) {
  StepTail tail;
  const Cells& cells = trace.cells;
  std::vector<Work> works;
  for (size_t l = first; l < last; ++l) {
    const RankList& list = lists.lists[l];
    const auto same = [&](size_t i) { return cells.step[i] == list.step && cells.part[i] == list.part; };
    size_t begin = lists.cell[list.begin], end = begin + 1;
    while (begin > 0 && same(begin - 1)) --begin;
    while (end < cells.size() && same(end)) ++end;
    Span work;
    for (size_t i = begin; i < end; ++i) {
      if (is_message(cells.kind[i])) continue;
      work.add(cells.start_ns[i], cells.end_ns[i]);
      if (is_compute(cells.kind[i])) continue;
      const int64_t from = trace.common_ns(list.part, cells.start_ns[i]),
                    to = trace.common_ns(list.part, cells.end_ns[i]);
      if (from < start_ns || to > end_ns) works.push_back({from, to, part_of(cells.kind[i])});
    }
    tail.longest_ns = std::max<double>(tail.longest_ns, work.length_ns());
  }
  sort_stably(works, {}, &Work::start_ns);
  const int64_t others_end = std::clamp(step.pipeline_end_ns, end_ns, std::max(end_ns, step.end_ns));
  tail.part_ns[TailPart::kReplicas] = between_ns(end_ns, others_end);
  double before = 0;
  for (const TailPart part : {TailPart::kCollectives, TailPart::kOptimizer, TailPart::kOther}) {
    const double so_far =
        covered_ns(works, step.start_ns, start_ns, part) + covered_ns(works, others_end, step.end_ns, part);
    tail.part_ns[part] = so_far - before;
    before = so_far;
  }
  tail.part_ns[TailPart::kIdle] =
      between_ns(step.start_ns, start_ns) + static_cast<double>(between_ns(others_end, step.end_ns)) - before;
  return tail;
}

}  // namespace stageline
