// The palette for pages: the report carries it, the viewer is sent it.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "model/palette.h"

namespace stageline {

// "#0b5cad".
std::string hex(Rgb colour);

// The field "palette": {light, dark}, each of {bg, ink, mut, line, soft, idle, idle2, acc, group[], kernel[]}.
void write_palette(JsonWriter& json);

}  // namespace stageline
