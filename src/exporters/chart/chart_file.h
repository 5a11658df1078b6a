// The three chart exporters share these steps: from options to layout, and from Cairo's bytes to an OutputFile.
#pragma once

#include "base/output_file.h"
#include "exporters/chart/chart_layout.h"

namespace stageline {

// Paints a ChartLayout with Cairo. The strokes are the same on every kind of surface (SVG, PNG, PDF).
void draw_chart(cairo_t* cr, const ChartLayout& layout, const Theme& theme, const ChartFonts& fonts);

struct Chart {
  ChartLayout layout;
  ChartFonts fonts;
  const Theme& theme;
};

// Lays out the chart of `input`; fields of `options` that the input decides are overwritten.
Result<Chart> make_chart(const ExportInput& input, ChartOptions options);

struct PngChart {
  std::string bytes;
  int width = 0, height = 0;
};
// Returns the chart as a PNG. `path` is for messages. Errors: those of make_chart(), and kLimit for too many pixels.
Result<PngChart> png_chart(const ExportInput& input, const std::string& path);

// Cairo calls this to write. `closure` is the OutputFile; it remembers failed writes, and its commit() reports them.
cairo_status_t write_to_output(void* closure, const unsigned char* data, unsigned int length);

// Draws the chart onto `surface`, multiplied by `scale`, then finishes and destroys the surface. Errors: kIo with
// Cairo's reason.
Status paint_chart(const Chart& chart, cairo_surface_t* surface, double scale,
                   const std::function<cairo_status_t(cairo_surface_t*)>& before_finish = {});

// Returns the PNG of an image of CAIRO_FORMAT_RGB24 with 8 bits a colour. Expects that nothing draws on it any more.
// Cairo's own writer is not used: it tries every filter on every row, which took two thirds of the time of a small
// report. Definition: ISO/IEC 15948. O(pixels).
std::string png_bytes(cairo_surface_t* image);

}  // namespace stageline
