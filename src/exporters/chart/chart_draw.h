// Paints a ChartLayout with Cairo, the same strokes on whatever surface is behind the context.
#pragma once

#include <cairo.h>

#include "exporters/chart/chart_layout.h"
#include "exporters/chart/chart_text.h"
#include "model/palette.h"

namespace stageline {

void draw_chart(cairo_t* cr, const ChartLayout& layout, const Theme& theme, const ChartFonts& fonts);

}  // namespace stageline
