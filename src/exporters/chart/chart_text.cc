#include "exporters/chart/chart_text.h"

#include <cairo-ft.h>

#include <mutex>

#include "base/embedded.h"

namespace stageline {
namespace {

constexpr double kMeasureSize = 100;

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

// Returns one of the program's own fonts, read by FreeType. Each font is opened once and kept. The charts of all
// threads can share it, because Cairo locks a face while it works with it. `bytes` must stay where they are.
FT_Face open_font(const std::string& bytes) {
  static std::mutex opening;
  const std::lock_guard lock(opening);
  static FT_Library library = nullptr;
  [[maybe_unused]] FT_Error error = library ? FT_Err_Ok : FT_Init_FreeType(&library);
  assert(error == FT_Err_Ok);
  FT_Face face = nullptr;
  error = FT_New_Memory_Face(library, reinterpret_cast<const FT_Byte*>(bytes.data()), bytes.size(), 0, &face);
  assert(error == FT_Err_Ok);
  return face;
}

FT_Face latin(bool bold) {
  static const auto& regular_bytes = *new std::string(embedded_file("DejaVuSans.ttf"));
  static const auto& bold_bytes = *new std::string(embedded_file("DejaVuSans-Bold.ttf"));
  static const FT_Face regular_face = open_font(regular_bytes), bold_face = open_font(bold_bytes);
  return bold ? bold_face : regular_face;
}

// Returns the Chinese face. The font has one weight and is opened twice, because Cairo makes the bold letters from it
// by thickening, and such a setting applies to the face everywhere.
FT_Face chinese(bool bold) {
  static const auto& bytes = *new std::string(embedded_file("wqy-microhei.ttc"));
  static const FT_Face regular_face = open_font(bytes), bold_face = open_font(bytes);
  return bold ? bold_face : regular_face;
}

// CJK, kana, hangul and full-width forms start at U+2E80, which is E2 BA in UTF-8. Everything before that is Latin.
bool is_wide(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(k < text.size() ? text[k] : 0); };
  return byte(i) > 0xe2 || (byte(i) == 0xe2 && byte(i + 1) >= 0xba);
}

}  // namespace

ChartFonts::ChartFonts() {
  for (int f = 0; f < 2; ++f) face_[f] = cairo_ft_font_face_create_for_ft_face(latin(f == 1), 0);
  for (int f = 0; f < 2; ++f) scaled_[f] = make_scaled(face_[f]);
}

ChartFonts::ChartFonts(ChartFonts&& other) noexcept {
  for (int f = 0; f < 4; ++f) {
    face_[f] = std::exchange(other.face_[f], nullptr);
    scaled_[f] = std::exchange(other.scaled_[f], nullptr);
  }
}

int ChartFonts::face_of(bool wide, bool bold) const {
  const int f = (wide ? 2 : 0) + (bold ? 1 : 0);
  if (!face_[f]) {  // one of the Chinese faces, which few charts need
    face_[f] = cairo_ft_font_face_create_for_ft_face(chinese(bold), 0);
    if (bold) cairo_ft_font_face_set_synthesize(face_[f], CAIRO_FT_SYNTHESIZE_BOLD);
    scaled_[f] = make_scaled(face_[f]);
  }
  return f;
}

ChartFonts::~ChartFonts() {
  for (cairo_scaled_font_t* font : scaled_) cairo_scaled_font_destroy(font);
  for (cairo_font_face_t* face : face_) cairo_font_face_destroy(face);
}

// Calls run(text, wide) for each stretch of one face. Invalid UTF-8 is repaired first: it would put Cairo into a
// permanent error state, and the whole picture would be lost.
template <class Run> void ChartFonts::for_each_run(std::string_view raw, Run run) const {
  std::string text = valid_utf8(raw);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  for (size_t begin = 0; begin < text.size();) {
    const bool wide = is_wide(text, begin);
    size_t end = begin;
    while (end < text.size() && (((text[end] & 0xc0) == 0x80) || is_wide(text, end) == wide)) ++end;
    run(text.substr(begin, end - begin), wide);
    begin = end;
  }
}

double ChartFonts::measure(std::string_view text, double size, bool bold) const {
  double width = 0;
  for_each_run(text, [&](const std::string& run, bool wide) {
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(scaled_[face_of(wide, bold)], run.c_str(), &extents);
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
    cairo_set_font_face(cr, face_[face_of(wide, bold)]);
    cairo_set_font_size(cr, size);
    cairo_move_to(cr, x, y);
    cairo_show_text(cr, run.c_str());
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(scaled_[face_of(wide, bold)], run.c_str(), &extents);
    x += extents.x_advance * size / kMeasureSize;
  });
}

cairo_status_t append_to_text(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

ChartLang chart_lang(const std::string& name) {
  return std::string_view(name).starts_with("zh") ? ChartLang::kChinese : ChartLang::kEnglish;
}

std::string chart_word(ChartLang lang, std::string_view name, const Args& args) {
  return words("chart." + std::string(name), args).in(lang == ChartLang::kChinese);
}
std::string chart_number(ChartLang lang, std::string_view name, int32_t number) {
  return chart_word(lang, name, Args().set("n", int64_t{number}));
}
std::string chart_count(ChartLang lang, std::string_view name, int64_t count) {
  return chart_word(lang, name, Args().count("n", count));
}
std::string chart_replica(ChartLang lang, const Trace& trace, int32_t dp) {
  return chart_number(lang, trace.context_parallel > 1 ? "pipeline" : "replica", dp);
}

std::string chart_kind(ChartLang lang, CellKind kind) {
  const std::string own = "chart.kind." + std::string(is_message(kind) ? "message" : kind_code(kind));
  const Text text = words(has_words(own) ? own : "kind." + std::string(kind_code(kind)));
  return text.in(lang == ChartLang::kChinese);
}

std::string chart_ghost(ChartLang lang, const std::string& schedule) {
  return chart_word(lang, "ghost", Args().set("schedule", schedule));
}

std::string chart_title(ChartLang lang, int32_t first_step, int32_t last_step) {
  if (first_step == kUnknown) return chart_word(lang, "title");
  const Args args = Args().set("first", int64_t{first_step}).set("last", int64_t{last_step});
  return chart_word(lang, first_step == last_step ? "title.step" : "title.steps", args);
}

std::string chart_clocks_aligned(ChartLang lang, const ClockSummary& clocks) {
  Args args;
  args.set("by", evidence_list(clocks.by)).set("error", clocks.error_ns < 0 ? "" : human_duration(clocks.error_ns));
  args.set("half", clocks.half_ns < 0 ? "" : human_duration(clocks.half_ns));
  const Args unaligned = Args().count("n", std::ssize(clocks.untied));
  args.set("unaligned", clocks.untied.empty() ? Text{} : words("chart.clocks.unaligned_ranks", unaligned));
  return chart_word(lang, "clocks.aligned", args);
}

}  // namespace stageline
