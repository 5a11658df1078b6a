// Places the theory and the phases on the chart.
//
//     ├ warm-up 47 ms ─┼──── steady 283 ms ────┼ cool-down 90 ms ┤    over all ranks, under the step bars
//     █0█1█2█▾▒▒▒▒█ 0 █3█▒ …                                          ▾ where the rank's own phases change
//     ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁                                             the ghost of what the schedule promises
#include "exporters/chart/chart_layout.h"

namespace stageline {
namespace {

constexpr double kMinGhostCell = 3;  // mean width of a cell; kAuto draws no ghosts below it
constexpr double kMinStepEnd = 60;
constexpr double kWordSize = 11;

double px_per_ns(const ChartTime& time, const ChartLayout& layout) {
  return layout.plot.w / std::max<int64_t>(1, time.end_ns - time.start_ns);
}
double to_x(const ChartTime& time, const ChartLayout& layout, int64_t ns) {
  return layout.plot.x + (ns - static_cast<double>(time.start_ns)) * px_per_ns(time, layout);
}

// Returns the width on the picture of each step, by its number.
std::map<int32_t, double> step_widths(const ChartTime& time, const ChartLayout& layout) {
  std::map<int32_t, double> widths;
  for (const ChartTime::Step& step : time.steps)
    widths[step.step] = (step.end_ns - step.start_ns) * px_per_ns(time, layout);
  return widths;
}

}  // namespace

GhostPlace ghost_place(const Theory& theory, Ghosts wish, double row_gap, double scale) {
  if (!theory.known() || wish == Ghosts::kOff || row_gap < 3) return {};
  if (wish == Ghosts::kAuto) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < theory.start_ns.size(); ++i) {
      if (!theory.has(i)) continue;
      sum += theory.end_ns[i] - theory.start_ns[i];
      ++count;
    }
    if (row_gap < 6 || count == 0 || sum / count * scale < kMinGhostCell) return {};
  }
  if (row_gap >= 12) return {1.5, 4.5};
  if (row_gap >= 9) return {1.5, 4};
  return row_gap >= 6 ? GhostPlace{1, 3} : GhostPlace{0.5, 2};
}

void place_ghosts(const Trace& trace, const Theory& theory, const ChartTime& time, const GhostPlace& where,
                  double strip_px, ChartLayout& layout) {
  const Cells& cells = trace.cells;
  std::vector<Cells> by_part(trace.parts.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!theory.has(i)) continue;
    Cell ghost = cells.at(i);
    const int64_t shift = time.shift_ns[ghost.part];
    ghost.start_ns = std::max(theory.start_ns[i], sum_or_limit(time.start_ns, shift));
    ghost.end_ns = std::min(theory.end_ns[i], sum_or_limit(time.end_ns, shift));
    if (ghost.end_ns <= ghost.start_ns) continue;
    if (theory.fused[i]) {  // the two halves are in the same place and become one ghost in two colours
      if (kind_group(ghost.kind) == KindGroup::kBackward) continue;
      ghost.kind = CellKind::kForwardBackward;
    }
    by_part[ghost.part].add(ghost);
  }
  ChartLayout under;
  for (uint32_t r = 0; r < layout.rows.size(); ++r) {
    const ChartRow& row = layout.rows[r];
    const size_t p = row.part;
    std::vector<uint32_t> order(by_part[p].size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    sort_stably(order, [&](uint32_t a, uint32_t b) { return by_part[p].start_ns[a] < by_part[p].start_ns[b]; });
    const ChartRect box{layout.plot.x, row.y + row.h + where.gap, layout.plot.w, where.h};
    place_cells(by_part[p], order,
                {static_cast<int32_t>(r), box, px_per_ns(time, layout), time.start_ns + time.shift_ns[p], strip_px},
                under);
  }
  for (ChartCell& ghost : under.cells) ghost.label = -1;
  layout.ghosts = std::move(under.cells);
  layout.ghost_blends = std::move(under.blends);
}

void place_theory_ends(const Theory& theory, const ChartTime& time, ChartLayout& layout) {
  if (theory.by_rank) return;
  const std::map<int32_t, double> widths = step_widths(time, layout);
  std::map<int32_t, int64_t> ends;  // over all replicas
  for (const TheoryStep& step : theory.steps) {
    int64_t& end = ends.try_emplace(step.step, step.end_ns).first->second;
    end = std::max(end, step.end_ns);
  }
  for (const auto& [step, end] : ends) {
    const auto width = widths.find(step);
    const double x = to_x(time, layout, end);
    if (width != widths.end() && width->second >= kMinStepEnd && x <= layout.plot.x + layout.plot.w + 0.5)
      layout.theory_end_x.push_back(x);
  }
}

void place_phase_marks(const std::vector<RankPhases>& phases, const ChartTime& time, ChartLayout& layout) {
  const std::map<int32_t, double> widths = step_widths(time, layout);
  std::vector<const ChartRow*> row_of(time.shift_ns.size(), nullptr);
  for (const ChartRow& row : layout.rows) row_of[row.part] = &row;
  for (const RankPhases& own : phases) {
    const size_t p = own.part;
    const auto width = widths.find(own.step);
    if (!row_of[p] || row_of[p]->h < 14 || width == widths.end() || width->second < kMinPhaseStep) continue;
    const double w = row_of[p]->h >= 25 ? 9 : 7;
    for (const int64_t at : {own.steady_ns, own.cool_down_ns})
      layout.phase_marks.push_back({to_x(time, layout, at - time.shift_ns[p]), row_of[p]->y + w * 0.42, w, w * 0.62});
  }
}

bool place_phase_bars(const std::vector<RankPhases>& phases, const ChartTime& time, double y, ChartLang lang,
                      const MeasureText& measure, ChartLayout& layout) {
  const std::map<int32_t, double> widths = step_widths(time, layout);
  std::map<int32_t, RankPhases> all;  // for each step, over all replicas
  for (const RankPhases& own : phases) {
    if (const auto width = widths.find(own.step); width == widths.end() || width->second < kMinPhaseStep) continue;
    RankPhases& step = all.try_emplace(own.step, own).first->second;
    step.start_ns = std::min(step.start_ns, own.start_ns);
    step.steady_ns = std::min(step.steady_ns, own.steady_ns);
    step.cool_down_ns = std::max(step.cool_down_ns, own.cool_down_ns);
    step.end_ns = std::max(step.end_ns, own.end_ns);
  }
  for (const auto& [number, step] : all) {
    const int64_t bounds[] = {step.start_ns, step.steady_ns, step.cool_down_ns, step.end_ns};
    constexpr const char* kPhases[] = {"phase.warm-up", "phase.steady", "phase.cool-down"};
    for (int phase = 0; phase < 3; ++phase) {
      const double x0 = to_x(time, layout, bounds[phase]), x1 = to_x(time, layout, bounds[phase + 1]);
      if (x1 - x0 < 1) continue;
      layout.phase_bars.push_back({x0, y, x1 - x0, kPhaseBarH - 6});
      const std::string word = chart_word(lang, kPhases[phase]);
      const std::string full = word + " " + human_duration(bounds[phase + 1] - bounds[phase]);
      for (const std::string& text : {full, word}) {
        const double width = measure(text, kWordSize, false);
        if (width + 16 > x1 - x0) continue;
        layout.step_labels.push_back({(x0 + x1 - width) / 2, y + 9.5, width, kWordSize, false, false, text});
        break;
      }
    }
  }
  return !all.empty();
}

}  // namespace stageline
