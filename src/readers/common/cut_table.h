// A table of text whose writer ends every row: where the last one has no end the file was cut, and its last number may
// be another.
#pragma once

#include <string>

#include "base/diagnostics.h"

namespace stageline {

inline void note_cut_table(const std::string& path, Diagnostics& notes) {
  notes.add("table.cut", Severity::kLoss,
            "the table's last row has no end, as where a file was cut; what stands there was taken as it is", {path});
}

}  // namespace stageline
