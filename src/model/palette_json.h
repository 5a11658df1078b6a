// Writes the palette as JSON for the pages; a report contains it, and the server sends it to the viewer.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "model/palette.h"

namespace stageline {

// Returns the colour as "#0b5cad".
std::string hex(Rgb colour);

// Writes the field "palette": {light, dark}, each of {bg, ink, mut, line, soft, idle, idle2, acc, group[], kernel[]}.
void write_palette(JsonWriter& json);

}  // namespace stageline
