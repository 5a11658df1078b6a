// Paints a ChartLayout with Cairo. The strokes are the same on every kind of surface (SVG, PNG, PDF).
#pragma once

#include <cairo.h>

#include "exporters/chart/chart_layout.h"
#include "exporters/chart/chart_text.h"
#include "model/palette.h"

namespace stageline {

void draw_chart(cairo_t* cr, const ChartLayout& layout, const Theme& theme, const ChartFonts& fonts);

}  // namespace stageline
