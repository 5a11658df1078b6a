// Merges the notes of several analyses of one trace.
#pragma once

#include "base/diagnostics.h"

namespace stageline {

// Adds what another analysis of the same data noted. Where both have a note of the same kind, the larger count is kept,
// since both saw the same occurrences.
inline void merge_notes(Diagnostics& all, const Diagnostics& own) {
  for (const Diagnostic& d : own.items()) all.add(d.name, d.severity, d.message, d.first, d.count - all.count(d.name));
}

}  // namespace stageline
