// Finds text tables that were cut: their writer ends every row with a line end. Where the last row has none, the file
// was cut there, and the row's last number may be incomplete.
#pragma once

#include "base/diagnostics.h"
#include "readers/common/problems.h"

namespace stageline {

inline void note_cut_table(const std::string& path, Diagnostics& notes) { notes.add(problem::table_cut, {path}); }

}  // namespace stageline
