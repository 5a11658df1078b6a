// Draws the pipeline chart as an SVG. Cairo writes text as outlines, which readers and searches cannot see. So the
// title is added as SVG's own <title> element.
#include <cairo-svg.h>

#include "exporters/chart/chart_file.h"

namespace stageline {
namespace {

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    if (c == '&') escaped += "&amp;";
    else if (c == '<') escaped += "&lt;";
    else if (c == '>') escaped += "&gt;";
    else if (static_cast<unsigned char>(c) < 0x20) escaped += ' ';
    else escaped += c;
  return escaped;
}

void add_title(std::string& svg, const std::string& title) {
  const size_t tag = svg.find("<svg");
  const size_t end = tag == std::string::npos ? tag : svg.find('>', tag);
  if (end != std::string::npos) svg.insert(end + 1, "\n<title>" + xml_escaped(title) + "</title>");
}

// Cairo 1.16 numbers its surfaces through the whole process, so a second chart would differ from the first. This
// removes the number.
void drop_surface_number(std::string& svg) {
  constexpr std::string_view kBefore = "<g id=\"surface";
  const size_t at = svg.find(kBefore);
  if (at == std::string::npos) return;
  const size_t end = svg.find('"', at + kBefore.size());
  if (end != std::string::npos) svg.replace(at, end + 1 - at, "<g id=\"chart\"");
}

}  // namespace

Status write_svg(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  TRY(chart, make_chart(input, {}));
  std::string text;
  cairo_surface_t* svg =
      cairo_svg_surface_create_for_stream(append_to_text, &text, chart->layout.width, chart->layout.height);
  cairo_svg_surface_set_document_unit(svg, CAIRO_SVG_UNIT_PX);
  const Status painted = paint_chart(*chart, svg, 1);
  if (!painted) return painted.error();
  add_title(text, chart->layout.title);
  drop_surface_number(text);
  out->write(text);
  return out->commit();
}

}  // namespace stageline
