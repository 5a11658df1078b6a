#include "exporters/chart/chart_layout.h"

#include "model/pipeline_words.h"

namespace stageline {
namespace {

constexpr double kMargin = 32;
constexpr double kLabelGap = 22;  // between the row labels and the plot
constexpr double kHeaderH = 22;   // "Replica 1" above its rows
constexpr double kTitleSize = 20, kLeadSize = 13.5, kSmallSize = 12, kAxisSize = 11;
constexpr double kMinPlotW = 120;
// With more chunks than this, lightness cannot distinguish them, so their numbers are written too.
constexpr int32_t kShadedChunks = 4;

struct RowSizes {
  double h, gap;
};

// Returns the heights of rows. Fewer rows are taller. From 128 rows on, each keeps 14 px until the picture would be too
// high.
Result<RowSizes> row_sizes(size_t count, double room) {
  constexpr struct {
    size_t up_to;
    RowSizes sizes;
  } kSteps[] = {{8, {46, 12}}, {16, {34, 9}}, {32, {25, 6}}, {64, {19, 3}}};
  for (const auto& step : kSteps)
    if (count <= step.up_to) return step.sizes;
  const double pitch = std::min(16.0, room / count);
  if (pitch < 1)
    return make_error(ErrorCode::kLimit, grouped(count) + " ranks do not fit on one picture",
                      "choose some with --ranks");
  return pitch >= 6 ? RowSizes{std::floor(pitch) - 2, 2} : RowSizes{pitch, 0};
}

// Returns the rows in reading order: by replica, stage and rank.
std::vector<int32_t> row_order(const Trace& trace) {
  std::vector<int32_t> order(trace.parts.size());
  for (uint32_t p = 0; p < order.size(); ++p) order[p] = p;
  const auto key = [&](int32_t p) {
    const Part& part = trace.parts[p];
    return std::tuple(part.dp, part.stage, part.rank, p);
  };
  std::ranges::sort(order, [&](int32_t a, int32_t b) { return key(a) < key(b); });
  return order;
}

// Returns the width at which three of four compute cells have room for a number of `number_px` pixels.
double width_from_content(const Trace& trace, const ChartTime& time, double number_px, double max) {
  std::vector<int64_t> durations;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (is_compute(trace.cells.kind[i]) && trace.cells.dur_ns(i) > 0) durations.push_back(trace.cells.dur_ns(i));
  if (durations.empty()) return 1320;
  const auto quarter = durations.begin() + durations.size() / 4;
  std::nth_element(durations.begin(), quarter, durations.end());
  const double cells_across = (time.end_ns - time.start_ns) / static_cast<double>(*quarter);
  return std::clamp(std::ceil(cells_across * number_px / 20) * 20 + 220, 1320.0, max);
}

// Places things in lines from left to right.
struct Flow {
  double left, right, x, y, line_h;
  // Moves to the next line when `width` does not fit any more.
  void make_room(double width) {
    if (x > left && x + width > right) x = left, y += line_h;
  }
};

std::vector<std::string> subtitle_items(const Trace& trace, const ChartTime& time, ChartLang lang) {
  const Extent extent = extent_of(trace);
  std::vector<std::string> items;
  if (extent.stage_count > 0) {
    items.push_back(chart_count(lang, "stages", extent.stage_count));
    if (extent.dp_count > 1)
      items.back() += " × " + pipelines_text(trace, extent.dp_count).in(lang == ChartLang::kChinese);
  }
  items.push_back(chart_count(lang, "ranks", trace.parts.size()));
  if (const int32_t m = micro_batches_per_step(trace); m > 0) items.push_back(chart_count(lang, "micro_batches", m));
  if (extent.chunk_count > 1) items.push_back(chart_count(lang, "chunks", extent.chunk_count));
  if (extent.step_count > 1) items.push_back(chart_count(lang, "steps", extent.step_count));
  items.push_back(human_duration(time.end_ns - time.start_ns));
  return items;
}

// The builder holds what the steps below share. Each step fills one part of the layout.
struct Builder {
  const Trace& trace;
  const ChartOptions& options;
  const MeasureText& measure;
  ChartTime time;
  std::vector<int32_t> order;
  RowSizes sizes = {};
  GhostPlace ghosts = {};
  std::vector<RankPhases> phases;
  bool headers = false, two_lines = false;
  ChartLayout out;

  ChartText text(double x, double y, std::string what, double size, bool bold, bool strong) const {
    const double width = measure(what, size, bold);
    return {x, y, width, size, bold, strong, std::move(what)};
  }

  std::string row_label(const Part& part, bool second) const {
    const std::string rank = chart_number(options.lang, "rank", part.rank);
    if (part.stage == kUnknown) return second ? "" : rank;
    if (two_lines) return second ? rank : chart_number(options.lang, "stage", part.stage);
    return second ? "" : chart_number(options.lang, "stage", part.stage) + " · " + rank;
  }
  double label_size() const { return two_lines ? 13.5 : std::min(12.0, std::max(9.0, sizes.h * 0.72)); }

  // Returns true when there is room for notches at the rows and, on one clock, for the bars over all rows.
  bool phases_fit() const {
    return !phases.empty() && sizes.h >= 14 && std::ranges::any_of(time.steps, [&](const auto& s) {
      return to_x(s.end_ns) - to_x(s.start_ns) >= kMinPhaseStep && s.step != kUnknown;
    });
  }

  Status choose_sizes() {
    order = row_order(trace);
    std::set<int32_t> replicas = mapped<std::set>(trace.parts, &Part::dp);
    headers = replicas.size() > 1 && replicas.size() <= 256;
    const double room = options.max_height_px - 300 - (headers ? kHeaderH * replicas.size() : 0);
    TRY_OK(take(row_sizes(order.size(), room), sizes));
    if (options.theory && options.theory->known() && options.ghosts == Ghosts::kOn && sizes.gap < 3 && sizes.h >= 9)
      sizes = {sizes.h - (3 - sizes.gap), 3};
    two_lines = sizes.h >= 34;
    double label_w = 0;
    for (const Part& part : trace.parts) {
      label_w = std::max(label_w, measure(row_label(part, false), label_size(), two_lines));
      label_w = std::max(label_w, measure(row_label(part, true), kSmallSize, false));
      if (headers) label_w = std::max(label_w, measure(chart_replica(options.lang, trace, part.dp), kSmallSize, true));
    }
    const double rows_h = order.size() * (sizes.h + sizes.gap);
    const double max = std::min(options.max_width_px, std::max(1320.0, options.max_area_px / (rows_h + 300)));
    // A chart of one step is at most 4400 px wide: a wider one does not fit a screen at any zoom.
    const Extent extent = extent_of(trace);
    std::string longest = std::to_string(std::max(10, extent.micro_batch_count) - 1);
    if (extent.chunk_count > kShadedChunks) longest += "·" + std::to_string(extent.chunk_count - 1);
    const double number_px = measure(longest, std::min(13.0, sizes.h * 0.5), true) + 8;
    out.width = options.width_px > 0
                    ? options.width_px
                    : width_from_content(trace, time, number_px, time.steps.size() > 1 ? max : std::min(max, 4400.0));
    out.plot.x = std::round(kMargin + label_w + kLabelGap);
    out.plot.w = out.width - kMargin - out.plot.x;
    if (out.plot.w < kMinPlotW)
      return make_error(ErrorCode::kUsage, "a chart " + fixed(out.width, 0) + " px wide has no room for its rows",
                        "give at least " + fixed(out.plot.x + kMargin + kMinPlotW, 0));
    if (options.theory)
      ghosts = ghost_place(*options.theory, options.ghosts, sizes.gap,
                           out.plot.w / std::max<int64_t>(1, time.end_ns - time.start_ns));
    return {};
  }

  double write_head() {
    int32_t first_step = kUnknown, last_step = kUnknown;
    for (const ChartTime::Step& step : time.steps) {
      if (step.step == kUnknown) continue;
      first_step = first_step == kUnknown ? step.step : std::min(first_step, step.step);
      last_step = std::max(last_step, step.step);
    }
    out.title = options.title.empty() ? chart_title(options.lang, first_step, last_step) : valid_utf8(options.title);
    double y = 50;
    out.texts.push_back(text(kMargin, y, out.title, kTitleSize, true, true));
    Flow flow{kMargin, out.width - kMargin, kMargin, y + 25, 20};
    const std::vector<std::string> items = subtitle_items(trace, time, options.lang);
    for (size_t i = 0; i < items.size(); ++i) {
      ChartText item = text(0, 0, items[i] + (i + 1 < items.size() ? " · " : ""), kLeadSize, false, false);
      flow.make_room(item.width);
      item.x = flow.x;
      item.y = flow.y;
      flow.x += item.width;
      out.texts.push_back(std::move(item));
    }
    const auto note = [&](const std::string& words) {
      flow.x = kMargin;
      flow.y += flow.line_h;
      // The text is placed word by word, because a narrow picture must not cut a note. Chinese has no spaces, but its
      // notes are short.
      for (size_t begin = 0; begin < words.size();) {
        size_t end = words.find(' ', begin);
        end = end == std::string::npos ? words.size() : end + 1;
        ChartText word = text(0, 0, words.substr(begin, end - begin), kLeadSize, false, true);
        flow.make_room(word.width);
        if (flow.x == kMargin || out.texts.back().y != flow.y) {
          word.x = flow.x;
          word.y = flow.y;
          out.texts.push_back(word);
        } else {
          out.texts.back() =
              text(out.texts.back().x, flow.y, out.texts.back().text + word.text, kLeadSize, false, true);
        }
        flow.x = out.texts.back().x + out.texts.back().width;
        begin = end;
      }
    };
    if (trace.clock == ClockState::kPerRank && trace.parts.size() > 1)
      note(chart_word(options.lang, "clocks.per_rank"));
    if (trace.clock == ClockState::kUnaligned && trace.parts.size() > 1)
      note(chart_word(options.lang, "clocks.unaligned"));
    if ((trace.clock == ClockState::kAligned || trace.clock == ClockState::kPartlyAligned) && trace.parts.size() > 1)
      note(chart_clocks_aligned(options.lang, clock_summary(trace)));
    if (trace.steps_laid_end_to_end) note(chart_word(options.lang, "steps_laid"));
    return flow.y;
  }

  double write_legend(double y) {
    ByEnum<CellKind, bool, kCellKindCount> present = {};
    for (const CellKind kind : trace.cells.kind) present[kind] = true;
    out.mark_input_grad = present[CellKind::kBackward] && present[CellKind::kInputGrad];
    Flow flow{kMargin, out.width - kMargin, kMargin, y + 32, 21};
    const auto item = [&](ChartLegendItem::Mark mark, CellKind kind, int32_t chunk, std::string words) {
      const double swatch_w = mark == ChartLegendItem::Mark::kNote ? 0 : 12;
      ChartText label = text(0, 0, std::move(words), kSmallSize, false, false);
      flow.make_room(swatch_w + 7 + label.width);
      const ChartRect swatch{flow.x, flow.y - 10.5, swatch_w, 12};
      label.x = flow.x + (swatch_w > 0 ? swatch_w + 7 : 0);
      label.y = flow.y;
      flow.x = label.x + label.width + 20;
      out.legend.push_back({mark, kind, chunk, swatch, std::move(label)});
    };
    bool message_done = false;
    for (int k = 0; k < kCellKindCount; ++k) {
      const auto kind = static_cast<CellKind>(k);
      if (!present[k] || (is_message(kind) && message_done)) continue;
      message_done |= is_message(kind);
      item(ChartLegendItem::Mark::kKind, kind, 0, chart_kind(options.lang, kind));
    }
    item(ChartLegendItem::Mark::kWaiting, CellKind::kOther, 0, chart_word(options.lang, "waiting"));
    if (out.chunk_count > 1 && out.chunk_count <= kShadedChunks)
      for (int32_t c = 0; c < out.chunk_count; ++c)
        item(ChartLegendItem::Mark::kChunk, CellKind::kForward, c, chart_number(options.lang, "chunk", c));
    if (ghosts.h > 0) {
      item(ChartLegendItem::Mark::kGhost, CellKind::kOther, 0, chart_ghost(options.lang, options.theory->schedule));
      if (!out.theory_end_x.empty())
        item(ChartLegendItem::Mark::kTheoryEnd, CellKind::kOther, 0, chart_word(options.lang, "theory_end"));
    }
    if (phases_fit()) item(ChartLegendItem::Mark::kPhase, CellKind::kOther, 0, chart_word(options.lang, "phase_mark"));
    if (out.chunk_count > kShadedChunks)
      item(ChartLegendItem::Mark::kNote, CellKind::kOther, 0, chart_word(options.lang, "chunk_hint"));
    return flow.y;
  }

  double to_x(int64_t ns) const {
    return out.plot.x + (ns - time.start_ns) * out.plot.w / std::max<int64_t>(1, time.end_ns - time.start_ns);
  }

  double write_axis(double y, double baseline) {
    // Ticks are laid out once to find the widest label, which decides the distance of ticks.
    const int64_t span = std::max<int64_t>(1, time.end_ns - time.start_ns);
    double widest = 40;
    for (const ChartTick& tick : chart_ticks(span, out.plot.w, 80))
      widest = std::max(widest, measure(tick.label, kAxisSize, false));
    for (const ChartTick& tick : chart_ticks(span, out.plot.w, std::max(84.0, widest + 28))) {
      ChartText label = text(0, baseline, tick.label, kAxisSize, false, false);
      label.x = out.plot.x + tick.x - label.width / 2;
      if (label.x + label.width <= out.width - 4) out.texts.push_back(std::move(label));
      if (y == 0) out.tick_x.push_back(out.plot.x + tick.x);
    }
    return baseline;
  }

  // Bars that touch and are too narrow to be seen become one. Numbers appear where there is room.
  void write_steps(double y, double h) {
    double label_end = 0, line_end = -100, bar_end = out.plot.x;
    // Every 1st, 2nd, 5th, 10th … step has its number, so that numbers are 24 px apart on average.
    const double widest = measure(std::to_string(time.steps.back().step), kAxisSize, false) + 24;
    const double per_step = out.plot.w / time.steps.size();
    int64_t every = 1;
    for (int k = 0; every * per_step < widest; ++k) every = k % 3 == 1 ? every / 2 * 5 : every * 2;
    for (const ChartTime::Step& step : time.steps) {
      const double x0 = std::max(to_x(step.start_ns), bar_end), x1 = std::max(x0, to_x(step.end_ns));
      if (x0 > out.plot.x + 0.5 && x0 - line_end >= 5) {
        out.step_line_x.push_back(x0);
        line_end = x0;
      }
      bar_end = x1;
      if (step.step == kUnknown) continue;
      ChartRect* last = out.step_bars.empty() ? nullptr : &out.step_bars.back();
      if (last && x1 - x0 < 3 && x0 - (last->x + last->w) < 1) last->w = x1 - last->x;
      else if (x1 > x0) out.step_bars.push_back({x0, y, x1 - x0, h});
      if (step.step % every != 0) continue;
      for (const bool full : {true, false}) {
        ChartText label =
            text(0, y + h / 2 + 4, full ? chart_number(options.lang, "step", step.step) : std::to_string(step.step),
                 kAxisSize, false, false);
        label.x = (x0 + x1 - label.width) / 2;
        const bool inside = label.width + 8 <= x1 - x0;
        // Between narrow bars, a number without a bar may stand over the neighbouring bars, at some distance.
        if (!inside && (full || every == 1 || label.x < std::max(label_end + 12, out.plot.x))) continue;
        if (label.x + label.width > out.plot.x + out.plot.w) continue;
        label_end = label.x + label.width;
        out.step_labels.push_back(std::move(label));
        break;
      }
    }
  }

  double write_rows(double y) {
    // Labels of neighbouring rows would touch when there is no gap. Then only every second, third, … label is written.
    const double pitch = sizes.h + sizes.gap;
    const int every = std::max(1, static_cast<int>(std::ceil((label_size() + 2) / pitch)));
    int32_t replica = -2;
    int in_group = 0;
    for (const int32_t p : order) {
      const Part& part = trace.parts[p];
      if (headers && part.dp != replica) {
        if (!out.rows.empty()) y += 6;
        if (part.dp != kUnknown)
          out.texts.push_back(
              text(kMargin, y + 13, chart_replica(options.lang, trace, part.dp), kSmallSize, true, false));
        y += kHeaderH - 2;
        in_group = 0;
      }
      replica = part.dp;
      out.rows.push_back({p, y, sizes.h});
      if (two_lines && part.stage != kUnknown) {
        out.texts.push_back(text(kMargin, y + sizes.h / 2 - 3, row_label(part, false), label_size(), true, true));
        out.texts.push_back(text(kMargin, y + sizes.h / 2 + 14, row_label(part, true), kSmallSize, false, false));
      } else if (in_group % every == 0) {
        out.texts.push_back(text(kMargin, y + sizes.h / 2 + label_size() * 0.36, row_label(part, false), label_size(),
                                 two_lines, true));
      }
      ++in_group;
      y += pitch;
    }
    return y - sizes.gap;
  }

  void write_idle() {
    // Steps that touch or overlap are joined into one stretch, so that the texture has no seams.
    std::vector<ChartRect> spans;
    for (const ChartTime::Step& step : time.steps) {
      const double x0 = to_x(step.start_ns), x1 = to_x(step.end_ns);
      if (!spans.empty() && x0 <= spans.back().x + spans.back().w + 0.5)
        spans.back().w = std::max(spans.back().w, x1 - spans.back().x);
      else spans.push_back({x0, 0, x1 - x0, 0});
    }
    // With thousands of steps on thousands of rows there would be too many rectangles. The gaps between steps are then
    // narrower than a pixel, and are dropped first.
    while (spans.size() > 1 && spans.size() * out.rows.size() > options.max_objects) {
      std::vector<ChartRect> merged;
      for (size_t i = 0; i < spans.size(); i += 2) {
        const ChartRect& last = spans[std::min(i + 1, spans.size() - 1)];
        merged.push_back({spans[i].x, 0, last.x + last.w - spans[i].x, 0});
      }
      spans.swap(merged);
    }
    for (const ChartRow& row : out.rows)
      for (const ChartRect& span : spans) out.idle.push_back({span.x, row.y, span.w, row.h});
  }

  void write_cells() {
    std::vector<std::vector<uint32_t>> by_part(trace.parts.size());
    const Cells& cells = trace.cells;
    for (uint32_t i = 0; i < cells.size(); ++i) by_part[cells.part[i]].push_back(i);
    double strip_px = options.strip_px;
    if (cells.size() > options.max_objects) {
      const double area = out.rows.size() * out.plot.w;
      strip_px = std::max(strip_px, area / options.max_objects);
    }
    const double px_per_ns = out.plot.w / std::max<int64_t>(1, time.end_ns - time.start_ns);
    for (uint32_t r = 0; r < out.rows.size(); ++r) {
      const size_t p = out.rows[r].part;
      sort_stably(by_part[p], [&](uint32_t a, uint32_t b) { return cells.start_ns[a] < cells.start_ns[b]; });
      const ChartRect box{out.plot.x, out.rows[r].y, out.plot.w, out.rows[r].h};
      place_cells(cells, by_part[p],
                  {static_cast<int32_t>(r), box, px_per_ns, time.start_ns + time.shift_ns[p], strip_px}, out);
    }
    label_cells(measure, out.chunk_count > kShadedChunks, out);
    if (ghosts.h > 0) place_ghosts(trace, *options.theory, time, ghosts, strip_px, out);
  }
};

}  // namespace

Result<ChartLayout> layout_chart(const Trace& trace, const ChartOptions& options, const MeasureText& measure) {
  if (trace.cells.size() == 0)
    return make_error(ErrorCode::kBadInput, "there is nothing to draw: the trace has no pipeline cells",
                      "stageline info says what was read, and what --ranks and --steps left of it");
  if (options.width_px < 0 || !std::isfinite(options.width_px))
    return make_error(ErrorCode::kUsage, "a chart cannot be that wide", "leave the width out to have it chosen");
  Builder b{trace, options, measure, chart_time(trace), {}, {}, {}, {}, false, false, {}};
  TRY_OK(b.choose_sizes());
  b.out.chunk_count = std::max(1, extent_of(trace).chunk_count);
  b.phases = rank_phases(trace);
  if (b.ghosts.h > 0) place_theory_ends(*options.theory, b.time, b.out);
  double y = b.write_legend(b.write_head());
  b.out.tick_top = y + 42;
  b.write_axis(0, y + 36);
  y = b.out.tick_top + 2;
  if (std::ranges::any_of(b.time.steps, [](const auto& s) { return s.step != kUnknown; })) {
    b.write_steps(y, 17);
    y += 17 + 7;
    if (trace.clock != ClockState::kPerRank && b.phases_fit() &&
        place_phase_bars(b.phases, b.time, y - 3, options.lang, measure, b.out))
      y += kPhaseBarH;
  } else {
    y += 6;
  }
  b.out.plot.y = y;
  y = b.write_rows(y);
  b.out.plot.h = y - b.out.plot.y;
  b.out.tick_bottom = y + 6;
  if (b.out.plot.h > 900) {  // the axis above is far away, so it is repeated below
    b.write_axis(y, y + 22);
    y += 22;
  }
  b.out.height = std::ceil(y + kMargin);
  b.write_idle();
  b.write_cells();
  if (b.phases_fit()) place_phase_marks(b.phases, b.time, b.out);
  return std::move(b.out);
}

}  // namespace stageline
