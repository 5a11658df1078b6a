// Finds text tables that were cut: their writer ends every row with a line end. Where the last row has none, the file
// was cut there, and the row's last number may be incomplete.
#pragma once

#include <string>

#include "base/diagnostics.h"

namespace stageline {

inline void note_cut_table(const std::string& path, Diagnostics& notes) {
  notes.add("table.cut", Severity::kLoss,
            "the table's last row has no end, as where a file was cut; what stands there was taken as it is", {path});
}

}  // namespace stageline
