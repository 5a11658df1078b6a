#include "exporters/chart/chart_file.h"

#include "exporters/chart/plan_panels.h"

namespace stageline {

Result<Chart> make_chart(const ExportInput& input, ChartOptions options) {
  ChartFonts fonts;
  options.width_px = input.options.width_px;
  options.title = input.options.title;
  options.lang = chart_lang(input.options.lang);
  options.ghosts = input.options.ghosts;
  if (input.theory && options.ghosts != Ghosts::kOff) options.theory = &input.theory();
  const MeasureText measure = [&](std::string_view text, double size, bool bold) {
    return fonts.measure(text, size, bold);
  };
  const Theme& theme = input.options.dark ? dark_theme() : light_theme();
  TRY(layout, input.trace.cells.size() > 0 ? layout_chart(input.trace, options, measure)
                                           : layout_profile(input.trace, theme, options, measure));
  if (input.options.plan) place_plan(*input.options.plan, theme, options.lang, measure, *layout);
  return Chart{std::move(*layout), std::move(fonts), theme};
}

cairo_status_t write_to_output(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<OutputFile*>(closure)->write({reinterpret_cast<const char*>(data), length});
  return CAIRO_STATUS_SUCCESS;
}

Status paint_chart(const Chart& chart, cairo_surface_t* surface, double scale,
                   const std::function<cairo_status_t(cairo_surface_t*)>& before_finish) {
  cairo_t* cr = cairo_create(surface);
  cairo_scale(cr, scale, scale);
  draw_chart(cr, chart.layout, chart.theme, chart.fonts);
  cairo_status_t status = cairo_status(cr);
  cairo_destroy(cr);
  if (status == CAIRO_STATUS_SUCCESS && before_finish) status = before_finish(surface);
  cairo_surface_finish(surface);
  if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
  cairo_surface_destroy(surface);
  if (status != CAIRO_STATUS_SUCCESS)
    return make_error(ErrorCode::kIo, std::string("Cairo cannot draw this chart: ") + cairo_status_to_string(status));
  return {};
}

}  // namespace stageline
