// Draws the pipeline chart as a PNG. The picture has twice the resolution of its CSS size while it stays handy.
#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

constexpr double kMaxPixels = 32767;  // Cairo's limit for one side of an image
constexpr double kMaxArea = 100e6;    // at 4 bytes for each pixel
constexpr double kHandyWidth = 4400;  // a sharper picture than this is useless

}  // namespace

Status write_png(const ExportInput& input, const std::string& path) {
  if (input.options.width_px > kMaxPixels)
    return make_error(ErrorCode::kUsage, "a PNG is at most 32767 pixels wide", "SVG and PDF have no such limit",
                      {path});
  TRY(out, OutputFile::create(path));
  TRY(chart, png_chart(input, path));
  out->write(chart->bytes);
  return out->commit();
}

Result<PngChart> png_chart(const ExportInput& input, const std::string& path) {
  ChartOptions options;
  options.max_objects = 400'000;
  if (input.options.width_px == 0 && input.options.max_width_px > 0) options.max_width_px = input.options.max_width_px;
  TRY(chart, make_chart(input, options));
  const ChartLayout& layout = chart->layout;
  // A width that was asked for is a width in pixels.
  const bool fine = input.options.width_px == 0 && input.options.max_width_px == 0 && layout.width * 2 <= kHandyWidth &&
                    layout.height * 2 <= kMaxPixels && layout.width * layout.height * 4 <= kMaxArea;
  const double scale = fine ? 2 : 1;
  const double width = layout.width * scale, height = layout.height * scale;
  if (width > kMaxPixels || height > kMaxPixels || width * height > kMaxArea)
    return make_error(ErrorCode::kLimit, "the picture would have more pixels than a PNG can hold here",
                      "choose fewer ranks or a smaller width, or write SVG or PDF", {path});
  PngChart png{.width = static_cast<int>(width), .height = static_cast<int>(height)};
  cairo_surface_t* image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, png.width, png.height);
  const Status painted = paint_chart(*chart, image, scale, [&](cairo_surface_t* surface) {
    png.bytes = png_bytes(surface);
    return cairo_surface_status(surface);
  });
  if (!painted) return painted.error();
  return png;
}

}  // namespace stageline
