#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

constexpr Rgb kWhite = {255, 255, 255};
constexpr double kGhostAlpha = 0.38;

struct Painter {
  cairo_t* cr;
  const ChartLayout& layout;
  const Theme& theme;
  const ChartFonts& fonts;

  void source(Rgb c, double alpha = 1) const {
    if (alpha >= 1) cairo_set_source_rgb(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0);
    else cairo_set_source_rgba(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0, alpha);
  }
  void fill(const ChartRect& r, Rgb colour, double alpha = 1) const {
    source(colour, alpha);
    cairo_rectangle(cr, r.x, r.y, r.w, r.h);
    cairo_fill(cr);
  }
  void write(const ChartText& t, Rgb colour) const {
    source(colour);
    fonts.show(cr, t.x, t.y, t.text, t.size, t.bold);
  }
  void line(double x0, double y0, double x1, double y1) const {
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
  }

  void rounded(const ChartRect& r, double radius) const {
    if (radius <= 0) {
      cairo_rectangle(cr, r.x, r.y, r.w, r.h);
      return;
    }
    const double pi = 3.14159265358979323846;
    cairo_new_sub_path(cr);
    cairo_arc(cr, r.x + r.w - radius, r.y + radius, radius, -pi / 2, 0);
    cairo_arc(cr, r.x + r.w - radius, r.y + r.h - radius, radius, 0, pi / 2);
    cairo_arc(cr, r.x + radius, r.y + r.h - radius, radius, pi / 2, pi);
    cairo_arc(cr, r.x + radius, r.y + radius, radius, pi, 1.5 * pi);
    cairo_close_path(cr);
  }

  // Draws lines at 45° inside a box. They are cut to the box by arithmetic, because a clip for each cell would be far
  // slower and make the SVG far longer. `falling` draws "\", else "/".
  void hatch_path(const ChartRect& r, double spacing, bool falling) const {
    for (double offset = spacing / 2; offset < r.w + r.h; offset += spacing) {
      // Each line begins at the top edge (or right of it) and goes down to the left.
      const double x0 = std::min(offset, r.w), y0 = offset - x0;
      const double y1 = std::min(offset, r.h), x1 = offset - y1;
      if (falling) line(r.x + r.w - x0, r.y + y0, r.x + r.w - x1, r.y + y1);
      else line(r.x + x0, r.y + y0, r.x + x1, r.y + y1);
    }
  }

  void hatched(const ChartRect& r, double spacing) const {
    fill(r, theme.idle);
    hatch_path(r, spacing, false);
    source(theme.idle_hatch);
    cairo_set_line_width(cr, 1.2);
    cairo_stroke(cr);
  }

  // The texture of idle time goes through all rows as one set of lines behind one clip. So it is continuous and costs
  // the same for 4 rows and for 400.
  void idle() const {
    if (layout.idle.empty()) return;
    source(theme.idle);
    for (const ChartRect& r : layout.idle) cairo_rectangle(cr, r.x, r.y, r.w, r.h);
    cairo_fill(cr);
    cairo_save(cr);
    for (const ChartRect& r : layout.idle) cairo_rectangle(cr, r.x, r.y, r.w, r.h);
    cairo_clip(cr);
    hatch_path(layout.plot, 8.5, false);
    source(theme.idle_hatch);
    cairo_set_line_width(cr, 1.2);
    cairo_stroke(cr);
    cairo_restore(cr);
  }

  Rgb fill_of(CellKind kind, int32_t chunk) const {
    const KindGroup group = kind_group(kind);
    return is_compute(kind) ? chunk_fill(theme, group, chunk, layout.chunk_count) : theme.group[group];
  }

  void pattern(const ChartRect& r, CellKind kind, Rgb colour) const {
    const bool diagonal = kind == CellKind::kWeightGrad;
    if (!diagonal && !(kind == CellKind::kInputGrad && layout.mark_input_grad)) return;
    if (r.w < 4 || r.h < 6) return;
    // The pattern moves the colour away from the text's colour, so that the text only gains contrast.
    source(mix(colour, text_on(colour).r > 128 ? Rgb{0, 0, 0} : kWhite, 0.24));
    cairo_set_line_width(cr, 1.1);
    if (diagonal) hatch_path(r, 7, true);
    else
      for (double y = 4; y < r.h - 1; y += 5) line(r.x, r.y + y, r.x + r.w, r.y + y);
    cairo_stroke(cr);
  }

  void cell(const ChartCell& c) const {
    ChartRect r = c.box;
    // Leaves a thin line of background between neighbours, when cells are wide enough.
    const double seam = r.w >= 5 ? std::min(1.0, r.w * 0.06) : 0;
    r.x += seam / 2;
    r.w -= seam;
    const double radius = r.w >= 8 && r.h >= 10 ? 2 : 0;
    const Rgb colour = fill_of(c.kind, c.chunk);
    if (c.zone > 0) {  // low cells lie over compute; a rim keeps them apart
      const double rim = std::min(1.0, r.h * 0.2);
      fill({r.x, r.y - rim, r.w, rim}, theme.background);
    }
    source(colour);
    rounded(r, radius);
    cairo_fill(cr);
    if (c.kind == CellKind::kForwardBackward)
      fill({r.x, r.y + r.h / 2, r.w, r.h / 2}, chunk_fill(theme, KindGroup::kBackward, c.chunk, layout.chunk_count));
    pattern(r, c.kind, colour);
    if (c.label >= 0) write(layout.cell_labels[c.label], text_on(colour));
  }

  // Draws the kinds in a strip one over the other, in their proportions, and as opaque as the strip is busy. Colours
  // are not mixed, because forward and backward mixed would look like the optimizer.
  void blend(const ChartBlend& b, double alpha = 1) const {
    const double total = sum_over<double>(b.share);
    if (total <= 0) return;
    double y = b.box.y;
    for (size_t g = 0; g < b.share.size(); ++g) {
      const double h = b.box.h * b.share[g] / total;
      if (h > 0) fill({b.box.x, y, b.box.w, h}, theme.group[g], std::min(1.0, total) * alpha);
      y += h;
    }
  }

  // Draws the cells of the theory in half-tones, next to the measured cells, so that the two cannot be confused.
  void ghosts() const {
    for (const ChartBlend& b : layout.ghost_blends) blend(b, kGhostAlpha);
    for (const ChartCell& c : layout.ghosts) ghost(c.box, c.kind, c.chunk);
  }
  void ghost(ChartRect r, CellKind kind, int32_t chunk) const {
    const double seam = r.w >= 5 ? std::min(1.0, r.w * 0.06) : 0;
    r.x += seam / 2;
    r.w -= seam;
    const ChartRect lower{r.x, r.y + r.h / 2, r.w, r.h / 2};
    if (kind == CellKind::kForwardBackward) {  // drawn next to each other, because half-tones over each other would mix
      fill(lower, chunk_fill(theme, KindGroup::kBackward, chunk, layout.chunk_count), kGhostAlpha);
      r.h /= 2;
    }
    source(fill_of(kind, chunk), kGhostAlpha);
    rounded(r, r.w >= 4 && r.h >= 3 ? 1 : 0);
    cairo_fill(cr);
  }

  void theory_end(double x, double top, double bottom) const { dashed(x, top, x, bottom); }
  void dashed(double x0, double y0, double x1, double y1) const {
    const double dash[] = {4, 3};
    cairo_set_dash(cr, dash, 2, 0);
    line(x0, y0, x1, y1);
    source(theme.accent);
    cairo_set_line_width(cr, 1.5);
    cairo_stroke(cr);
    cairo_set_dash(cr, nullptr, 0, 0);
  }

  // Draws a notch that hangs from the top of a row. Its tip is at (x, y).
  void notch(const ChartRect& mark) const {
    const double top = mark.y - mark.w * 0.42;
    cairo_move_to(cr, mark.x - mark.w / 2, top);
    cairo_line_to(cr, mark.x + mark.w / 2, top);
    cairo_line_to(cr, mark.x, top + mark.h);
    cairo_close_path(cr);
    source(theme.ink);
    cairo_fill_preserve(cr);
    source(theme.background);
    cairo_set_line_width(cr, 0.8);
    cairo_stroke(cr);
  }
  void phases() const {
    for (const ChartRect& bar : layout.phase_bars) {
      // The words stand between the two ends, so the line is drawn at the bottom: ├──── word ────┤
      const double y = bar.y + bar.h + 1.5;
      line(bar.x + 0.5, y, bar.x + bar.w - 0.5, y);
      line(bar.x + 0.5, y - 3, bar.x + 0.5, y + 0.5);
      line(bar.x + bar.w - 0.5, y - 3, bar.x + bar.w - 0.5, y + 0.5);
    }
    source(theme.muted, 0.7);
    cairo_set_line_width(cr, 1);
    cairo_stroke(cr);
  }

  void legend() const {
    for (const ChartLegendItem& item : layout.legend) {
      ChartRect r = item.swatch;
      switch (item.mark) {
        case ChartLegendItem::Mark::kWaiting: hatched(r, 4.2); break;
        case ChartLegendItem::Mark::kNote: break;
        case ChartLegendItem::Mark::kGhost:
          ghost({r.x, r.y + 4, r.w / 2, 4.5}, CellKind::kForward, 0);
          ghost({r.x + r.w / 2, r.y + 4, r.w / 2, 4.5}, CellKind::kBackward, 0);
          break;
        case ChartLegendItem::Mark::kTheoryEnd: theory_end(r.x + r.w / 2, r.y, r.y + r.h); break;
        case ChartLegendItem::Mark::kPhase: notch({r.x + r.w / 2, r.y + 6, 9, 5.6}); break;
        case ChartLegendItem::Mark::kKind:
        case ChartLegendItem::Mark::kChunk: {
          // The swatch has the shape of the cell in a row: collectives are low, messages are thin.
          const double share = item.kind == CellKind::kCollective || item.kind == CellKind::kOther ? 0.6
                               : is_message(item.kind)                                             ? 0.3
                                                                                                   : 1;
          r.y += r.h * (1 - share);
          r.h *= share;
          const Rgb colour = fill_of(item.kind, item.chunk);
          source(colour);
          rounded(r, std::min(2.0, r.h / 3));
          cairo_fill(cr);
          if (item.kind == CellKind::kForwardBackward)
            fill({r.x, r.y + r.h / 2, r.w, r.h / 2}, fill_of(CellKind::kBackward, 0));
          // The lightness of a chunk is the same for all kinds of compute, so it is shown in two hues.
          if (item.mark == ChartLegendItem::Mark::kChunk)
            fill({r.x + r.w / 2, r.y, r.w / 2, r.h}, fill_of(CellKind::kBackward, item.chunk));
          pattern(r, item.kind, colour);
          break;
        }
      }
      write(item.text, theme.muted);
    }
  }

  void steps() const {
    for (const ChartRect& bar : layout.step_bars) {
      const double seam = bar.w >= 4 ? 1 : 0;
      source(theme.soft);
      rounded({bar.x + seam / 2, bar.y, bar.w - seam, bar.h}, bar.w >= 8 ? 2 : 0);
      cairo_fill_preserve(cr);
      source(theme.line);
      cairo_set_line_width(cr, 1);
      bar.w >= 4 ? cairo_stroke(cr) : cairo_new_path(cr);
    }
    for (const ChartText& label : layout.step_labels) write(label, theme.muted);
  }

  void step_lines() const {
    if (layout.step_line_x.empty()) return;
    for (const double x : layout.step_line_x) line(x, layout.plot.y - 4, x, layout.plot.y + layout.plot.h + 4);
    // When there are many lines they are drawn lighter, so that they do not look like a grey area.
    const double apart = layout.plot.w / layout.step_line_x.size();
    source(theme.muted, apart < 60 ? 0.5 : 1);
    cairo_set_line_width(cr, 0.8);
    cairo_stroke(cr);
  }

  void pieces() const {
    for (const ChartPiece& piece : layout.pieces) {
      const ChartRect& r = piece.box;
      switch (piece.paint) {
        case ChartPiece::Paint::kFill: fill(r, piece.colour); break;
        case ChartPiece::Paint::kHatch: hatched(r, 4.2); break;
        case ChartPiece::Paint::kDash: dashed(r.x, r.y, r.x + r.w, r.y + r.h); break;
        case ChartPiece::Paint::kLine:
          source(piece.colour);
          line(r.x, r.y, r.x + r.w, r.y + r.h);
          cairo_set_line_width(cr, 1);
          cairo_stroke(cr);
          break;
        case ChartPiece::Paint::kDot:
          source(piece.colour);
          cairo_arc(cr, r.x, r.y, r.w, 0, 2 * 3.14159265358979323846);
          cairo_fill(cr);
          break;
      }
    }
  }

  void paint() const {
    fill({0, 0, layout.width, layout.height}, theme.background);
    for (const double x : layout.tick_x)
      line(std::floor(x) + 0.5, layout.tick_top, std::floor(x) + 0.5, layout.tick_bottom);
    source(theme.line);
    cairo_set_line_width(cr, 1);
    cairo_stroke(cr);
    steps();
    phases();
    idle();
    ghosts();
    for (int zone = 0; zone < 3; ++zone) {
      for (const ChartBlend& b : layout.blends)
        if (b.zone == zone) blend(b);
      for (const ChartCell& c : layout.cells)
        if (c.zone == zone) cell(c);
    }
    for (const ChartRect& mark : layout.phase_marks) notch(mark);
    step_lines();
    for (const double x : layout.theory_end_x) theory_end(x, layout.plot.y - 4, layout.plot.y + layout.plot.h + 6);
    legend();
    pieces();
    for (const ChartText& t : layout.texts) write(t, t.strong ? theme.ink : theme.muted);
  }
};

}  // namespace

void draw_chart(cairo_t* cr, const ChartLayout& layout, const Theme& theme, const ChartFonts& fonts) {
  Painter{cr, layout, theme, fonts}.paint();
}

}  // namespace stageline
