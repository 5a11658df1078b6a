// Draws the pipeline chart on one PDF page of the chart's size, with text as text.
#include <cairo-pdf.h>

#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

constexpr double kPointsPerPixel = 0.75;  // 72 points and 96 CSS pixels are one inch
constexpr double kMaxPoints = 14400;      // ISO 32000, annex C: viewers need not show larger pages

}  // namespace

Status write_pdf(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  TRY(chart, make_chart(input, {}));
  const double longest = std::max(chart->layout.width, chart->layout.height);
  const double scale = std::min(kPointsPerPixel, kMaxPoints / longest);
  cairo_surface_t* pdf = cairo_pdf_surface_create_for_stream(write_to_output, &*out, chart->layout.width * scale,
                                                             chart->layout.height * scale);
  cairo_pdf_surface_set_metadata(pdf, CAIRO_PDF_METADATA_TITLE, chart->layout.title.c_str());
  cairo_pdf_surface_set_metadata(pdf, CAIRO_PDF_METADATA_CREATOR, "Stageline " STAGELINE_VERSION);
  // Without this Cairo would write the time of day, but the same input must give the same bytes.
  cairo_pdf_surface_set_metadata(pdf, CAIRO_PDF_METADATA_CREATE_DATE, "");
  const Status painted = paint_chart(*chart, pdf, scale);
  if (!painted) return painted.error();
  return out->commit();
}

}  // namespace stageline
