#include "exporters/chart/bands_picture.h"

#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

constexpr double kBandLabel = 120;
constexpr double kBandMargin = 12;
constexpr double kBandRow = 26;
constexpr double kBandGap = 6;
constexpr double kBandText = 12;
constexpr double kBandTitle = 15;
constexpr double kBandLine = 20;

void ink(cairo_t* cr, Rgb c) { cairo_set_source_rgb(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0); }

struct BandKey {
  double x, line;
  size_t colour;
};

// Places the keys of the legend, which breaks into lines where it is too wide.
std::vector<BandKey> place_keys(const Bands& bands, const ChartFonts& fonts, double right) {
  std::vector<BandKey> keys;
  double x = kBandMargin, line = 0;
  for (size_t c = 0; c < bands.colours.size(); ++c) {
    const double wide = kBandText + 6 + fonts.measure(bands.colours[c].first, kBandText, false) + 18;
    if (x + wide > right && x > kBandMargin) x = kBandMargin, ++line;
    keys.push_back({x, line, c});
    x += wide;
  }
  return keys;
}

// Draws the shares of a row, a column of pixels at a time, from below.
void draw_shares(cairo_t* cr, const Bands& bands, const BandRow& row, double left, double bottom, size_t columns) {
  for (size_t column = 0; column < std::min(row.shares.size(), columns); ++column) {
    double below = bottom;
    for (size_t c = 0; c < row.shares[column].size(); ++c) {
      const double high = std::clamp(row.shares[column][c], 0.0, 1.0) * kBandRow;
      if (high <= 0) continue;
      ink(cr, bands.colours[c].second);
      cairo_rectangle(cr, left + column, below - high, 1, high);
      cairo_fill(cr);
      below -= high;
    }
  }
}

}  // namespace

int bands_columns(int width) { return std::max(1, width - static_cast<int>(kBandLabel + 2 * kBandMargin)); }

Result<BandsPng> bands_png(const Bands& bands) {
  const ChartFonts fonts;
  const Theme& theme = light_theme();
  const int columns = bands_columns(bands.width);
  const double left = kBandMargin + kBandLabel, right = left + columns;
  const std::vector<BandKey> keys = place_keys(bands, fonts, right);
  const double top = kBandMargin + kBandTitle + 10 + (keys.empty() ? 1 : keys.back().line + 1) * kBandLine;
  const double bottom = top + bands.rows.size() * (kBandRow + kBandGap);
  BandsPng png{.width = bands.width, .height = static_cast<int>(bottom + kBandLine + kBandMargin)};
  cairo_surface_t* image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, png.width, png.height);
  cairo_t* cr = cairo_create(image);
  ink(cr, theme.background);
  cairo_paint(cr);
  ink(cr, theme.ink);
  fonts.show(cr, kBandMargin, kBandMargin + kBandTitle, bands.title, kBandTitle, true);
  for (const BandKey& key : keys) {
    const double y = kBandMargin + kBandTitle + 10 + key.line * kBandLine;
    ink(cr, bands.colours[key.colour].second);
    cairo_rectangle(cr, key.x, y, kBandText, kBandText);
    cairo_fill(cr);
    ink(cr, theme.ink);
    fonts.show(cr, key.x + kBandText + 6, y + kBandText - 1, bands.colours[key.colour].first, kBandText, false);
  }
  for (size_t r = 0; r < bands.rows.size(); ++r) {
    const BandRow& row = bands.rows[r];
    const double y = top + r * (kBandRow + kBandGap);
    ink(cr, theme.ink);
    fonts.show(cr, kBandMargin, y + kBandRow / 2 + kBandText / 3, row.label, kBandText, false);
    draw_shares(cr, bands, row, left, y + kBandRow, static_cast<size_t>(columns));
    ink(cr, theme.line);
    cairo_set_line_width(cr, 1);
    cairo_rectangle(cr, left - 0.5, y - 0.5, columns + 1, kBandRow + 1);
    cairo_stroke(cr);
  }
  ink(cr, theme.muted);
  fonts.show(cr, left, bottom + kBandText, bands.from, kBandText, false);
  fonts.show(cr, right - fonts.measure(bands.to, kBandText, false), bottom + kBandText, bands.to, kBandText, false);
  const cairo_status_t status = cairo_status(cr);
  cairo_destroy(cr);
  if (status == CAIRO_STATUS_SUCCESS) png.bytes = png_bytes(image);
  cairo_surface_destroy(image);
  if (status != CAIRO_STATUS_SUCCESS)
    return make_error(ErrorCode::kIo, std::string("Cairo cannot draw this picture: ") + cairo_status_to_string(status));
  return png;
}

}  // namespace stageline
