// SVG: the pipeline chart as vectors. Cairo writes text as outlines, so what a reader or a search
// would miss, the title, is added as the element that SVG has for it.
#include <cairo-svg.h>

#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

struct SvgSink {
  OutputFile& out;
  std::string title;
  std::string head;  // what came before the end of the <svg …> tag
  bool titled = false;
};

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (static_cast<unsigned char>(c) < 0x20)
      escaped += ' ';
    else
      escaped += c;
  }
  return escaped;
}

cairo_status_t write_svg_bytes(void* closure, const unsigned char* data, unsigned int length) {
  auto& sink = *static_cast<SvgSink*>(closure);
  const std::string_view bytes(reinterpret_cast<const char*>(data), length);
  if (sink.titled) {
    sink.out.write(bytes);
    return CAIRO_STATUS_SUCCESS;
  }
  sink.head += bytes;
  const size_t tag = sink.head.find("<svg");
  const size_t end = tag == std::string::npos ? tag : sink.head.find('>', tag);
  if (end != std::string::npos) {
    sink.head.insert(end + 1, "\n<title>" + xml_escaped(sink.title) + "</title>");
    sink.out.write(sink.head);
    sink.titled = true;
  }
  return CAIRO_STATUS_SUCCESS;
}

Status write_svg(const ExportInput& input, const std::string& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return std::move(out).error();
  Result<Chart> chart = make_chart(input, {});
  if (!chart) return std::move(chart).error();
  SvgSink sink{*out, chart->layout.title, {}, false};
  cairo_surface_t* svg =
      cairo_svg_surface_create_for_stream(write_svg_bytes, &sink, chart->layout.width, chart->layout.height);
  cairo_svg_surface_set_document_unit(svg, CAIRO_SVG_UNIT_PX);
  const Status painted = paint_chart(*chart, svg, 1);
  if (!painted) return painted.error();
  return out->commit();
}

}  // namespace

extern const Exporter svg_exporter;
const Exporter svg_exporter = {"svg", "the pipeline chart as vectors", {"svg"}, false, write_svg};

}  // namespace stageline
