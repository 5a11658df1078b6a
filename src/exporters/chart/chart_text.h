// Draws text in charts. There is one face for Latin and one for Chinese. Text is measured without hinting, so that a
// label is as wide in SVG and PDF as it is in PNG. Cairo's own text calls use a single font file and show boxes for the
// characters it lacks. Therefore a text is cut into runs, each in the face that has its characters. The program carries
// the fonts, so charts are the same on every machine.
#pragma once

#include <cairo.h>

#include "model/trace.h"

namespace stageline {

class ChartFonts {
 public:
  ChartFonts();
  ChartFonts(ChartFonts&& other) noexcept;
  ChartFonts& operator=(ChartFonts&&) = delete;
  ~ChartFonts();

  // Returns the advance of one line of UTF-8 text, in the unit of `size`.
  double measure(std::string_view text, double size, bool bold) const;
  // Draws with the current source. (x, y) is the left end of the baseline.
  void show(cairo_t* cr, double x, double y, std::string_view text, double size, bool bold) const;

 private:
  template <class Run> void for_each_run(std::string_view text, Run run) const;
  int face_of(bool wide, bool bold) const;
  // [0] is regular, [1] bold, [2] Chinese regular, [3] Chinese bold; each is scaled to 100 units.
  mutable cairo_font_face_t* face_[4] = {};
  mutable cairo_scaled_font_t* scaled_[4] = {};
};

// Cairo calls this to write: appends to a std::string, its closure. Charts are at most a few MB
// (ChartOptions::max_objects).
cairo_status_t append_to_text(void* closure, const unsigned char* data, unsigned int length);

// Holds the words of a chart in the two languages, English and Chinese.
enum class ChartLang : uint8_t { kEnglish, kChinese };
ChartLang chart_lang(const std::string& name);  // "zh…" is Chinese, everything else English

// Returns the sentence "chart.NAME" of words.json.
std::string chart_word(ChartLang lang, std::string_view name, const Args& args = {});
// Returns the name of something with a number: "Stage 0", "rank 0", "chunk 1", "Step 3".
std::string chart_number(ChartLang lang, std::string_view name, int32_t number);
// Returns a count with its noun: "4 stages", "1 rank".
std::string chart_count(ChartLang lang, std::string_view name, int64_t count);
// Returns "Replica 0", or "Pipeline 0" for runs with context parallelism.
std::string chart_replica(ChartLang lang, const Trace& trace, int32_t dp);
std::string chart_kind(ChartLang lang, CellKind kind);  // for the legend, where all messages are "message"
std::string chart_ghost(ChartLang lang, const std::string& schedule);  // "1f1b in theory: mean times, no latency"
// Returns "Pipeline of step 3" or "Pipeline, steps 0–31"; "Pipeline" when first_step is kUnknown.
std::string chart_title(ChartLang lang, int32_t first_step, int32_t last_step);
std::string chart_clocks_aligned(ChartLang lang, const ClockSummary& clocks);

}  // namespace stageline
