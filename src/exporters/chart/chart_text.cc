#include "exporters/chart/chart_text.h"

#include <utility>

#include "base/text.h"

namespace stageline {
namespace {

constexpr double kMeasureSize = 100;
// Sans faces with simplified Chinese, the most likely first. Fontconfig answers an unknown name
// with some other font, so each candidate is asked whether it has the character.
constexpr const char* kChineseFamilies[] = {"Noto Sans CJK SC",    "Source Han Sans SC",  "Source Han Sans CN",
                                            "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",   "PingFang SC",
                                            "Microsoft YaHei",     "Droid Sans Fallback", "sans-serif"};

cairo_font_face_t* make_face(const char* family, bool bold) {
  return cairo_toy_font_face_create(family, CAIRO_FONT_SLANT_NORMAL,
                                    bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
}

cairo_scaled_font_t* make_scaled(cairo_font_face_t* face) {
  cairo_matrix_t size, identity;
  cairo_matrix_init_scale(&size, kMeasureSize, kMeasureSize);
  cairo_matrix_init_identity(&identity);
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_scaled_font_t* scaled = cairo_scaled_font_create(face, &size, &identity, options);
  cairo_font_options_destroy(options);
  return scaled;
}

bool has_glyph(cairo_scaled_font_t* font, std::string_view character) {
  cairo_glyph_t* glyphs = nullptr;
  int count = 0;
  const cairo_status_t status = cairo_scaled_font_text_to_glyphs(
      font, 0, 0, character.data(), static_cast<int>(character.size()), &glyphs, &count, nullptr, nullptr, nullptr);
  const bool found = status == CAIRO_STATUS_SUCCESS && count > 0 && glyphs[0].index != 0;
  cairo_glyph_free(glyphs);
  return found;
}

// CJK, kana, hangul and full-width forms start at U+2E80, in UTF-8 at E2 BA; everything shorter is Latin.
bool is_wide(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(k < text.size() ? text[k] : 0); };
  return byte(i) > 0xe2 || (byte(i) == 0xe2 && byte(i + 1) >= 0xba);
}

}  // namespace

Result<ChartFonts> ChartFonts::load() {
  ChartFonts fonts;
  for (int bold = 0; bold < 2; ++bold) {
    fonts.face_[bold] = make_face("sans-serif", bold != 0);
    fonts.scaled_[bold] = make_scaled(fonts.face_[bold]);
    if (!has_glyph(fonts.scaled_[bold], "0"))
      return Error{
          ErrorCode::kUnavailable, "no font found to write with", {}, "install one, such as fonts-dejavu-core"};
  }
  for (const char* family : kChineseFamilies) {
    fonts.face_[2] = make_face(family, false);
    fonts.scaled_[2] = make_scaled(fonts.face_[2]);
    fonts.face_[3] = make_face(family, true);
    fonts.scaled_[3] = make_scaled(fonts.face_[3]);
    fonts.chinese_ = has_glyph(fonts.scaled_[2], "步") && has_glyph(fonts.scaled_[3], "步");
    if (fonts.chinese_) break;
    for (int f = 2; f < 4; ++f) {
      cairo_scaled_font_destroy(std::exchange(fonts.scaled_[f], nullptr));
      cairo_font_face_destroy(std::exchange(fonts.face_[f], nullptr));
    }
  }
  fonts.thin_space_ = has_glyph(fonts.scaled_[0], "\u202f") && has_glyph(fonts.scaled_[1], "\u202f");
  return fonts;
}

ChartFonts::ChartFonts(ChartFonts&& other) noexcept : chinese_(other.chinese_), thin_space_(other.thin_space_) {
  for (int f = 0; f < 4; ++f) {
    face_[f] = std::exchange(other.face_[f], nullptr);
    scaled_[f] = std::exchange(other.scaled_[f], nullptr);
  }
}

ChartFonts::~ChartFonts() {
  for (cairo_scaled_font_t* font : scaled_) cairo_scaled_font_destroy(font);
  for (cairo_font_face_t* face : face_) cairo_font_face_destroy(face);
}

// run(text, wide) for each stretch of one face. Cairo turns invalid UTF-8 into a sticky error that
// would cost the whole picture, so the text is repaired first.
template <class Run>
void ChartFonts::for_each_run(std::string_view raw, Run run) const {
  std::string text = valid_utf8(raw);
  for (size_t at = 0; !thin_space_ && (at = text.find("\u202f", at)) != std::string::npos;) text.replace(at, 3, " ");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  for (size_t begin = 0; begin < text.size();) {
    const bool wide = chinese_ && is_wide(text, begin);
    size_t end = begin;
    while (end < text.size() && (((text[end] & 0xc0) == 0x80) || (chinese_ && is_wide(text, end)) == wide)) ++end;
    run(text.substr(begin, end - begin), wide);
    begin = end;
  }
}

double ChartFonts::measure(std::string_view text, double size, bool bold) const {
  double width = 0;
  for_each_run(text, [&](const std::string& run, bool wide) {
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(scaled_[(wide ? 2 : 0) + (bold ? 1 : 0)], run.c_str(), &extents);
    width += extents.x_advance;
  });
  return width * size / kMeasureSize;
}

void ChartFonts::show(cairo_t* cr, double x, double y, std::string_view text, double size, bool bold) const {
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(cr, options);
  cairo_font_options_destroy(options);
  for_each_run(text, [&](const std::string& run, bool wide) {
    cairo_set_font_face(cr, face_[(wide ? 2 : 0) + (bold ? 1 : 0)]);
    cairo_set_font_size(cr, size);
    cairo_move_to(cr, x, y);
    cairo_show_text(cr, run.c_str());
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(scaled_[(wide ? 2 : 0) + (bold ? 1 : 0)], run.c_str(), &extents);
    x += extents.x_advance * size / kMeasureSize;
  });
}

}  // namespace stageline
