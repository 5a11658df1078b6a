// The pipeline chart as geometry: where everything lies, before anything is painted. Units are CSS pixels, and y grows
// downwards. The same layout is painted to SVG, PNG and PDF.
//
//   title
//   subtitle · sizes · span
//   ▪ forward ▪ backward …            legend: exactly the kinds present
//            0 s      0.5 s    1 s    axis, from the first cell
//            ├ Step 0 ──────┤├ Step 1 steps
//   Stage 0  ▒▒█0█1█▒▒▒▒█0█▒▒▒        one row per rank; ▒ is idle within a step
//   rank 0      ▂▂ ▾      ▾           collectives and messages lie low; ▾ phases of the rank
//            ▁▁▁▁▁▁   ▁▁▁▁            theory: a thin ghost under each row
#pragma once

#include "exporters/chart/chart_text.h"
#include "exporters/exporter.h"
#include "model/palette.h"

namespace stageline {

using MeasureText = std::function<double(std::string_view text, double size, bool bold)>;

struct ChartRect {
  double x = 0, y = 0, w = 0, h = 0;
};

// Holds one line of text. (x, y) is the left end of its baseline; the width is the measured one.
struct ChartText {
  double x = 0, y = 0, width = 0, size = 0;
  bool bold = false, strong = false;  // strong text has the colour of ink, other text is muted
  std::string text;
};

struct ChartCell {
  ChartRect box;
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;
  int32_t row = 0;
  int32_t zone = 0;    // 0 is full height, 1 low, 2 thin; zones are painted in this order
  int32_t label = -1;  // index into ChartLayout::cell_labels
};

// Cells that are too narrow to be drawn one by one, summed for each strip. Kind group g fills the part share[g] of the
// strip's area; the rest is idle. The sums are exact, so a busy row never looks idle, nor an idle row busy.
struct ChartBlend {
  ChartRect box;
  ByEnum<KindGroup, float, 7> share = {};  // indexed by KindGroup
  int32_t row = 0;
  int32_t zone = 0;
};

struct ChartRow {
  int32_t part = 0;
  double y = 0, h = 0;
};

// Fills a box, or draws the line from its corner (x, y) to the opposite one, or a dot of radius w around the corner.
struct ChartPiece {
  enum class Paint : uint8_t { kFill, kHatch, kLine, kDash, kDot };
  ChartRect box;
  Paint paint;
  Rgb colour;
};

struct ChartLegendItem {
  enum class Mark : uint8_t { kKind, kChunk, kWaiting, kNote, kGhost, kTheoryEnd, kPhase } mark = Mark::kKind;
  CellKind kind = CellKind::kOther;
  int32_t chunk = 0;
  ChartRect swatch;  // its width is 0 for kNote
  ChartText text;
};

struct ChartLayout {
  double width = 0, height = 0;
  ChartRect plot;  // the area of the rows only
  std::string title;
  std::vector<ChartText> texts;  // all text outside cells, legend and step row
  std::vector<ChartLegendItem> legend;
  std::vector<double> tick_x;
  double tick_top = 0, tick_bottom = 0;
  std::vector<ChartRect> step_bars;
  std::vector<ChartText> step_labels;
  std::vector<double> step_line_x;
  std::vector<ChartRow> rows;
  std::vector<ChartRect> idle;  // one rectangle for each row and each step's span
  std::vector<ChartCell> cells;
  std::vector<ChartText> cell_labels;
  std::vector<ChartBlend> blends;
  std::vector<ChartCell> ghosts;  // cells of the theory, drawn under the rows
  std::vector<ChartBlend> ghost_blends;
  std::vector<double> theory_end_x;  // where each step could have ended
  std::vector<ChartPiece> pieces;    // of panels below the rows
  // Bars over all ranks, drawn under the step bars; their words are among the step labels.
  std::vector<ChartRect> phase_bars;
  std::vector<ChartRect> phase_marks;  // x and y are the tip of a notch at the top of a row; w is its width
  int32_t chunk_count = 1;
  // The chart also has full backwards, so cells I (input gradient) need a pattern of their own.
  bool mark_input_grad = false;
};

struct ChartOptions {
  double width_px = 0;         // 0: chosen from the content
  double max_width_px = 6000;  // limit when the width is chosen from the content
  double max_height_px = 30000;
  double max_area_px = 80e6;
  double strip_px = 1;         // cells narrower than this are summed in strips of this width
  size_t max_objects = 60000;  // when there are more cells than this, strips get wider
  ChartLang lang = ChartLang::kEnglish;
  std::string title;               // when empty, the title names the steps
  const Theory* theory = nullptr;  // drawn as ghosts; when it is nullptr or unknown, no ghosts are drawn
  Ghosts ghosts = Ghosts::kAuto;
};

// Errors: kBadInput when the trace has no cells, kUsage for an impossible width, kLimit when there are more ranks than
// a picture has pixel lines. O(cells log cells) time, O(cells) memory.
Result<ChartLayout> layout_chart(const Trace& trace, const ChartOptions& options, const MeasureText& measure);

// ------------------------------------------------------------------------------ its parts

// The one time axis of all rows: x = plot.x + (t − shift of the row − start) · px_per_ns.
struct ChartTime {
  int64_t start_ns = 0, end_ns = 0;
  std::vector<int64_t> shift_ns;  // for each part; it is not 0 only where ranks have clocks of their own
  struct Step {
    int32_t step;
    int64_t start_ns, end_ns;  // first start and last end over all ranks
  };
  std::vector<Step> steps;  // sorted by start
};
ChartTime chart_time(const Trace& trace);

struct ChartTick {
  double x = 0;  // from the left end of the axis
  std::string label;
};
// Returns ticks from 0 to `span`, at 1, 2 or 5 times a power of ten (minutes and hours are divided as on a clock).
// Ticks are at least `min_gap_px` apart, and all have the same unit and the same number of decimals.
std::vector<ChartTick> chart_ticks(int64_t span_ns, double width_px, double min_gap_px);

struct RowPlace {
  int32_t row = 0;
  ChartRect box;  // the row across the plot
  double px_per_ns = 0;
  int64_t zero_ns = 0;  // time at box.x on the row's own clock
  double strip_px = 1;
};
// Puts the cells of one row (indices by start) into `layout`.
void place_cells(const Cells& cells, const std::vector<uint32_t>& order, const RowPlace& place, ChartLayout& layout);

// Where the theory is drawn under the rows. Ghosts that reach beyond the plot are cut at its edge.
struct GhostPlace {
  // Distance from the row's bottom to the ghost, and height of the ghost; a height of 0: none are drawn.
  double gap = 0, h = 0;
};
// Returns the place of ghosts in a gap of `row_gap` pixels between rows. With kAuto, ghosts are drawn only if the gap
// is large enough and the cells are on average at least some pixels wide.
GhostPlace ghost_place(const Theory& theory, Ghosts wish, double row_gap, double px_per_ns);
void place_ghosts(const Trace& trace, const Theory& theory, const ChartTime& time, const GhostPlace& where,
                  double strip_px, ChartLayout& layout);
// Draws one line for each step that is wide enough, at the last end of its theory.
void place_theory_ends(const Theory& theory, const ChartTime& time, ChartLayout& layout);

// Places notches where each rank's warm-up ends and where its cool-down begins. Steps narrower than kMinPhaseStep
// pixels have none.
void place_phase_marks(const std::vector<RankPhases>& phases, const ChartTime& time, ChartLayout& layout);
// Places bars of warm-up, steady phase and cool-down over all ranks at `y`, with words where they fit. Returns false
// when no step is wide enough.
bool place_phase_bars(const std::vector<RankPhases>& phases, const ChartTime& time, double y, ChartLang lang,
                      const MeasureText& measure, ChartLayout& layout);
inline constexpr double kPhaseBarH = 19, kMinPhaseStep = 160;

// Writes micro-batch numbers into the cells that have room for them; `with_chunk` adds the chunk
// ("3·1") where that fits too. place_cells() left the micro-batch in ChartCell::label.
void label_cells(const MeasureText& measure, bool with_chunk, ChartLayout& layout);

// The chart of a run without pipeline cells, as geometry: what devices and hosts did, over time.
//
//   title, sizes · span, ▪ computing ▪ communication …
//            ├ Step 0 ──────┤├ Step 1 steps
//   rank 0   ███▅▅█  ▂▂███           each pixel column: the share of its time, from below
//            ▔▔▔▔▔▔▔▔ ▔▔▔            calls of the host
// Errors: kBadInput when there are no slices of devices or calls, kUsage for an impossible width, kLimit when there
// are more ranks than fit. O(slices log slices).
Result<ChartLayout> layout_profile(const Trace& trace, const Theme& theme, const ChartOptions& options,
                                   const MeasureText& measure);

}  // namespace stageline
