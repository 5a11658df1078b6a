// Colours by meaning, the same in charts, report and exports: Okabe and Ito's palette on a light ground, lighter twins
// of it on a dark one. Patterns are the second channel, for readers who cannot distinguish the hues.
#pragma once

#include "base/json_writer.h"
#include "model/kind.h"

namespace stageline {

struct Rgb {
  uint8_t r, g, b;
};

struct Theme {
  Rgb background, ink, muted, line, soft, idle, idle_hatch, accent;
  ByEnum<KindGroup, Rgb, 7> group;       // indexed by KindGroup
  ByEnum<KindGroup, Rgb, 7> group_text;  // text on a cell of that group, contrast at least 4.5:1
  Rgb kernel[4];                         // device work of profiler traces: computing, communication, memory, other
};

const Theme& light_theme();
const Theme& dark_theme();

// WCAG 2 contrast of two colours, 1 … 21.
double contrast_ratio(Rgb a, Rgb b);
// Returns `a` mixed with a share `share_of_b` (0 to 1) of `b`, per sRGB channel.
Rgb mix(Rgb a, Rgb b, double share_of_b);
// Returns the group's colour, one step lighter for every further model chunk. The steps leave out the
// lightnesses on which neither dark nor white text has enough contrast.
Rgb chunk_fill(const Theme& theme, KindGroup group, int32_t chunk, int32_t chunk_count);
// White or near-black, whichever reads better on `fill`.
Rgb text_on(Rgb fill);

// Returns the colour as "#0b5cad".
std::string hex(Rgb colour);

// Writes the field "palette": {light, dark}, each of {bg, ink, mut, line, soft, idle, idle2, acc, group[], kernel[]}.
void write_palette(JsonWriter& json);

}  // namespace stageline
