// Colours by meaning, the same in charts, report and exports (design: Okabe–Ito on light, lighter
// twins on dark). Patterns are the second channel, for those who cannot tell the hues apart.
#pragma once

#include <cstdint>

#include "model/kind.h"

namespace stageline {

struct Rgb {
  uint8_t r, g, b;
};

struct Theme {
  Rgb background, ink, muted, line, soft, idle, idle_hatch, accent;
  Rgb group[7];       // by KindGroup
  Rgb group_text[7];  // text on a cell of that group, contrast at least 4.5:1
};

const Theme& light_theme();
const Theme& dark_theme();

}  // namespace stageline
