#include "exporters/chart/chart_layout.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "exporters/exporter.h"
#include "model/theory.h"
#include "torch_traces.h"
#include "unit/chart_traces.h"
#include "unit/make_trace.h"

using namespace stageline;
using namespace stageline::test;

namespace {

// Wide enough for any font, so that what holds here holds with the real one.
double measure(std::string_view text, double size, bool bold) {
  return static_cast<double>(text.size()) * size * (bold ? 0.7 : 0.62);
}

ChartLayout layout_of(const Trace& trace, ChartOptions options = {}) {
  Result<ChartLayout> layout = layout_chart(trace, options, measure);
  REQUIRE_MESSAGE(layout, (layout ? "" : layout.error().text()));
  return std::move(*layout);
}

ChartRect box_of(const ChartText& t) { return {t.x, t.y - t.size * 0.75, t.width, t.size * 0.95}; }
bool overlap(const ChartRect& a, const ChartRect& b) {
  constexpr double kSlack = 0.01;
  return a.x + a.w > b.x + kSlack && b.x + b.w > a.x + kSlack && a.y + a.h > b.y + kSlack && b.y + b.h > a.y + kSlack;
}

// Everything that must hold for any chart.
void check_layout(const Trace& trace, const ChartLayout& layout) {
  CHECK(layout.rows.size() == trace.parts.size());
  for (size_t r = 1; r < layout.rows.size(); ++r)
    CHECK(layout.rows[r].y >= layout.rows[r - 1].y + layout.rows[r - 1].h - 1e-6);
  const auto inside_row = [&](const ChartRect& box, int32_t row_index) {
    const ChartRow& row = layout.rows[row_index];
    return box.y >= row.y - 1e-6 && box.y + box.h <= row.y + row.h + 1e-6 && box.x >= layout.plot.x - 1e-6 &&
           box.x + box.w <= layout.plot.x + layout.plot.w + 1e-6;
  };
  size_t outside = 0, unfit = 0;
  for (const ChartCell& cell : layout.cells) {
    outside += inside_row(cell.box, cell.row) ? 0 : 1;
    if (cell.label < 0) continue;
    const ChartRect text = box_of(layout.cell_labels[cell.label]);
    unfit += text.x >= cell.box.x && text.x + text.w <= cell.box.x + cell.box.w && text.y >= cell.box.y &&
                     text.y + text.h <= cell.box.y + cell.box.h
                 ? 0
                 : 1;
  }
  for (const ChartBlend& blend : layout.blends) outside += inside_row(blend.box, blend.row) ? 0 : 1;
  CHECK(outside == 0);
  CHECK(unfit == 0);

  std::vector<ChartRect> texts;
  for (const ChartText& t : layout.texts) texts.push_back(box_of(t));
  for (const ChartLegendItem& item : layout.legend) texts.push_back(box_of(item.text));
  for (const ChartText& t : layout.step_labels) texts.push_back(box_of(t));
  size_t overlaps = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t k = i + 1; k < texts.size(); ++k) overlaps += overlap(texts[i], texts[k]) ? 1 : 0;
  CHECK(overlaps == 0);
  for (const ChartRect& t : texts) CHECK(t.x + t.w <= layout.width + 1e-6);

  std::set<std::string> expected, legend;
  for (const CellKind kind : trace.cells.kind) expected.insert(chart_kind(ChartLang::kEnglish, kind));
  for (const ChartLegendItem& item : layout.legend)
    if (item.mark == ChartLegendItem::Mark::kKind) CHECK(legend.insert(item.text.text).second);
  CHECK(legend == expected);
}

// Busy time of the full-height zone in pixels, as the trace says and as the layout draws it.
void check_area(const Trace& trace, const ChartLayout& layout) {
  const ChartTime time = chart_time(trace);
  const double px_per_ns = layout.plot.w / static_cast<double>(time.end_ns - time.start_ns);
  double expected = 0, drawn = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (kind_lane(trace.cells.kind[i]) == 0) expected += static_cast<double>(trace.cells.dur_ns(i)) * px_per_ns;
  for (const ChartCell& cell : layout.cells)
    if (cell.zone == 0) drawn += cell.box.w;
  for (const ChartBlend& blend : layout.blends)
    if (blend.zone == 0)
      for (const float share : blend.share) drawn += static_cast<double>(share) * blend.box.w;
  CHECK(drawn == doctest::Approx(expected).epsilon(0.002));
}

struct TempFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("stageline-chart-" + std::to_string(getpid()));
  TempFolder() { std::filesystem::create_directories(path); }
  ~TempFolder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Status write_chart(const char* exporter, const Trace& trace, const std::string& path, ExportOptions options = {}) {
  const std::vector<Table> tables;
  const Headline headline;
  const std::vector<Finding> findings;
  return find_exporter(exporter)->write({trace, trace.diagnostics, tables, headline, findings, std::move(options)},
                                        path);
}

// Enough XML to see that tags nest and attributes are quoted.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at)) {
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with("?") || tag.starts_with("!")) continue;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty();
}

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

TEST_CASE("charts of many shapes keep cells in their rows and numbers in their cells, and no texts overlap") {
  const JobShape shapes[] = {
      {},                             // 1F1B
      {4, 8, 1, 1, 1, true, 1.0},     // I and W apart
      {4, 8, 2, 1, 1, false, 1.0},    // two chunks
      {4, 8, 6, 1, 2, false, 1.0},    // chunks beyond those that lightness distinguishes
      {16, 32, 1, 4, 1, false, 1.3},  // 64 ranks
      {4, 8, 1, 2, 12, false, 1.6},   // several steps
      {2, 4, 1, 1, 300, false, 1.0},  // far more steps than pixels for numbers
      {8, 4, 1, 40, 1, false, 1.0},   // 320 ranks
      {1, 1, 1, 1, 1, false, 1.0},
  };
  for (const JobShape& shape : shapes)
    for (const double width : {0.0, 700.0, 3000.0}) {
      CAPTURE(shape.stages);
      CAPTURE(shape.steps);
      CAPTURE(width);
      const Trace trace = make_trace(shape);
      ChartOptions options;
      options.width_px = width;
      const ChartLayout layout = layout_of(trace, options);
      check_layout(trace, layout);
      check_area(trace, layout);
      CHECK((width == 0 ? layout.width >= 1320 && layout.width <= 6000 : layout.width == width));
    }
}

TEST_CASE("rows go by replica, stage and rank") {
  const Trace trace = make_trace({4, 8, 1, 2, 1, false, 1.0});
  const ChartLayout layout = layout_of(trace);
  for (size_t r = 0; r < layout.rows.size(); ++r) {
    CHECK(trace.parts[layout.rows[r].part].dp == static_cast<int32_t>(r / 4));
    CHECK(trace.parts[layout.rows[r].part].stage == static_cast<int32_t>(r % 4));
  }
  const auto has = [&](const char* text) {
    return std::any_of(layout.texts.begin(), layout.texts.end(), [&](const ChartText& t) { return t.text == text; });
  };
  CHECK(has("Stage 3"));
  CHECK(has("rank 7"));
  CHECK(has("Replica 1"));
}

TEST_CASE("64 ranks and 32 micro-batches stay readable") {
  const Trace trace = make_trace({16, 32, 1, 4, 1, false, 1.3});
  const ChartLayout layout = layout_of(trace);
  CHECK(layout.width <= 4000);
  CHECK(layout.rows[0].h >= 14);
  size_t compute = 0;
  for (const ChartCell& cell : layout.cells) compute += is_compute(cell.kind) ? 1 : 0;
  CHECK(compute == 64 * 64);
  CHECK(layout.cell_labels.size() > compute * 9 / 10);
  for (const ChartText& label : layout.cell_labels) CHECK(label.size >= 8);
}

TEST_CASE("cells of the low zone lie low, and overlapping compute is divided into lines") {
  Trace trace = make_trace({1, 1, 1, 1, 1, false, 1.0});
  trace.cells = {};
  trace.cells.add({0, 0, CellKind::kForward, 0, 0, 0, 1000, kNoSlice});
  trace.cells.add({0, 0, CellKind::kWeightGrad, 0, 1, 400, 1400, kNoSlice});
  trace.cells.add({0, 0, CellKind::kCollective, kUnknown, kUnknown, 500, 1500, kNoSlice});
  trace.cells.add({0, 0, CellKind::kForward, 0, 2, 1600, 2000, kNoSlice});
  const ChartLayout layout = layout_of(trace);
  REQUIRE(layout.cells.size() == 4);
  const double h = layout.rows[0].h;
  for (const ChartCell& cell : layout.cells) {
    if (cell.kind == CellKind::kCollective) CHECK(cell.box.h == doctest::Approx(h * 0.36));
    if (cell.kind == CellKind::kWeightGrad) CHECK(cell.box.h == doctest::Approx(h / 2));
  }
  CHECK(layout.cells[2].box.h == doctest::Approx(h));  // the last forward overlaps nothing
  CHECK_FALSE(overlap(layout.cells[0].box, layout.cells[1].box));
}

TEST_CASE("cells below a pixel are summed, not lost and not inflated") {
  Trace trace = make_trace({1, 1, 1, 1, 1, false, 1.0});
  trace.cells = {};
  for (int64_t i = 0; i < 200'000; ++i)  // busy a quarter of the time: F 10, idle 30
    trace.cells.add({0, 0, i % 2 ? CellKind::kForward : CellKind::kBackward, 0, 0, i * 40, i * 40 + 10, kNoSlice});
  const ChartLayout layout = layout_of(trace);
  CHECK(layout.cells.empty());
  CHECK(layout.blends.size() < 7000);
  check_area(trace, layout);
  const ChartBlend& middle = layout.blends[layout.blends.size() / 2];
  CHECK(middle.share[KindGroup::kForward] == doctest::Approx(0.125).epsilon(0.2));
}

TEST_CASE("ticks start at zero, keep apart and share one unit") {
  for (const int64_t span : {int64_t{7}, int64_t{950}, int64_t{31'000}, int64_t{611'000'000}, int64_t{2'210'000'000},
                             int64_t{414'000'000'000}, int64_t{7'200'000'000'000}, int64_t{400'000'000'000'000}})
    for (const double width : {200.0, 1100.0, 5800.0}) {
      const std::vector<ChartTick> ticks = chart_ticks(span, width, 84);
      REQUIRE(!ticks.empty());
      CHECK(ticks[0].x == 0);
      CHECK(ticks[0].label.starts_with("0"));
      for (size_t i = 1; i < ticks.size(); ++i) {
        CHECK(ticks[i].x - ticks[i - 1].x >= 84 - 1e-6);
        CHECK(ticks[i].label != ticks[i - 1].label);
      }
    }
  CHECK(chart_ticks(2'210'000'000, 1000, 84)[1].label == "0.2\u202fs");
}

TEST_CASE("a chart tells when its clocks cannot be compared") {
  Trace trace = make_trace({});
  const auto says = [&](const std::string& words) {
    std::string all;
    for (const ChartText& t : layout_of(trace).texts) all += t.text;
    return all.find(words) != std::string::npos;
  };
  CHECK_FALSE(says("clock"));
  trace.clock = ClockState::kPerRank;
  trace.steps_laid_end_to_end = true;
  CHECK(says("not on one clock"));
  CHECK(says("drawn end to end"));
  // Zeros hours apart: every row starts at its own first cell.
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const int64_t shift = int64_t{3'600'000'000'000} * trace.cells.part[i];
    trace.cells.start_ns[i] += shift;
    trace.cells.end_ns[i] += shift;
  }
  const ChartTime time = chart_time(trace);
  CHECK(time.end_ns - time.start_ns < 2'000'000'000);
  check_layout(trace, layout_of(trace));
}

TEST_CASE("what cannot be drawn is an error") {
  Trace trace = make_trace({});
  ChartOptions narrow;
  narrow.width_px = 60;
  CHECK(layout_chart(trace, narrow, measure).error().code == ErrorCode::kUsage);
  trace.parts.resize(40'000, trace.parts[0]);
  CHECK(layout_chart(trace, {}, measure).error().code == ErrorCode::kLimit);
  const TempFolder folder;
  Trace empty;
  empty.parts.resize(2);
  for (const char* name : {"svg", "png", "pdf"}) {
    const Status status = write_chart(name, empty, folder.file("empty"));
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kBadInput);
    const Status nowhere = write_chart(name, make_trace({}), "/nonexistent-folder/chart");
    REQUIRE_FALSE(nowhere);
    CHECK(nowhere.error().code == ErrorCode::kIo);
  }
  ExportOptions wide;
  wide.width_px = 40'000;
  CHECK_FALSE(write_chart("png", make_trace({}), folder.file("wide.png"), wide));
  CHECK(std::filesystem::is_empty(folder.path));  // nothing half-written is left
}

TEST_CASE("chart files have the format of their extension, and are the same every time") {
  const TempFolder folder;
  const Trace trace = make_trace({4, 8, 1, 1, 1, true, 1.0});
  ExportOptions options;
  for (const char* name : {"svg", "png", "pdf"})
    for (const char* round : {"1.", "2."}) {
      // Cairo 1.16 itself leaks 768 bytes when it embeds a CFF font (Chinese) in a PDF.
      options.title = std::string("a < b & \"c\"") + (std::strcmp(name, "pdf") == 0 ? "" : " 流水线");
      const Status status = write_chart(name, trace, folder.file((std::string(round) + name).c_str()), options);
      REQUIRE_MESSAGE(status, (status ? "" : status.error().text()));
    }
  const std::string svg = contents(folder.file("1.svg"));
  CHECK(well_formed(svg));
  CHECK(svg.find("<title>a &lt; b &amp; \"c\" 流水线</title>") != std::string::npos);
  const bool same_svg = svg == contents(folder.file("2.svg"));  // CHECK would print both
  CHECK(same_svg);
  const std::string pdf = contents(folder.file("1.pdf"));
  CHECK(pdf.starts_with("%PDF-1."));
  const bool same_pdf = pdf == contents(folder.file("2.pdf"));
  CHECK(same_pdf);
  const std::string png = contents(folder.file("1.png"));
  CHECK(png.starts_with("\x89PNG\r\n\x1a\n"));
  CHECK(big_endian(png, 16) >= 2640);  // at least 1320 CSS pixels, twice as fine
  const bool same_png = png == contents(folder.file("2.png"));
  CHECK(same_png);
  options.width_px = 1001;
  REQUIRE(write_chart("png", trace, folder.file("3.png"), options));
  CHECK(big_endian(contents(folder.file("3.png")), 16) == 1001);
}

TEST_CASE("chart: ghosts stand in the gaps under their rows, phases have notches and bars") {
  const Trace trace = stageline::testing::make_1f1b_trace({.stages = 4, .micro_batches = 8, .steps = 2});
  Theory theory;
  theory.schedule = "1f1b";
  theory.start_ns = trace.cells.start_ns;
  theory.end_ns = trace.cells.end_ns;
  theory.fused.assign(trace.cells.size(), false);
  theory.start_ns[3] = kNoTheory;
  for (const StepRange& step : step_ranges(trace.cells))
    theory.steps.push_back({step.step, 0, trace.cells.start_ns[step.begin],
                            *std::max_element(theory.end_ns.begin() + static_cast<long>(step.begin),
                                              theory.end_ns.begin() + static_cast<long>(step.end)),
                            0, 0});
  ChartOptions options;
  const ChartLayout plain = layout_of(trace, options);
  CHECK(plain.ghosts.empty());
  CHECK(plain.phase_marks.size() == 2 * 4 * 2);
  CHECK(plain.phase_bars.size() == 2 * 3);
  options.theory = &theory;
  const ChartLayout layout = layout_of(trace, options);
  check_layout(trace, layout);
  check_area(trace, layout);
  CHECK(layout.height == plain.height);
  REQUIRE(layout.ghosts.size() == layout.cells.size() - 1);
  for (const ChartCell& ghost : layout.ghosts) {
    const ChartRow& row = layout.rows[ghost.row];
    CHECK(ghost.box.y > row.y + row.h);
    if (static_cast<size_t>(ghost.row) + 1 < layout.rows.size())
      CHECK(ghost.box.y + ghost.box.h < layout.rows[static_cast<size_t>(ghost.row) + 1].y);
    CHECK(ghost.label == -1);
  }
  CHECK(layout.theory_end_x.size() == 2);
  options.ghosts = Ghosts::kOff;
  CHECK(layout_of(trace, options).ghosts.empty());

  // 100 ranks have rows without room. On request they make some.
  const Trace many = stageline::testing::make_1f1b_trace({.stages = 4, .micro_batches = 8, .dp = 25});
  Theory same;
  same.schedule = "1f1b";
  same.start_ns = many.cells.start_ns;
  same.end_ns = many.cells.end_ns;
  same.fused.assign(many.cells.size(), false);
  options.theory = &same;
  options.ghosts = Ghosts::kAuto;
  CHECK(layout_of(many, options).ghosts.empty());
  options.ghosts = Ghosts::kOn;
  const ChartLayout forced = layout_of(many, options);
  CHECK(forced.ghosts.size() == forced.cells.size());
  check_layout(many, forced);
}

TEST_CASE("chart of a profile: each colour's area is its time, and of work side by side the first kind counts") {
  const Trace trace =
      torch_trace({call("cudaLaunchKernel", "0", "10", 1), work("gemm", "10", "40", 1),
                   work("ncclKernel_AllReduce_RING", "30", "50", 2, 20), call("aten::mm", "85", "15", 3)});
  for (const double width : {400.0, 1320.0}) {
    ChartOptions options;
    options.width_px = width;
    const Result<ChartLayout> layout = layout_profile(trace, light_theme(), options, measure);
    REQUIRE(layout);
    const double px_per_us = layout->plot.w / 100;
    const auto area = [&](Rgb colour, double height) {
      double sum = 0;
      for (const ChartPiece& piece : layout->pieces)
        if (piece.paint == ChartPiece::Paint::kFill &&
            std::tie(piece.colour.r, piece.colour.g, piece.colour.b) == std::tie(colour.r, colour.g, colour.b) &&
            piece.box.y >= layout->plot.y)
          sum += piece.box.w * piece.box.h;
      return sum / height / px_per_us;
    };
    CHECK(area(light_theme().kernel[0], 34) == doctest::Approx(40).epsilon(0.001));
    CHECK(area(light_theme().kernel[1], 34) == doctest::Approx(30).epsilon(0.001));  // 20 of 50 are hidden
    CHECK(area(light_theme().muted, 10) == doctest::Approx(25).epsilon(0.001));
    for (const ChartPiece& piece : layout->pieces) {
      CHECK(piece.box.x + piece.box.w <= layout->width);
      CHECK(piece.box.y + piece.box.h <= layout->height);
    }
  }
}
