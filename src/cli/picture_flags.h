// The flags of pictures: ghosts, colours, title, width.
#pragma once

#include "cli/flags.h"
#include "exporters/exporter.h"

namespace stageline {

// Returns --ghosts; kAuto when it was not given.
Ghosts ghosts_of(const Arguments& arguments);

// Reads --dark, --title and --width of a picture. Errors: kUsage.
Result<ExportOptions> picture_options(const Arguments& arguments, const std::string& lang, const std::string& title);

}  // namespace stageline
