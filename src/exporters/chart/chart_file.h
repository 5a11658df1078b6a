// What the three chart exporters share: options to layout, and Cairo's bytes to an OutputFile.
#pragma once

#include <cairo.h>

#include <functional>
#include <string>

#include "base/output_file.h"
#include "exporters/chart/chart_draw.h"
#include "exporters/exporter.h"

namespace stageline {

struct Chart {
  ChartLayout layout;
  ChartFonts fonts;
  const Theme& theme;
};

// Lays out the chart of `input`; fields of `options` that the input decides are overwritten.
Result<Chart> make_chart(const ExportInput& input, ChartOptions options);

// The chart as a PNG. `path` is said in errors. Errors: those of make_chart(), kLimit for too many pixels.
struct PngChart {
  std::string bytes;
  int width = 0, height = 0;
};
Result<PngChart> png_chart(const ExportInput& input, const std::string& path);

// Closure is the OutputFile. Failed writes are remembered there and told by commit().
cairo_status_t write_to_output(void* closure, const unsigned char* data, unsigned int length);

// Draws the chart onto `surface`, scaled, and finishes and destroys both. Errors: kIo with Cairo's reason.
Status paint_chart(const Chart& chart, cairo_surface_t* surface, double scale,
                   const std::function<cairo_status_t(cairo_surface_t*)>& before_finish = {});

}  // namespace stageline
