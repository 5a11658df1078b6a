// The three chart exporters share these steps: from options to layout, and from Cairo's bytes to an OutputFile.
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

// Returns the chart as a PNG. `path` is for messages. Errors: those of make_chart(), and kLimit for too many pixels.
struct PngChart {
  std::string bytes;
  int width = 0, height = 0;
};
Result<PngChart> png_chart(const ExportInput& input, const std::string& path);

// Cairo calls this to write. `closure` is the OutputFile; it remembers failed writes, and its commit() reports them.
cairo_status_t write_to_output(void* closure, const unsigned char* data, unsigned int length);

// Draws the chart onto `surface`, multiplied by `scale`, then finishes and destroys the surface. Errors: kIo with
// Cairo's reason.
Status paint_chart(const Chart& chart, cairo_surface_t* surface, double scale,
                   const std::function<cairo_status_t(cairo_surface_t*)>& before_finish = {});

}  // namespace stageline
